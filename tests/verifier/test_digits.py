"""Digits of an answer: what was rounded to fewer than its type has shows in its bits."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Expected, Family
from kernelwright.verifier.truth import gates
from kernelwright.verifier.truth.digits import DIGITS, FEWEST

TF32 = registry.get("gemm_tf32").precision


def cut(x: np.ndarray, bits: int) -> np.ndarray:
    kept = np.uint32(0xFFFFFFFF << (23 - bits) & 0xFFFFFFFF)
    return (x.astype(np.float32).view(np.uint32) & kept).view(np.float32)


def product(k: int, rng: np.random.Generator) -> tuple[np.ndarray, Expected]:
    """What tensor cores give of factors that are cut to 10 bits, and the truth."""
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((40, k), (k, 30)))
    wide = a.astype(np.float64) @ b
    scale = np.abs(a).astype(np.float64) @ np.abs(b)
    got = (cut(a, 10).astype(np.float64) @ cut(b, 10)).astype(np.float32)
    return got, Expected(wide, scale, float(k))


def failed(got: np.ndarray, expected: Expected, family: Family = Family.NORMAL) -> set[str]:
    found = gates.check_output("C", got, expected, TF32, family, poison=None)
    return {check.name for check in found if not check.passed}


@pytest.mark.parametrize("k", [1, 2, 7, 300])
def test_answers_of_cut_factors_have_their_digits(k: int) -> None:
    got, expected = product(k, np.random.default_rng(k))
    assert failed(got, expected) == set()
    for bits in (10, 11):
        # Of long sums the error law says nothing of it.
        shown = failed(cut(got, bits), expected)
        assert shown == {DIGITS} if k > 2 else DIGITS in shown
    # Of a family whose numbers may have few digits nothing is asked.
    assert failed(cut(got, 10), expected, Family.EXACT) - {"exact bits"} == set()


def test_other_policies_and_few_answers_are_not_asked() -> None:
    got, expected = product(5, np.random.default_rng(2))
    few = Expected(expected.value[:1, : FEWEST - 3], expected.scale[:1, : FEWEST - 3], 5.0)
    assert failed(cut(got, 10)[:1, : FEWEST - 3], few) == set()
    strict = registry.get("gemm").precision
    names = [
        c.name for c in gates.check_output("C", got, expected, strict, Family.NORMAL, poison=None)
    ]
    assert DIGITS not in names


def test_whole_numbers_may_be_short() -> None:
    value = np.arange(1, 101, dtype=np.float64)
    assert failed(value.astype(np.float32), Expected(value, value, 1.0)) == set()
