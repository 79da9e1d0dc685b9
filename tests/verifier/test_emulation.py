"""What an emulated verdict on a Triton candidate covers: long shapes, where it can afford them."""

from __future__ import annotations

import pytest

from kernelwright.kernelbench.recipes import get
from kernelwright.sandbox.triton_on_cpu.interpreting import UNWRITTEN
from kernelwright.tests.court import Court
from kernelwright.traces.records import Check, Depth, Status, Verdict
from kernelwright.verifier.clock.answers import AnsweredShare
from kernelwright.verifier.failure import Failed
from kernelwright.verifier.request import Order
from kernelwright.verifier.stands import emulated
from kernelwright.verifier.stands.verdict_draft import Draft
from kernelwright.verifier.truth import poison

LONG = 8192


def source() -> str:
    recipe = get("bias_gelu", "tiled", "triton")
    return recipe.render(recipe.first_knobs())


def looked(court: Court, text: str, protocol: Depth) -> Verdict:
    return court.look(text, "bias_gelu", "triton", protocol, seed=b"long shapes here")


def is_long(check: Check) -> bool:
    """Whether the check's name holds a size beyond the limit: `hidden shape 1 (M=3, N=65601)`."""
    sizes = [word.strip("),").partition("=")[2] for word in check.name.split()]
    return any(size.isdecimal() and int(size) > LONG for size in sizes)


@pytest.mark.slow
def test_a_long_shape_is_tried_beyond_a_screening(court: Court) -> None:
    promoted = looked(court, source(), Depth.CONFIRM)
    assert promoted.status is Status.SCREENED, promoted.reasons
    assert any(is_long(check) for check in promoted.checks)


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.parametrize("pattern", poison.PATTERNS)
def test_a_mistake_on_long_shapes_only_is_seen(
    court: Court, pattern: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of grids of which a part runs, too, and whatever the outputs held before."""
    monkeypatch.setattr(poison, "choose", lambda _: pattern)
    wrong = source().replace("gelu(x + bias), mask=inside", "gelu(x + bias), mask=inside & SHORT")
    wrong = wrong.replace("SHORT", "(column < 65536)")
    verdict = looked(court, wrong, Depth.CONFIRM)
    assert verdict.status is Status.INCORRECT
    assert is_long(next(check for check in verdict.checks if not check.passed))


def test_what_says_unwritten_is_none_of_the_patterns_before() -> None:
    assert UNWRITTEN not in poison.PATTERNS


ROWS = """
import torch
import triton
import triton.language as tl


@triton.jit
def gelu(x, bias, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for start in range(0, N, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * N + at, mask=at < N, other=0.0)
        v += tl.load(bias + at, mask=at < N, other=0.0)
        u = 0.7978845608028654 * (v + 0.044715 * v * v * v)
        tl.store(y + row * N + at, v / (1.0 + tl.exp(-2.0 * u)), mask=at < N)


def run(M, N, x, bias):
    y = torch.empty_like(x)
    gelu[(M,)](x, bias, y, N, BLOCK=1024)
    return y
"""


@pytest.mark.slow
def test_a_program_for_each_row_is_sampled_and_it_is_said(court: Court) -> None:
    verdict = looked(court, ROWS, Depth.FULL)
    assert verdict.status is Status.SCREENED, verdict.reasons
    (said,) = verdict.unchecked
    assert "the first, the last and random programs ran" in said
    assert "of all answers were judged" in said


@pytest.mark.slow
def test_a_row_number_that_overflows_is_seen(court: Court) -> None:
    wrong = ROWS.replace("row = tl.program_id(0)", "row = tl.program_id(0).to(tl.int16)")
    wrong = wrong.replace("row * N", "row.to(tl.int32) * N")
    verdict = looked(court, wrong, Depth.FULL)
    assert verdict.status is Status.CRASHED
    assert "reads out of bounds" in verdict.reasons[0]
    assert "line 12" in verdict.reasons[0]


def test_nothing_judged_is_neither_a_pass_nor_a_failure(court: Court) -> None:
    session = court.emulated("bias_gelu", "triton").session
    draft = Draft(Order(source="", language="triton"), session, b"")
    emulated.left_out(draft, AnsweredShare(calls=3))
    assert not draft.unchecked
    emulated.left_out(draft, AnsweredShare(calls=3, partial=2, unanswered=1, judged=5, elements=10))
    assert "50 % of all answers were judged, in 1 of them none" in draft.unchecked[0]
    with pytest.raises(Failed) as refused:
        emulated.left_out(draft, AnsweredShare(calls=3, partial=3, unanswered=3, elements=10))
    assert refused.value.status is Status.UNSUPPORTED


def test_a_source_that_cannot_be_built_has_its_status(court: Court) -> None:
    """Its refusal leaves the timing of the build, which is a context manager, as it came."""
    verdict = looked(court, source().replace("grid =", "mesh ="), Depth.SCREEN)
    assert verdict.status is Status.BUILD_FAILED
    assert "mesh" in verdict.reasons[0]
