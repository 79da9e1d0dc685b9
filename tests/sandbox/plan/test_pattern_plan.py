"""What a candidate declares of the plan that it makes of a pattern: how large, and where it may."""

from __future__ import annotations

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP, CUDA, PYTHON, TRITON, Language
from kernelwright.sandbox.plan.faults import PlanFault, PlanFaultKind
from kernelwright.sandbox.plan.limits import MAX_SCRATCH_BYTES
from kernelwright.sandbox.plan.pattern_plan import (
    LEAST_LENT,
    MAX_SHARE,
    PatternPlan,
    explain_unprepared,
    read_pattern_plan,
)

SPMM = registry.get("spmm_csr")
AXES = {"M": 1000, "N": 32, "K": 800, "nnz": 5000}


def source(block: str) -> str:
    return f"// a kernel\n/*---\n{block}\n---*/\nint x;\n"


def declared(size: str) -> PatternPlan:
    found = read_pattern_plan(source(f"[prepare]\nbytes = {size}"), SPMM)
    assert isinstance(found, PatternPlan)
    return found


@pytest.mark.parametrize(
    ("size", "bytes_"),
    [
        ('"4 * (M + 1) + 8 * nnz"', 44_004),
        ('"4 * cdiv(M, 256)"', 16),
        ("4096", 4096),
        ("0", 0),
        (f"{LEAST_LENT}", LEAST_LENT),
    ],
)
def test_the_size_follows_from_the_axes(size: str, bytes_: int) -> None:
    assert declared(size).bytes(AXES) == bytes_


def test_small_calls_have_small_plans_and_some_room() -> None:
    axes = dict.fromkeys(AXES, 1)
    assert declared(f"{LEAST_LENT}").bytes(axes) == LEAST_LENT
    assert isinstance(declared(f"{LEAST_LENT + 1}").bytes(axes), PlanFault)


@pytest.mark.parametrize(
    ("size", "kind", "words"),
    [
        ('"4 * (nnz - 6000)"', PlanFaultKind.MISTAKE, "-4000 bytes (with nnz = 5000)"),
        ('"4 * M // (nnz - 5000)"', PlanFaultKind.MISTAKE, "division by zero"),
        ('"0.5 * M"', PlanFaultKind.MISTAKE, "not an integer"),
        ('"40 * M * K"', PlanFaultKind.LIMIT, f"{MAX_SHARE} times what a call moves"),
        ('"M * M * M * M * M * M * M"', PlanFaultKind.MISTAKE, "63 bits"),
    ],
)
def test_a_size_that_cannot_be_is_told_with_its_place(
    size: str, kind: PlanFaultKind, words: str
) -> None:
    fault = declared(size).bytes(AXES)
    assert isinstance(fault, PlanFault)
    assert fault.kind is kind
    assert words in fault.reason
    assert fault.line == 4


def test_no_plan_is_larger_than_work_buffers_are() -> None:
    axes = {"M": 1 << 20, "N": 512, "K": 1 << 20, "nnz": 1 << 24}
    assert declared(f"{MAX_SCRATCH_BYTES}").bytes(axes) == MAX_SCRATCH_BYTES
    assert isinstance(declared(f"{MAX_SCRATCH_BYTES + 1}").bytes(axes), PlanFault)


@pytest.mark.parametrize(
    ("block", "words"),
    [
        ("[prepare]", 'needs bytes = "…"'),
        ("prepare = 4", 'needs bytes = "…"'),
        ("[prepare]\nbytes = 4\nwhen = 1", "when"),
        ("[prepare]\nbytes = 4.5", "not an integer below 2^63"),
        ('[prepare]\nbytes = "4 * avg_row"', "avg_row"),
        ('[prepare]\nbytes = "4 * m"', "M"),
        ('[prepare]\nbytes = "M **"', "multiply"),
        ("[prepare]\nbytes = ", "TOML"),
    ],
)
def test_what_is_wrong_in_the_block_is_a_mistake(block: str, words: str) -> None:
    fault = read_pattern_plan(source(block), SPMM)
    assert isinstance(fault, PlanFault)
    assert fault.kind is PlanFaultKind.MISTAKE
    assert words in fault.reason


@pytest.mark.parametrize("text", ["int x;", source('family = "rows"'), source("no TOML")])
def test_a_source_without_the_block_makes_no_plan(text: str) -> None:
    assert read_pattern_plan(text, SPMM) is None
    assert explain_unprepared(text, CPP, SPMM) == ""


BLOCK = "[prepare]\nbytes = 4"


@pytest.mark.parametrize(
    ("text", "language", "problem", "words"),
    [
        (source(BLOCK), CPP, "spmm_csr", ""),
        (source(BLOCK), CPP, "gemm", "gemm has no index inputs"),
        (source(BLOCK), CUDA, "spmm_csr", "for cpp candidates only"),
        (f'"""\n---\n{BLOCK}\n---\n"""\n', TRITON, "spmm_csr", "for cpp candidates only"),
        (f'"""\n---\n{BLOCK}\n---\n"""\n', PYTHON, "spmm_csr", "for cpp candidates only"),
        ("def prepare(:\n", PYTHON, "spmm_csr", ""),
        ("def prepare(): ...\n", PYTHON, "spmm_csr", ""),
    ],
)
def test_it_is_for_cpp_and_for_patterns(
    text: str, language: Language, problem: str, words: str
) -> None:
    said = explain_unprepared(text, language, registry.get(problem))
    assert bool(said) == bool(words)
    assert words in said
