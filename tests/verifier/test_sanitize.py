"""Sanitizers: mistakes that pass every other check are seen; honest kernels are clean."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Family
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.sandbox.builders.compiler import find_compiler
from kernelwright.sandbox.run.process import RunFault
from kernelwright.tests.sampling import one_in
from kernelwright.traces.records import Check, Depth, Status
from kernelwright.verifier.stands import sanitize, sanitizer_reports, sides
from kernelwright.verifier.stands.programs import build_program
from kernelwright.verifier.stands.session import Session
from kernelwright.verifier.truth.trials import FEW_SHAPES, make_item

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
IS_SANITIZED = 'extern "C" void __asan_init() __attribute__((weak));'
DEED = "if (&__asan_init) { deed(); }"

MISTAKES = {
    "reads before an input": (
        f"{COMPUTE}{SIGNATURE} {{ {CALL} volatile float unused = B[-1];  /* here */ }}",
        r"AddressSanitizer: out of bounds on READ of 4 bytes 4 bytes before B at ",
    ),
    "reads past the end, times zero": (
        f"{COMPUTE}{SIGNATURE} {{ {CALL}\n if (M > 0) C[0] += 0.0f * values[nnz];  /* here */ }}",
        r"out of bounds on READ of 4 bytes 0 bytes after values at ",
    ),
    "far before an input": (
        f"{COMPUTE}{SIGNATURE} {{ {CALL} volatile float unused = B[-30000];  /* here */ }}",
        r"out of bounds on READ 120000 bytes before B at ",
    ),
    "an address of an earlier call": (
        f"""static const float* kept;
{COMPUTE}{SIGNATURE} {{ {CALL} if (!kept) kept = B;
    volatile float unused = kept[0];  /* here */ }}""",
        r"AddressSanitizer: SEGV on READ at ",
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
        # A trial fills what `malloc` hands out, and what is freed; what the last block of the heap
        # gains by `realloc`, of the 128 KiB that glibc asked for beyond it, no one has used.
        f"""#include <cstdlib>
{SIGNATURE} {{
    char* block = static_cast<char*>(std::malloc(96 << 10));
    block = static_cast<char*>(std::realloc(block, 192 << 10));
    float* sums = reinterpret_cast<float*>(block + (97 << 10));
    for (int i = 0; i < M; ++i)
        for (int n = 0; n < N; ++n) {{
            float sum = sums[n % (19 << 10)];
            for (int p = indptr[i]; p < indptr[i + 1]; ++p)
                sum += values[p] * B[(long)indices[p] * N + n];
            C[(long)i * N + n] = sum;
        }}
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


def examined(session: Session, source: str) -> Check:
    prepared = sanitize.Sanitizers(session).prepare(source)
    assert prepared.program is not None, prepared.unchecked
    return sanitize.examine(session, prepared.program, np.random.default_rng(4))


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
@pytest.mark.jail
def test_a_mistake_that_no_answer_shows_is_incorrect(court, name):
    source, words = MISTAKES[name]
    verdict = court.judge(source, protocol=Depth.FULL)
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


@pytest.mark.jail
def test_a_local_variable_that_was_never_set_is_seen(session_for):
    source = f"{SIGNATURE} {{ float sum; for (long i = 0; i < (long)M * N; ++i) C[i] = sum; }}"
    found = examined(session_for("spmm_csr"), source)
    assert not found.passed
    assert "-1.69" in found.detail


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(4, registry.names()))
def test_an_honest_recipe_is_clean(session_for, name):
    recipe = recipes_for(name)[-1]
    found = examined(session_for(name), recipe.render(recipe.first_knobs()))
    assert found.passed, found.detail
    assert found.figure > FEW_SHAPES


@pytest.mark.jail
def test_a_process_that_ends_without_a_report_is_not_clean(session_for):
    source = f"#include <unistd.h>\n{IS_SANITIZED}{COMPUTE}{SIGNATURE} {{ {CALL} {DEED} }}"
    source = source.replace("deed();", "_exit(0);")
    with pytest.raises(RunFault, match="built with sanitizers: the process left by itself") as died:
        examined(session_for("spmm_csr"), source)
    assert died.value.status is Status.CRASHED


@pytest.mark.jail
def test_words_alone_are_no_report_and_ending_with_them_is_one(session_for):
    spoken = 'std::fputs("==1==ERROR: AddressSanitizer: made-up on\\n", stderr);'
    source = f"#include <cstdio>\n#include <unistd.h>\n{COMPUTE}{SIGNATURE} {{ {CALL} {spoken} }}"
    found = examined(session_for("spmm_csr"), source)
    assert found.passed
    found = examined(session_for("spmm_csr"), source.replace(spoken, spoken + " _exit(0);"))
    assert found.detail.startswith("AddressSanitizer: made-up")
    assert not found.passed


@pytest.mark.jail
def test_both_builds_of_a_candidate_find_the_same(session_for):
    """Neither the environment nor the preprocessor differs, but for the name of a folder that no
    other process has."""
    source = f"""#include <cstdio>
#include <unistd.h>
extern char** environ;
{COMPUTE}{SIGNATURE} {{ {CALL}
    for (char** one = environ; *one; ++one) std::fprintf(stderr, "%s\\n", *one);
#ifdef __SANITIZE_ADDRESS__
    std::fputs("sanitized\\n", stderr);
#endif
    _exit(3);
}}"""
    session = session_for("spmm_csr")
    said = []
    with pytest.raises(RunFault) as died:
        examined(session, source)
    said.append(died.value.log)
    program = build_program(session, source, "cpp")
    rng = np.random.default_rng(4)
    with (
        sides.arena_for(session) as arena,
        sides.start_side(session, Depth.FULL, "candidate", program, arena, rng) as side,
    ):
        slot = side.place(session.stage.target, 1)[0]
        item = make_item(session.problem, session.stage.target, Family.NORMAL, rng)
        with pytest.raises(RunFault) as died:
            side.answer(item, slot)
    said.append(died.value.log)
    # Where /proc is closed, the sanitizer says as the process leaves that it knows no stack.
    said = [
        re.sub(r"^==\d+==WARNING: ASan is ignoring.*", "", log, flags=re.M | re.S) for log in said
    ]
    plain, sanitized = (re.sub(r"(TMPDIR=.*/kernelwright-job-)\w+", r"\1", log) for log in said)
    assert "OMP_NUM_THREADS=" in plain
    assert "TMPDIR=" in plain
    assert plain == sanitized


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="names a register of x86-64")
@pytest.mark.jail
def test_a_source_that_builds_only_without_them_is_no_pass(court):
    """The frame pointer is free in the plain build only."""
    leaf = '__attribute__((noinline)) static void leaf() { asm volatile("" ::: "rbp"); }'
    source = f"{leaf}{COMPUTE}{SIGNATURE} {{ {CALL} leaf(); }}"
    verdict = court.judge(source, protocol=Depth.FULL)
    assert verdict.status is Status.BUILD_FAILED
    assert verdict.reasons[0].startswith("built with sanitizers: error at line ")


@pytest.mark.jail
def test_code_that_does_not_end_under_the_sanitizers_is_a_failure(session_for, monkeypatch):
    session = session_for("spmm_csr")
    assert examined(session, HONEST).passed
    monkeypatch.setattr(sanitize, "TIMEOUT_S", 1.0)
    source = f"{IS_SANITIZED}{COMPUTE}{SIGNATURE} {{ {CALL} {DEED} }}"
    source = source.replace("deed();", "for (volatile int i = 0;; i = 0) {}")
    with pytest.raises(RunFault, match=r"built with sanitizers: no answer within 1\.0 s") as died:
        examined(session, source)
    assert died.value.status is Status.TIMED_OUT


@pytest.mark.jail
def test_without_the_tools_the_verdict_says_so(tmp_path, monkeypatch, session_of):
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
        found = sanitize.Sanitizers(session).prepare(HONEST)
    finally:
        find_compiler.cache_clear()
    assert found.program is None
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


PASSED = "argument 1 is 384 bytes at 0x5e98\nargument 2 is 64 bytes at 0x7000\n"


def test_a_report_becomes_one_sentence():
    told = sanitizer_reports.sentence(PASSED + REPORT, ("M", "x", "y"))
    assert told == (
        "AddressSanitizer: out of bounds on READ of 64 bytes 8 bytes after x at line 12 of the "
        "candidate"
    )
    assert "8 bytes after argument 1 at" in sanitizer_reports.sentence(PASSED + REPORT, ())
    own = sanitizer_reports.sentence(REPORT, ("M", "x"))
    assert "heap-buffer-overflow on READ of 64 bytes 8 bytes after a block of 400 bytes at" in own
    newer = REPORT.replace("to the right of", "after")
    assert sanitizer_reports.sentence(newer, ()) == sanitizer_reports.sentence(REPORT, ())
    text = "a/candidate.cpp:3:9: runtime error: shift exponent 40 is too large\n"
    assert sanitizer_reports.sentence(text, ()) == (
        "UndefinedBehaviorSanitizer: shift exponent 40 is too large at line 3 of the candidate"
    )
    assert sanitizer_reports.sentence(text.replace(":3:9:", ":3:"), ()).endswith(
        "large at line 3 of the candidate"
    )
    assert "Undefined" in sanitizer_reports.sentence(text + REPORT, ())
    assert "heap" in sanitizer_reports.sentence(REPORT + text, ())
    assert sanitizer_reports.sentence("Segmentation fault", ()) == ""


def test_a_report_is_untrusted_text():
    forged = "x/candidate.cpp:3:9: runtime error: \x1b[2J" + "long " * 70
    told = sanitizer_reports.sentence(forged, ())
    assert "\x1b" not in told
    assert len(told) < 300
    assert sanitizer_reports.sentence(
        "ERROR: AddressSanitizer: \x07" + "a" * 5000, ()
    ).isprintable()
