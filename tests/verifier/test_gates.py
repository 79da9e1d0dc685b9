"""The error gates: honest float32 passes, whatever is not the answer does not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from kernelwright.kernelbench.precision import Precision
from kernelwright.kernelbench.problem import Expected, Family
from kernelwright.traces.records import Check
from kernelwright.verifier.truth import gates
from kernelwright.verifier.truth.poison import PATTERNS

POISON = PATTERNS[0]


def check(
    got: np.ndarray, expected: Expected, family: Family = Family.NORMAL, poison: int | None = POISON
) -> dict[str, Check]:
    found = gates.check_output("y", got, expected, Precision(), family, poison=poison)
    return {c.name: c for c in found}


def passes(got: np.ndarray, expected: Expected, family: Family = Family.NORMAL) -> bool:
    return all(c.passed for c in check(got, expected, family).values())


def dot_products(rows: int, length: int, seed: int, low: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    a = rng.uniform(low, 1, (rows, length)).astype(np.float32)
    return a, rng.uniform(low, 1, (rows, length)).astype(np.float32)


def truth(a: np.ndarray, b: np.ndarray) -> Expected:
    exact = a.astype(np.float64) * b
    return Expected(exact.sum(1), np.abs(exact).sum(1), float(a.shape[1]))


@pytest.mark.parametrize("length", [1, 7, 256, 4096, 65536])
@pytest.mark.parametrize("low", [0.0, -1.0], ids=["one sign", "both signs"])
def test_sequential_float32_sums_pass(length: int, low: float) -> None:
    a, b = dot_products(16, length, length, low)
    naive = np.cumsum(a * b, axis=1, dtype=np.float32)[:, -1]
    assert passes(naive, truth(a, b))


@pytest.mark.parametrize("length", [16, 256, 4096])
def test_half_precision_inputs_fail(length: int) -> None:
    a, b = dot_products(64, length, 1, -1.0)
    half = truth(a.astype(np.float16).astype(np.float32), b.astype(np.float16).astype(np.float32))
    found = check(half.value.astype(np.float32), truth(a, b))
    assert not all(c.passed for c in found.values())


def test_honest_sums_that_one_early_term_outweighs_pass() -> None:
    """Their errors are spread the widest; with half of the allowance some of them would fail."""
    rng = np.random.default_rng(3)
    terms = rng.uniform(-1e-3, 1e-3, (300_000, 40)).astype(np.float32)
    terms[:, 0] = 1.05
    got = np.add.accumulate(terms, axis=1, dtype=np.float32)[:, -1]
    exact = terms.astype(np.float64)
    found = check(got, Expected(exact.sum(1), np.abs(exact).sum(1), 40.0))[gates.SCALED]
    assert found.figure is not None
    assert 0.55 < found.figure <= 1.0


def test_the_probe_sees_a_downcast_that_a_long_sum_hides() -> None:
    a, b = dot_products(8, 1 << 14, 2, 0.5)
    a[:, 3:] = 0
    wide = Expected(truth(a, b).value, truth(a, b).scale, 1e9)
    halved = truth(a.astype(np.float16).astype(np.float32), b).value.astype(np.float32)
    found = check(halved, wide, Family.PROBE)
    assert found[gates.SCALED].passed
    assert not found[gates.PROBE].passed
    assert passes(wide.value.astype(np.float32), wide, Family.PROBE)


@pytest.mark.parametrize("what", [np.zeros_like, np.ones_like, np.negative])
def test_null_outputs_fail(what: object) -> None:
    a, b = dot_products(64, 100, 3, -1.0)
    expected = truth(a, b)
    assert callable(what)
    assert not passes(what(expected.value).astype(np.float32), expected)


def test_one_wrong_element_is_found_and_named() -> None:
    rng = np.random.default_rng(4)
    value = rng.normal(size=(300, 7, 50))
    got = value.astype(np.float32)
    got[217, 3, 41] += np.float32(1e-3)
    found = check(got, Expected(value, np.abs(value)))[gates.SCALED]
    assert not found.passed
    assert found.figure is not None
    assert found.figure > 1000
    assert found.detail.startswith(f"y[217, 3, 41]: got {got[217, 3, 41]:.9g}, want ")


@pytest.mark.parametrize(
    ("want", "got", "passed"),
    [
        (np.nan, np.nan, True),
        (np.nan, 1.0, False),
        (1.0, np.nan, False),
        (np.inf, np.inf, True),
        (np.inf, -np.inf, False),
        (-np.inf, -np.inf, True),
        (np.inf, np.nan, False),
        (np.inf, 3e38, False),
        (1e39, np.inf, True),
        (-1e39, np.inf, False),
        (1.0, np.inf, False),
    ],
)
def test_nan_and_infinity_must_stand_where_the_answer_has_them(
    want: float, got: float, passed: bool
) -> None:
    value = np.ones((5, 40))
    value[3, 7] = want
    output = np.ones((5, 40), dtype=np.float32)
    output[3, 7] = got
    found = check(output, Expected(value, np.ones((5, 40))))
    assert found[gates.POSITIONS].passed is passed
    assert found[gates.SCALED].passed
    if not passed:
        assert "y[3, 7]" in found[gates.POSITIONS].detail


def test_a_wrong_value_beside_an_expected_nan_is_seen() -> None:
    value = np.ones((5, 40))
    value[3, 7] = np.nan
    output = value.astype(np.float32)
    output[3, 8] = 2
    assert not check(output, Expected(value, np.ones((5, 40))))[gates.SCALED].passed


@pytest.mark.parametrize("pattern", PATTERNS)
def test_poison_left_behind_is_counted(pattern: int) -> None:
    value = np.random.default_rng(5).normal(size=(100, 33))
    got = value.astype(np.float32)
    got.view(np.uint32)[90, 2:5] = pattern
    found = check(got, Expected(value, np.abs(value)), poison=pattern)
    assert found[gates.WRITTEN].figure == 3
    assert "3 of 3300 never written; first y[90, 2]" in found[gates.WRITTEN].detail
    assert gates.first_failure(found.values()) is found[gates.WRITTEN]
    assert gates.WRITTEN not in check(got, Expected(value, np.abs(value)), poison=None)


def test_exact_trials_are_held_bit_for_bit_but_for_the_sign_of_zero() -> None:
    value = np.array([[0.0, 1.0, -3.0, np.nan]])
    expected = Expected(value, np.abs(value), 8.0)
    good = np.array([[-0.0, 1.0, -3.0, np.nan]], dtype=np.float32)
    assert passes(good, expected, Family.EXACT)
    off = good.copy()
    off[0, 1] = np.nextafter(np.float32(1), np.float32(2))
    assert passes(off, expected, Family.NORMAL)
    assert check(off, expected, Family.EXACT)[gates.EXACT].figure == 1
    assert not passes(off, Expected(value, np.abs(value), 8.0, is_exact=True))


def test_integers_are_always_exact() -> None:
    expected = Expected(np.array([3.0, 4.0]), np.ones(2))
    assert passes(np.array([3, 4], dtype=np.int32), expected)
    assert not passes(np.array([3, 5], dtype=np.int32), expected)


@pytest.mark.parametrize(
    "got", [np.zeros((3, 4)), np.zeros((4, 3), np.float32), np.zeros((3, 4), np.int64)]
)
def test_shape_and_dtype_must_match(got: np.ndarray) -> None:
    found = check(got, Expected(np.zeros((3, 4)), np.ones((3, 4))))
    assert [c.passed for c in found.values()] == [False]


def test_an_infinite_scale_forgives_nothing() -> None:
    value = np.ones((4, 4))
    scale = np.ones((4, 4))
    scale[2, 2] = np.inf
    assert not passes(value.astype(np.float32), Expected(value, scale))


def test_small_elements_of_a_vector_have_no_absolute_allowance() -> None:
    value = np.array([1e6, 1e-3])
    got = np.array([1e6, 0.0], dtype=np.float32)
    assert not passes(got, Expected(value, np.abs(value)))


def test_an_element_that_cancels_in_its_row_has_one_rounding_of_the_row() -> None:
    value = np.ones((1, 64))
    value[0, 5] = 0
    scale = np.zeros_like(value)
    got = value.astype(np.float32)
    got[0, 5] = 2.0**-25
    assert passes(got, Expected(value, scale))
    got[0, 5] = 2.0**-20
    assert not passes(got, Expected(value, scale))


def test_denormal_products_may_round_to_the_denormal_grid() -> None:
    rng = np.random.default_rng(6)
    a = (rng.integers(1, 1 << 22, (4, 100)) * 2.0**-149).astype(np.float32)
    b = rng.uniform(-1, 1, (4, 100)).astype(np.float32)
    naive = np.cumsum(a * b, axis=1, dtype=np.float32)[:, -1]
    assert passes(naive, truth(a, b))
    assert not passes(np.zeros_like(naive), truth(a, b))


@pytest.mark.parametrize("seed", range(4))
def test_a_long_sum_of_sorted_terms_may_cancel(seed: int) -> None:
    """Its partial sums go far beyond where sums of random signs go, and round accordingly."""
    terms = np.sort(np.random.default_rng(seed).standard_normal((4, 70_001), np.float32), axis=1)
    terms -= terms.mean(axis=1, keepdims=True)
    exact = terms.astype(np.float64)
    expected = Expected(exact.sum(1), np.abs(exact).sum(1), 70_001.0)
    one_after_the_other = np.cumsum(terms, axis=1, dtype=np.float32)[:, -1].copy()
    assert passes(one_after_the_other, expected, Family.SORTED)
    assert not check(one_after_the_other, expected)[gates.NRMSE].passed
    wrong = (one_after_the_other + expected.scale * 2e-4).astype(np.float32)
    assert not passes(wrong, expected, Family.SORTED)


def test_a_wrong_block_of_rows_fails_nrmse_even_if_its_scale_is_huge() -> None:
    value = np.random.default_rng(7).normal(size=(4096, 64))
    got = value.astype(np.float32)
    got[4000:] *= np.float32(1.0005)
    lax = Expected(value, np.full((4096, 64), 10.0), 1000.0)
    found = check(got, lax)
    assert not found[gates.NRMSE].passed
    assert found[gates.NRMSE].limit == pytest.approx(1e-5)


def test_scalars_and_empty_outputs_are_checked() -> None:
    assert passes(np.array(2.0, np.float32), Expected(np.array(2.0), np.array(2.0)))
    assert not passes(np.array(2.1, np.float32), Expected(np.array(2.0), np.array(2.0)))
    assert passes(np.zeros((0, 4), np.float32), Expected(np.zeros((0, 4)), np.zeros((0, 4))))


@settings(max_examples=60, deadline=None)
@given(
    bits=hnp.arrays(np.uint32, st.tuples(st.integers(1, 6), st.integers(1, 40))),
    seed=st.integers(0, 1000),
    family=st.sampled_from(Family),
)
def test_any_bytes_are_judged_and_never_pass_for_noise(
    bits: np.ndarray, seed: int, family: Family
) -> None:
    value = np.random.default_rng(seed).normal(size=bits.shape)
    got = bits.view(np.float32)
    expected = Expected(value, np.abs(value))
    right = np.abs(got.astype(np.float64) - value) <= 1e-5
    if not bool(right.all()):
        assert not passes(got, expected, family)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), error=st.floats(1e-9, 1e-3), more=st.floats(1.0, 100.0))
def test_a_larger_error_never_passes_where_a_smaller_one_failed(
    seed: int, error: float, more: float
) -> None:
    rng = np.random.default_rng(seed)
    value = rng.normal(size=(8, 16))
    direction = np.sign(rng.normal(size=value.shape))
    small = (value + error * direction).astype(np.float32)
    large = (value + error * more * direction + 2.0**-24 * direction).astype(np.float32)
    expected = Expected(value, np.abs(value))
    assert passes(small, expected) or not passes(large, expected) or error * more < 1e-7


@given(shape=st.lists(st.integers(0, 9), min_size=1, max_size=4), size=st.integers(1, 50))
def test_blocks_cover_every_element_once(shape: list[int], size: int) -> None:
    seen = np.zeros(shape, dtype=int)
    for block in gates.blocks(tuple(shape), size):
        part = seen[block]
        assert part.size <= max(size, 1)
        part += 1
    assert (seen == 1).all()
