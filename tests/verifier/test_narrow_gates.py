"""The error gates where answers are rounded to float16 or bfloat16, and where factors are TF32."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.kernelbench.codecs import host_dtype
from kernelwright.kernelbench.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from kernelwright.kernelbench.precision import TF32, TF32X3, Precision, precision_of
from kernelwright.kernelbench.problem import Expected, Family
from kernelwright.verifier.truth import gates
from kernelwright.verifier.truth.poison import PATTERNS

NARROW = [FLOAT16, BFLOAT16]


def passes(got: np.ndarray, expected: Expected, precision: Precision) -> bool:
    found = gates.check_output("y", got, expected, precision, Family.NORMAL, poison=PATTERNS[0])
    return gates.first_failure(found) is None


def sums(
    shape: tuple[int, ...], length: int, dtype: DType, seed: int
) -> tuple[np.ndarray, Expected]:
    """Sums in float32, one term after the other, and the truth, of inputs of this type."""
    rng = np.random.default_rng(seed)
    a, b = (
        rng.standard_normal((*shape, length), np.float32).astype(host_dtype(dtype)) for _ in "ab"
    )
    terms = a.astype(np.float64) * b.astype(np.float64)
    added = np.add.accumulate(terms.astype(np.float32), axis=-1)[..., -1]
    return added, Expected(terms.sum(-1), np.abs(terms).sum(-1), float(length))


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("shape", [(1,), (2, 2), (3, 1), (40, 50)])
@pytest.mark.parametrize("length", [1, 3, 300])
def test_what_is_rounded_once_passes_however_few_there_are(dtype, shape, length) -> None:
    precision = precision_of([dtype], [dtype], 1e-5)
    for seed in range(200 if len(shape) < 2 or shape[0] < 9 else 3):
        added, expected = sums(shape, length, dtype, seed)
        assert passes(added.astype(host_dtype(dtype)), expected, precision), seed


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_equal_answers_that_all_round_the_same_way_pass(dtype) -> None:
    """Just above a power of two, and half a step beside what the type holds."""
    value = np.full((50, 40), 1 + 0.998 * dtype.roundoff)
    precision = precision_of([dtype], [dtype], 1e-5)
    assert passes(value.astype(host_dtype(dtype)), Expected(value, value, 4.0), precision)
    largest = np.full((50, 40), 2 - 0.998 * dtype.roundoff / 2)
    up = np.full_like(largest, 2.0).astype(host_dtype(dtype))
    assert passes(up, Expected(largest, largest, 4.0), precision)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_another_rounding_on_the_way_fails(dtype) -> None:
    precision, host = precision_of([dtype], [dtype], 1e-5), host_dtype(dtype)
    added, expected = sums((40, 50), 40, dtype, 1)
    nearest = added.astype(host)
    towards_zero = np.abs(nearest.astype(np.float32)) > np.abs(added)
    cut = (nearest.view(np.uint16) - towards_zero).view(host)
    assert not passes(cut, expected, precision)
    _, exponents = np.frexp(added)
    step = np.ldexp(np.float32(dtype.roundoff), exponents - 1)
    twice = (np.rint(added / step) * step).astype(host)
    assert not passes(twice, expected, precision)
    assert passes(nearest, expected, precision)


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_half_a_step_is_that_of_the_type(dtype) -> None:
    largest = min(dtype.largest, 1e30)
    size = np.geomspace(dtype.smallest, largest / 2, 2000).astype(host_dtype(dtype))
    following = (size.view(np.uint16) + 1).view(size.dtype)
    steps = following.astype(np.float64) - size.astype(np.float64)
    precision = precision_of([dtype], [dtype], 1e-5).rounded_to(dtype)
    assert np.array_equal(precision.half_step(size.astype(np.float64)), steps / 2)
    assert precision.half_step(np.zeros(1)) == dtype.smallest / 2


@pytest.mark.parametrize(("asked", "is_right"), [(TF32, False), (TF32X3, True)])
def test_only_parts_make_nan_of_infinity(asked, is_right) -> None:
    precision = precision_of([FLOAT32], [FLOAT32], 1e-5, asked)
    value = np.array([[1.0, np.inf, 3.0]])
    expected = Expected(value, np.abs(value), 4.0)
    got = np.array([[1.0, np.nan, 3.0]], np.float32)
    assert passes(got, expected, precision) == is_right
    assert not passes(np.array([[np.nan, np.inf, 3.0]], np.float32), expected, precision)
    assert not passes(np.array([[1.0, 2.0, 3.0]], np.float32), expected, precision)


def test_denormal_factors_cut_to_tf32_pass() -> None:
    rng = np.random.default_rng(2)
    a = (rng.integers(1, 1 << 22, (20, 30)) * 2.0**-149).astype(np.float32)
    cut = (a.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
    expected = Expected(a.astype(np.float64), np.abs(a).astype(np.float64), 1.0)
    assert passes(cut, expected, precision_of([FLOAT32], [FLOAT32], 1e-5, TF32))
    assert not passes(cut, expected, precision_of([FLOAT32], [FLOAT32], 1e-5))


def codes_of(row: np.ndarray) -> tuple[np.ndarray, Expected]:
    """Numbers of a row as shares of 127, in float32, and the truth."""
    top = np.abs(row).max()
    value = row.astype(np.float64) * (127.0 / np.float64(top))
    return row * (np.float32(127) / top), Expected(value, np.abs(value), 16.0, is_code=True)


def test_codes_are_right_on_either_side_of_a_tie_and_nowhere_else() -> None:
    value = np.array([[0.5, 1.5, 2.5 - 1e-7, 2.5 + 1e-7, -126.5, 127.0]])
    expected = Expected(value, np.abs(value), 16.0, is_code=True)
    for right in ([0, 2, 2, 3, -126, 127], [1, 1, 3, 2, -127, 127]):
        assert passes(np.array([right], np.int8), expected, Precision())
    for wrong in ([0, 2, 2, 3, -126, 126], [-1, 2, 2, 3, -126, 127], [0, 3, 2, 3, -126, 127]):
        assert not passes(np.array([wrong], np.int8), expected, Precision())


def test_codes_that_are_not_the_nearest_fail() -> None:
    for seed in range(20):
        row = np.random.default_rng(seed).standard_normal((1, 300), np.float32)
        shares, expected = codes_of(row)
        right = np.rint(shares)
        assert passes(right.astype(np.int8), expected, Precision())
        half = row.astype(np.float16)
        cheats = {
            "cut": np.trunc(shares),
            "down": np.floor(shares),
            "one step up": np.minimum(right + 1, 127),
            "one step beside, once": right + (np.arange(300) == 7) * np.where(right < 0, 1, -1),
            "in half precision": np.rint(half * (np.float16(127) / np.abs(half).max())),
            "one level fewer": np.rint(shares * np.float32(126 / 127)),
            "a sample's largest": np.clip(
                np.rint(
                    row * (np.float32(127) / np.abs(np.where(np.abs(shares) > 126, 0, row)).max())
                ),
                -127,
                127,
            ),
        }
        for name, cheat in cheats.items():
            assert not passes(cheat.astype(np.int8), expected, Precision()), (seed, name)


def test_whole_numbers_that_are_no_codes_are_exact() -> None:
    value = np.array([[0.0, 1.0, 2.0]])
    assert passes(value.astype(np.int8), Expected(value, value), Precision())
    assert not passes(np.array([[0, 1, 3]], np.int8), Expected(value, value + 1e9), Precision())


@pytest.mark.parametrize(("dtype", "strange"), [(FLOAT16, 1), (BFLOAT16, 3)], ids=str)
def test_an_answer_beyond_float16_may_be_infinite_and_is_never_nan(dtype, strange) -> None:
    """What is told of a whole answer without the truth: sums in float32 may be beyond a half."""
    got = np.array([1.0, np.inf, -np.inf, np.nan]).astype(host_dtype(dtype))
    found = gates.look_over("y", got, Family.NORMAL, poison=PATTERNS[0])
    assert [check.figure for check in found] == [0, strange]
    found = gates.look_over("y", got[1:2], Family.NORMAL, poison=PATTERNS[0])
    assert all(check.passed for check in found) == (dtype is FLOAT16)
