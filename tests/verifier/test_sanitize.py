"""Sanitizers: mistakes that pass every other check are seen; honest kernels are clean."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.sandbox.build.compiler import find_compiler
from kernelwright.sandbox.isolation import choose
from kernelwright.sandbox.run.process import RunFault
from kernelwright.traces.records import Isolation, Protocol, Status
from kernelwright.verifier import reports, sanitize
from kernelwright.verifier.request import Task
from kernelwright.verifier.roofline import Peaks
from kernelwright.verifier.session import Session
from kernelwright.verifier.trials import Stage

SIGNATURE = """\
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C)"""
COMPUTE = """
static void honest(int M, int N, const int* indptr, const int* indices, const float* values,
                   const float* B, float* C) {
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {
            float sum = 0;
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }
}
"""
CALL = "honest(M, N, indptr, indices, values, B, C);"
HONEST = f"{COMPUTE}{SIGNATURE} {{ {CALL} }}"

MISTAKES = {
    "reads before an input": (
        f"{COMPUTE}{SIGNATURE} {{ {CALL} volatile float unused = B[-1];  /* here */ }}",
        r"AddressSanitizer: heap-buffer-overflow on READ of 4 bytes 4 bytes before (\w+ or )*B",
    ),
    "reads past the end, times zero": (
        f"{COMPUTE}{SIGNATURE} {{ {CALL}\n if (M > 0) C[0] += 0.0f * values[nnz];  /* here */ }}",
        r"heap-buffer-overflow on READ of 4 bytes 0 bytes after (indices or )?values at ",
    ),
    "signed overflow": (
        f"""{COMPUTE}{SIGNATURE} {{ {CALL} volatile int most = 2147483647;
    most = most + 1;  /* here */ }}""",
        r"UndefinedBehaviorSanitizer: signed integer overflow",
    ),
    "misaligned access": (
        f"""{COMPUTE}{SIGNATURE} {{ {CALL}
    const char* bytes = reinterpret_cast<const char*>(indptr) + 1;
    volatile int odd = *reinterpret_cast<const int*>(bytes);  /* here */ }}""",
        r"UndefinedBehaviorSanitizer: load of misaligned address",
    ),
    "memory never set, zero by luck": (
        # Blocks of this size are fresh pages of the kernel's, which are zero.
        f"""#include <cstdlib>
{SIGNATURE} {{
    float* sums = static_cast<float*>(std::malloc(48 << 20));
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {{
            float sum = sums[(long)i * N + n];
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }}
    std::free(sums);
}}""",
        r"memory that was never set",
    ),
    "use after free": (
        f"""{COMPUTE}{SIGNATURE} {{ {CALL}
    volatile float* kept = new float[64];
    kept[0] = 1;
    delete[] kept;
    volatile float late = kept[0];  /* here */ }}""",
        r"AddressSanitizer: heap-use-after-free on READ of 4 bytes",
    ),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cache")
    os.chmod(folder, 0o755)
    return folder


@pytest.fixture(scope="module")
def session_for(cache: Path) -> Iterator[Callable[[str], Session]]:
    """Sessions without baselines: nothing is timed here."""
    open_ones: dict[str, Session] = {}

    def find(name: str) -> Session:
        if name not in open_ones:
            open_ones[name] = session_of(name, cache)
        return open_ones[name]

    yield find
    for session in open_ones.values():
        session.close()


def session_of(name: str, cache: Path) -> Session:
    problem = registry.get(name)
    workload = problem.workload("tiny")
    others = tuple(
        (each.name, problem.structure(each))
        for each in problem.workloads
        if each.kind == "adversarial"
    )
    jail = choose("auto")
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    peaks = Peaks(
        bandwidth_gbs=10, llc_bandwidth_gbs=10, cache_bandwidth_gbs=10, flops_gflops=10,
        l2_bytes=1 << 20, llc_bytes=1 << 25, cpus=cpus, compiler="none",
    )  # fmt: skip
    return Session(
        Task(problem=name, workload=workload, cache_dir=str(cache)),
        problem,
        Stage(problem, problem.structure(workload), "tiny", others),
        jail,
        Isolation(mechanism=jail.name, capabilities={}),
        peaks,
        cpus,
        cache,
    )


def examined(session: Session, source: str) -> sanitize.Examined:
    return sanitize.examine(session, source, np.random.default_rng(4))


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_that_no_answer_shows_is_incorrect(court, name):
    source, words = MISTAKES[name]
    verdict = court.judge(source, protocol=Protocol.FULL)
    assert verdict.status is Status.INCORRECT, verdict.reasons
    (reason,) = verdict.reasons
    assert reason.startswith("sanitizers: ")
    assert re.search(words, reason), reason
    if "/* here */" in source:
        line = 1 + source[: source.index("/* here */")].count("\n")
        assert f"at line {line} of the candidate" in reason
    assert not verdict.unchecked
    # All else was right: nothing but the sanitizers could tell.
    assert [check.name for check in verdict.checks if not check.passed] == [sanitize.NAME]
    assert verdict.seconds["sanitize"] > 0


def test_a_local_variable_that_was_never_set_is_seen(session_for):
    source = f"{SIGNATURE} {{ float sum; for (long i = 0; i < (long)M * N; ++i) C[i] = sum; }}"
    found = examined(session_for("spmm_csr"), source).check
    assert found is not None
    assert not found.passed
    assert "-1.69" in found.detail


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_an_honest_recipe_is_clean(session_for, name):
    recipe = recipes_for(name)[-1]
    found = examined(session_for(name), recipe.render(recipe.first()))
    assert found.check is not None, found.unchecked
    assert found.check.passed, found.check.detail
    assert found.check.figure > sanitize.HIDDEN_SHAPES
    assert found.unchecked == ""


def test_a_process_that_ends_without_a_report_is_not_clean(session_for):
    source = f"""#include <unistd.h>
{COMPUTE}{SIGNATURE} {{ {CALL}
#ifdef __SANITIZE_ADDRESS__
    _exit(0);
#endif
}}"""
    with pytest.raises(RunFault, match="built with sanitizers: the process left by itself") as died:
        examined(session_for("spmm_csr"), source)
    assert died.value.status is Status.CRASHED


def test_words_alone_are_no_report_and_ending_with_them_is_one(session_for):
    spoken = 'std::fputs("==1==ERROR: AddressSanitizer: made-up on\\n", stderr);'
    source = f"#include <cstdio>\n#include <unistd.h>\n{COMPUTE}{SIGNATURE} {{ {CALL} {spoken} }}"
    found = examined(session_for("spmm_csr"), source).check
    assert found is not None
    assert found.passed
    found = examined(session_for("spmm_csr"), source.replace(spoken, spoken + " _exit(0);")).check
    assert found is not None
    assert found.detail.startswith("AddressSanitizer: made-up")
    assert not found.passed


def test_a_source_that_treats_a_sanitized_build_apart_is_not_called_clean(session_for):
    hidden = COMPUTE.replace("static void", '__attribute__((no_sanitize("address"))) static void')
    found = examined(session_for("spmm_csr"), f"{hidden}{SIGNATURE} {{ {CALL} }}")
    assert found.check is None
    assert "not conclusive, line 2" in found.unchecked


def test_code_that_does_not_end_under_the_sanitizers_is_told(session_for, monkeypatch):
    session = session_for("spmm_csr")
    assert examined(session, HONEST).check is not None
    monkeypatch.setattr(sanitize, "TIMEOUT_S", 1.0)
    source = f"""{COMPUTE}{SIGNATURE} {{ {CALL}
#ifdef __SANITIZE_ADDRESS__
    for (volatile int i = 0;; i = 0) {{}}
#endif
}}"""
    found = examined(session, source)
    assert found.check is None
    assert found.unchecked.startswith("sanitizers: not finished, no answer within 1.0 s")


def test_without_the_tools_the_verdict_says_so(tmp_path, monkeypatch):
    """A compiler that is really called, and lacks the sanitizers' libraries."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for each in (tmp_path, *tmp_path.parents[:2]):
        each.chmod(0o755)
    real = find_compiler().path
    program = folder / "g++"
    program.write_text(
        '#!/bin/sh\ncase "$*" in *-fsanitize*)\n'
        '  echo "/usr/bin/ld: cannot find libasan.so: No such file" >&2; exit 1;;\n'
        f'esac\nexec {real} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    find_compiler.cache_clear()
    try:
        session = session_of("spmm_csr", tmp_path)
        found = examined(session, HONEST)
    finally:
        find_compiler.cache_clear()
    assert found.check is None
    assert found.unchecked.startswith("sanitizers: not run, this compiler does not build with them")
    assert "libasan" in found.unchecked


REPORT = """
=================================================================
==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x6020 at pc 0x7f bp 0x7f sp 0x7f
READ of size 64 at 0x6020 thread T0
    #0 0x7f01 in __interceptor_memcpy (/lib/libasan.so.8+0x1)
    #1 0x7f02 in row /tmp/x/candidate.cpp:12
    #2 0x7f03 in softmax candidate.cpp:40:7

0x6020 is located 8 bytes to the right of 400-byte region [0x5e90,0x6020)
"""


def test_a_report_becomes_one_sentence():
    said = "AddressSanitizer: heap-buffer-overflow on READ of 64 bytes 8 bytes after {} at line 12"
    assert reports.sentence(REPORT, {400: "x"}) == said.format("x") + " of the candidate"
    assert said.format("a block of 400 bytes") in reports.sentence(REPORT, {})
    newer = REPORT.replace("to the right of", "after")
    assert reports.sentence(newer, {400: "x"}) == reports.sentence(REPORT, {400: "x"})
    text = "a/candidate.cpp:3:9: runtime error: shift exponent 40 is too large\n"
    assert reports.sentence(text, {}) == (
        "UndefinedBehaviorSanitizer: shift exponent 40 is too large at line 3 of the candidate"
    )
    assert "Undefined" in reports.sentence(text + REPORT, {})
    assert "heap" in reports.sentence(REPORT + text, {})
    assert reports.sentence("Segmentation fault", {}) == ""


def test_a_report_is_untrusted_text():
    forged = "x/candidate.cpp:3:9: runtime error: \x1b[2J" + "long " * 70
    told = reports.sentence(forged, {})
    assert "\x1b" not in told
    assert len(told) < 300
    assert reports.sentence("ERROR: AddressSanitizer: \x07" + "a" * 5000, {}).isprintable()
