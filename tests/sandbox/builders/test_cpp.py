"""The builder with real compilers in real jails: what builds, what is refused, what is kept."""

from __future__ import annotations

import ctypes
import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelwright.kernelbench import registry
from kernelwright.sandbox.builders.cache import BuildCache
from kernelwright.sandbox.builders.compiler import find_compiler, flags
from kernelwright.sandbox.builders.cpp import build, preparing, prototype
from kernelwright.sandbox.builders.model import BuildFailed, BuildVariant, Built
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.isolation.model import Jail

PROTOTYPE = 'extern "C" void scale(int n, const float* x, float* y);'
HONEST = """extern "C" void scale(int n, const float* __restrict__ x, float* __restrict__ y) {
  for (int i = 0; i < n; ++i) y[i] = 2 * x[i];
}
"""


def attempt(
    source: str, cache_dir: Path, jail: Jail, variant: BuildVariant = BuildVariant.RELEASE
) -> Built | BuildFailed:
    return build(Workshop(jail, cache_dir), source, PROTOTYPE, "scale", variant=variant)


def built(source: str, cache_dir: Path, jail: Jail) -> Built:
    result = attempt(source, cache_dir, jail)
    assert isinstance(result, Built), result
    return result


def refused(source: str, cache_dir: Path, jail: Jail) -> BuildFailed:
    result = attempt(source, cache_dir, jail)
    assert isinstance(result, BuildFailed)
    return result


def test_builds_a_kernel_that_the_trampoline_calls(tmp_path: Path, jail: Jail) -> None:
    found = built(HONEST, tmp_path / "cache", jail)
    library = tmp_path / "kernel.so"
    library.write_bytes(found.artefact)
    x = np.arange(5, dtype=np.float32)
    y = np.zeros(5, dtype=np.float32)
    count = ctypes.c_int(4)
    arguments = (ctypes.c_void_p * 3)(ctypes.addressof(count), x.ctypes.data, y.ctypes.data)
    ctypes.CDLL(str(library)).kw_entry(arguments)
    assert y.tolist() == [0, 2, 4, 6, 0]


CLAMPED = """void scale(int n, const float* __restrict__ x, float* __restrict__ y) {
  for (int i = 0; i < n; ++i) {
    const float within = x[i] > 89.0f ? 89.0f : x[i];
    y[i] = within * within + 1.0f;
  }
}
"""


def test_a_loop_that_compares_floats_becomes_vectors(tmp_path: Path) -> None:
    compiler = find_compiler()
    if not compiler.is_gcc:
        pytest.skip("only GCC tells which loops it vectorised, in words that are known here")
    source = tmp_path / "scale.cpp"
    source.write_text(CLAMPED)
    told = subprocess.run(
        [
            str(compiler.path),
            *flags(BuildVariant.RELEASE, compiler),
            # The least that a CPU of today has: with AVX-512 it does without the flag.
            *(["-march=x86-64-v3"] if platform.machine() == "x86_64" else []),
            "-fopt-info-vec-optimized",
            "-c",
            str(source),
            "-o",
            str(tmp_path / "scale.o"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "loop vectorized" in told.stderr


PREPARED = """extern "C" void spmv_csr_prepare(int M, int K, int nnz, const int* indptr,
                                 const int* indices, void* plan) {
  static_cast<int*>(plan)[0] = M + nnz + indptr[0] + indices[0];
}
extern "C" void spmv_csr(int, int, int, const int*, const int*, const float*, const float*,
                         float* y, const void* plan) {
  y[0] = static_cast<const int*>(plan)[0];
}
"""


def attempt_prepared(source: str, cache_dir: Path, jail: Jail) -> Built | BuildFailed:
    problem = registry.get("spmv_csr")
    declared = prototype(problem, takes_plan=True)
    shop = Workshop(jail, cache_dir)
    return build(shop, source, declared, problem.name, prepares=preparing(problem))


def test_what_makes_a_plan_is_given_the_pattern_of_a_call(tmp_path: Path, jail: Jail) -> None:
    found = attempt_prepared(PREPARED, tmp_path / "cache", jail)
    assert isinstance(found, Built), found
    library = tmp_path / "kernel.so"
    library.write_bytes(found.artefact)
    sizes = [ctypes.c_int(number) for number in (10, 20, 30)]
    indptr, indices, plan = (np.array([n], dtype=np.int32) for n in (400, 5000, -1))
    y = np.zeros(1, dtype=np.float32)
    tensors = [indptr, indices, None, None, y, plan]
    given = [ctypes.addressof(size) for size in sizes]
    given += [0 if each is None else each.ctypes.data for each in tensors]
    arguments = (ctypes.c_void_p * len(given))(*given)
    loaded = ctypes.CDLL(str(library))
    loaded.kw_prepare(arguments)
    loaded.kw_entry(arguments)
    assert plan.tolist() == y.tolist() == [5440]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("void* plan) {\n  static", "int* plan) {\n  static", "void spmv_csr_prepare(int M, int K"),
        ("float* y, const void* plan", "float* y, void* plan", "float* y, const void* plan);"),
        ("void spmv_csr_prepare", "void prepare", 'must define extern "C" void spmv_csr_prep'),
        ("void spmv_csr(int", "void other(int", 'must define extern "C" void spmv_csr(int M'),
    ],
)
def test_both_functions_of_a_prepared_candidate_are_held_to_their_signature(
    tmp_path: Path, jail: Jail, old: str, new: str, words: str
) -> None:
    assert PREPARED.count(old) == 1
    found = attempt_prepared(PREPARED.replace(old, new), tmp_path, jail)
    assert isinstance(found, BuildFailed)
    assert words in found.reason


def test_one_source_makes_one_artefact(tmp_path: Path, any_jail: Jail) -> None:
    first = built(HONEST, tmp_path / "one", any_jail)
    second = built(HONEST, tmp_path / "two", any_jail)
    assert not second.is_cached
    assert first.sha256 == second.sha256
    assert first.artefact == second.artefact


def test_names_and_folders_of_the_build_stay_private(tmp_path: Path, any_jail: Jail) -> None:
    source = "const char* where = __FILE__;\n#include <bits/none.h>\n"
    failed = refused(source, tmp_path, any_jail)
    told = failed.log + failed.reason + " ".join(failed.command[1:])
    assert "kernelwright-build-" not in told
    assert "candidate.cpp:2:10" in failed.log
    found = built(
        HONEST + "extern const char* const w; const char* const w = __FILE__;", tmp_path, any_jail
    )
    assert b"\0candidate.cpp\0" in found.artefact


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('extern "C" void scale(int n, float* x, float* y) {}', ("line 1:17", "const float* x")),
        ('extern "C" int scale(int n, const float* x, float* y) { return 0; }', ("line 1:16",)),
        ("void scale(double) {}", ("does not define the entry point", "const float* x")),
        ("", ("does not define the entry point",)),
        (HONEST + 'extern "C" void kw_entry(void**) {}', ("'kw_entry' is defined twice",)),
        (HONEST + "int g(); int h() { return g(); }", ("undefined reference to 'g()'",)),
        (HONEST + 'asm("not an instruction");', ("the assembler refused",)),
        ("int a = ;", ("error at line 1:9: expected",)),
    ],
)
def test_a_refused_source_says_why(
    source: str, words: tuple[str, ...], tmp_path: Path, any_jail: Jail
) -> None:
    failed = refused(source, tmp_path, any_jail)
    assert not failed.is_resource
    for word in words:
        assert word in failed.reason
    assert "\n" not in failed.reason
    assert len(failed.reason) < 300


@pytest.mark.parametrize("way", ['#include "{}"\n', 'asm(".incbin \\"{}\\"");\n'])
def test_a_source_cannot_read_files_of_the_user(way: str, tmp_path: Path, jail: Jail) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text("int planted_secret_4711 = no_such_name;\n")
    secret.chmod(0o644)
    failed = refused(way.format(secret) + HONEST, tmp_path / "cache", jail)
    assert "planted_secret_4711" not in failed.log
    assert "planted_secret_4711" not in failed.reason


@pytest.mark.parametrize("path", ["/etc/shadow", "/etc/hostname", "/root/.bashrc"])
def test_files_of_the_system_are_out_of_sight(path: str, tmp_path: Path, jail: Jail) -> None:
    assert "error at line 1:10" in refused(f'#include "{path}"\n', tmp_path, jail).reason


@pytest.mark.parametrize(
    "source",
    [
        "__attribute__((used)) char big[10000000000ll] = {1};",
        'asm(".rept 2000000000\\n.quad 1\\n.endr");',
    ],
    ids=["object of ten gigabytes", "assembler repetition"],
)
def test_a_bomb_ends_as_a_resource_failure(source: str, tmp_path: Path, jail: Jail) -> None:
    failed = refused(source + HONEST, tmp_path, jail)
    assert failed.is_resource
    assert "limit" in failed.reason


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [
        '#include "/dev/zero"\n',
        "template <int N, int M> struct T { static const int v = T<N - 1, 2 * M>::v"
        " + T<N - 1, 2 * M + 1>::v; };\n"
        "template <int M> struct T<0, M> { static const int v = 1; };\n"
        "int q = T<24, 0>::v;",
    ],
    ids=["endless include", "template recursion"],
)
def test_a_compile_bomb_is_stopped(source: str, tmp_path: Path, jail: Jail) -> None:
    failed = refused(source + HONEST, tmp_path, jail)
    assert failed.is_resource
    assert "stopped" in failed.reason


def test_the_second_build_comes_from_the_cache(tmp_path: Path, any_jail: Jail) -> None:
    first = built(HONEST, tmp_path, any_jail)
    again = built(HONEST, tmp_path, any_jail)
    assert again.is_cached
    assert (again.artefact, again.remarks, again.command) == (
        first.artefact,
        first.remarks,
        first.command,
    )
    other = built(HONEST + "// other\n", tmp_path, any_jail)
    assert not other.is_cached


def test_a_damaged_cache_entry_is_built_anew(tmp_path: Path, any_jail: Jail) -> None:
    first = built(HONEST, tmp_path, any_jail)
    for place in (tmp_path / "cpp").glob("*/*"):
        whole = bytearray(place.read_bytes())
        whole[len(whole) // 2] ^= 1
        place.write_bytes(whole)
    again = built(HONEST, tmp_path, any_jail)
    assert not again.is_cached
    assert again.sha256 == first.sha256


def test_a_cache_entry_under_another_name_is_not_believed(tmp_path: Path) -> None:
    kept = BuildCache(tmp_path)
    entry = Built(b"code", "6" * 64, 0.0)
    kept.store("ab12", entry)
    assert kept.load("ab12") is None
    good = Built(b"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", 0.0)
    kept.store("ab12", good)
    assert kept.load("ab12") is not None
    (tmp_path / "cpp" / "ab" / "ab12").rename(tmp_path / "cpp" / "ab" / "ab34")
    assert kept.load("ab34") is None


def test_the_sanitized_variant_holds_sanitizers(tmp_path: Path, any_jail: Jail) -> None:
    found = attempt(HONEST, tmp_path, any_jail, BuildVariant.SANITIZED)
    assert isinstance(found, Built)
    assert b"__asan_" in found.artefact
    assert b"__ubsan_" in found.artefact
    assert b"__asan_" not in built(HONEST, tmp_path, any_jail).artefact


@settings(
    max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(source=st.text(max_size=60))
def test_any_text_is_a_result(source: str, tmp_path: Path) -> None:
    assert isinstance(attempt(source, tmp_path, BareJail()), BuildFailed)
