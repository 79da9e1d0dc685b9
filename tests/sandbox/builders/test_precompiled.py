"""The precompiled header: it is used where the source asks for it, and changes nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.sandbox.builders import precompiled
from kernelwright.sandbox.builders.compiler import find_compiler
from kernelwright.sandbox.builders.cpp import build, expect_more, prototype
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


def made_often(source: str, cache: Path, jail: Jail) -> None:
    for number in range(precompiled.SELDOM):
        assert isinstance(made(f"{source}// {number}\n", cache, jail), Built)


def test_sources_that_include_it_are_built_with_it_from_the_third_on(
    tmp_path: Path, any_jail: Jail
) -> None:
    for variant in BuildVariant:
        for number in range(precompiled.SELDOM + 2):
            result = made(f"{ASKS}// {number}\n", tmp_path, any_jail, variant)
            assert isinstance(result, Built), result
            is_often = number >= precompiled.SELDOM
            assert (precompiled.NAME in result.command) == (find_compiler().is_gcc and is_often)
            assert "warning" not in result.log


def test_where_many_are_expected_the_first_is_built_with_it(tmp_path: Path, jail: Jail) -> None:
    expect_more(Workshop(jail, tmp_path), ASKS)
    result = made(ASKS, tmp_path, jail)
    assert isinstance(result, Built), result
    assert (precompiled.NAME in result.command) == find_compiler().is_gcc


def test_a_source_that_does_not_include_it_does_not_get_it(tmp_path: Path, jail: Jail) -> None:
    result = made(BODY + "// #include <immintrin.h>\n", tmp_path, jail)
    assert isinstance(result, BuildFailed)
    assert "_mm_sfence" in result.reason


@pytest.mark.parametrize(
    ("source", "bundle"),
    [
        ("#include <cmath>\n#include <vector>\n", ("cmath",)),
        ("#define LANES 8\n#include <algorithm>\n#include <cmath>\n", ("cmath", "algorithm")),
        ("#include <memory>\n", ()),
        # What a macro before them makes of them, nobody else shall get by surprise.
        ("#define _GLIBCXX_ASSERTIONS 1\n#include <cmath>\n", ()),
        ("#define private public\n#include <cmath>\n", ()),
        ("#include <cmath>\n#define max(a, b) 0\n", ("cmath",)),
    ],
)
def test_what_a_source_includes_itself_is_precompiled(source: str, bundle: tuple[str, ...]) -> None:
    assert precompiled.choose_bundle(source) == bundle


def test_a_precompiled_header_changes_nothing_in_what_is_built(
    tmp_path: Path, jail: Jail, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipes_for("spmm_csr")[0]
    source = recipe.render(recipe.first_knobs())
    entry, declared = "spmm_csr", prototype(registry.get("spmm_csr"))
    monkeypatch.setattr(precompiled, "SELDOM", 0)
    built = build(Workshop(jail, tmp_path / "with"), source, declared, entry)
    monkeypatch.setattr(precompiled, "BUNDLES", ())
    plain = build(Workshop(jail, tmp_path / "without"), source, declared, entry)
    assert isinstance(built, Built)
    assert isinstance(plain, Built)
    assert built.artefact == plain.artefact
    assert built.log == plain.log
    assert (precompiled.NAME in built.command) == find_compiler().is_gcc
    assert precompiled.NAME not in plain.command


def test_a_damaged_one_is_not_believed(tmp_path: Path, jail: Jail) -> None:
    made_often(ASKS, tmp_path, jail)
    assert isinstance(made(ASKS, tmp_path, jail), Built)
    for kept in tmp_path.rglob("*"):
        if kept.is_file() and "asked" not in kept.parts:
            kept.write_bytes(kept.read_bytes()[: kept.stat().st_size // 2])
    precompiled._keep_headers.cache_clear()
    assert isinstance(made(ASKS + "// again\n", tmp_path, jail), Built)
