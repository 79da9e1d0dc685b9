"""Candidates with anything in their front matter: launches within the limits, or one fault."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.features import features
from kernelwright.kernelbench.problem import Structure
from kernelwright.kernelbench.targets import ARCHITECTURES, MAX_GRID
from kernelwright.sandbox.front_matter import FilePlace
from kernelwright.sandbox.plan import Launches, PlanFault, parse, resolve, suspicions
from kernelwright.sandbox.plan.faults import REASON_CHARACTERS, PlanRefusedError
from kernelwright.sandbox.plan.grammar import parse_expression
from kernelwright.sandbox.plan.limits import MAX_SCRATCH_BYTES
from kernelwright.sandbox.plan.model import ArgumentKind
from kernelwright.tests.fuzz.target import Target, attempt, edited, edits
from kernelwright.tests.sandbox.plan.conftest import CUDA, TRITON

SOURCES = {"cuda": CUDA, "triton": TRITON}
_PIECES = st.sampled_from(
    (
        "M",
        "N",
        "nnz",
        "avg_row",
        "ROWS",
        "C",
        "partial",
        "cdiv(",
        "max(",
        ")",
        ",",
        "//",
        "%",
        "*",
        "-",
        "<",
        "and",
        "not",
        "if",
        "else",
        "0",
        "9223372036854775807",
        "2.5",
        " ",
        "1e400",
        "((((",
    )
)
_EXPRESSIONS = st.lists(_PIECES, max_size=8).map(" ".join)
_VALUES = st.one_of(
    _EXPRESSIONS.map('"{}"'.format),
    _EXPRESSIONS.map('["{}"]'.format),
    st.integers(-(2**65), 2**65).map(str),
    st.sampled_from(
        (
            "true",
            "[]",
            "[[1]]",
            "{}",
            "{f32 = nan}",
            '{buffer = "C", offset = "M"}',
            "inf",
            "1979-05-27",
            "'''\n'''",
            "[1, 1, 1]",
            "[1024]",
            "65536",
        )
    ),
)
_KEYS = st.sampled_from(
    (
        "kernel",
        "when",
        "grid",
        "block",
        "cluster",
        "shared_bytes",
        "args",
        "constexpr",
        "num_warps",
        "num_ctas",
        "zero",
        "shape",
        "dtype",
        "ROWS",
        "BLOCK",
        "language",
        "x.y",
        '"."',
    )
)


@st.composite
def _sources(draw: st.DrawFn) -> tuple[str, str, str]:
    """A source with some values exchanged and some bytes edited, and a target."""
    language = draw(st.sampled_from(sorted(SOURCES)))
    lines = SOURCES[language].split("\n")
    told = [at for at, line in enumerate(lines) if " = " in line or "   = " in line]
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.sampled_from(told[:12]))
        key = draw(_KEYS) if draw(st.integers(0, 3)) == 0 else lines[at].partition("=")[0].strip()
        lines[at] = f"{key} = {draw(_VALUES)}"
    raw = "\n".join(lines).encode()
    if draw(st.integers(0, 3)) == 0:
        raw = edited(raw, draw(edits(2)))
    target = draw(st.sampled_from(sorted(ARCHITECTURES)))
    return (
        raw.decode(errors=draw(st.sampled_from(("replace", "surrogateescape")))),
        language,
        target,
    )


@cache
def _structure() -> Structure:
    problem = registry.get("spmm_csr")
    return problem.structure(problem.workload("tiny"))


def _check_fault(fault: PlanFault, source: str) -> None:
    assert fault.reason
    assert fault.reason.isprintable()
    assert len(fault.reason) <= REASON_CHARACTERS
    lines = source.split("\n")
    assert 1 <= fault.line <= len(lines) + 1
    assert fault.column >= 1


def check(drawn: tuple[str, str, str]) -> None:
    """What comes out can be launched and packed, or says where in the file it is wrong."""
    source, language, target = drawn
    plan = parse(source, language)
    if isinstance(plan, PlanFault):
        _check_fault(plan, source)
        return
    suspicions(plan)
    problem, structure, target_ = registry.get("spmm_csr"), _structure(), ARCHITECTURES[target]
    found = resolve(plan, problem, structure.axes, features(structure), target_)
    if isinstance(found, PlanFault):
        _check_fault(found, source)
        return
    _check_launches(found, target)


def _check_launches(found: Launches, target: str) -> None:
    limits = ARCHITECTURES[target]
    assert len(found.pack()) % 8 == 0
    assert sum(_bytes(each.shape) for each in found.scratch) <= MAX_SCRATCH_BYTES
    for launch in found.launches:
        assert launch.kernel < len(found.kernels)
        assert 1 <= launch.threads <= 1024
        assert all(1 <= n <= most for n, most in zip(launch.grid, MAX_GRID, strict=True))
        assert 0 <= launch.shared_bytes <= limits.shared_per_block
        assert 1 <= launch.cluster[0] * launch.cluster[1] * launch.cluster[2] <= limits.max_cluster
        for argument in launch.arguments:
            if argument.kind is ArgumentKind.TENSOR:
                assert 0 <= argument.value < 5
            elif argument.kind is ArgumentKind.SCRATCH:
                assert 0 <= argument.value < len(found.scratch)


def _bytes(shape: tuple[int, ...]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


def check_expression(text: str) -> None:
    """An expression has a value in the range, or is refused at a character of it."""
    values: dict[str, Any] = {"M": 7, "nnz": 2**40, "avg_row": 2.5, "ROWS": 0, "N": -3}
    value = attempt(
        lambda: parse_expression(text, lambda at: FilePlace(1, 1 + at)).evaluate(values),
        PlanRefusedError,
    )
    if isinstance(value, PlanRefusedError):
        assert value.fault.reason
        assert 1 <= value.fault.column <= len(text) + 1
    else:
        assert abs(value) < 2**63 or isinstance(value, float)


TARGETS = (
    Target("launch plans", _sources(), check, 200),
    Target("expressions", _EXPRESSIONS | st.text(max_size=40), check_expression, 200),
)
