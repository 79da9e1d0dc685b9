"""The precompiled header: it is used where the source asks for it, and changes nothing else."""

from __future__ import annotations

from pathlib import Path

from kernelwright.sandbox.builders import precompiled
from kernelwright.sandbox.builders.compiler import find_compiler
from kernelwright.sandbox.builders.cpp import build
from kernelwright.sandbox.builders.model import BuildFailed, BuildVariant, Built
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.model import Jail

PROTOTYPE = 'extern "C" void fence(int n);'
BODY = 'extern "C" void fence(int n) { for (int i = 0; i < n; ++i) _mm_sfence(); }\n'
ASKS = "  #  include <immintrin.h>  // for the fence\n" + BODY


def made(
    source: str, cache: Path, jail: Jail, variant: BuildVariant = BuildVariant.RELEASE
) -> object:
    return build(Workshop(jail, cache), source, PROTOTYPE, "fence", variant=variant)


def test_a_source_that_includes_it_is_built_with_it(tmp_path: Path, any_jail: Jail) -> None:
    for variant in BuildVariant:
        result = made(ASKS, tmp_path, any_jail, variant)
        assert isinstance(result, Built), result
        assert (precompiled.NAME in result.command) == find_compiler().is_gcc
        assert "warning" not in result.log


def test_a_source_that_does_not_include_it_does_not_get_it(tmp_path: Path, jail: Jail) -> None:
    result = made(BODY + "// #include <immintrin.h>\n", tmp_path, jail)
    assert isinstance(result, BuildFailed)
    assert "_mm_sfence" in result.reason


def test_a_damaged_one_is_not_believed(tmp_path: Path, jail: Jail) -> None:
    assert isinstance(made(ASKS, tmp_path, jail), Built)
    for kept in tmp_path.rglob("*"):
        if kept.is_file():
            kept.write_bytes(kept.read_bytes()[: kept.stat().st_size // 2])
    precompiled._keep_header.cache_clear()
    assert isinstance(made(ASKS + "// again\n", tmp_path, jail), Built)
