"""Outputs that are rounded at random: what their distribution shows, and what it may not refuse."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.codecs import encode_by_streams, host_dtype, neighbours
from kernelwright.kernelbench.dtypes import BFLOAT16, FLOAT16, DType
from kernelwright.kernelbench.problem import Expected, Family
from kernelwright.traces.records import Check
from kernelwright.verifier.clock.answers import Answer
from kernelwright.verifier.truth import gates, random_rounding
from kernelwright.verifier.truth.poison import PATTERNS
from kernelwright.verifier.truth.random_rounding import (
    CHECKS,
    INDEPENDENT,
    NEIGHBOUR,
    REPEATED,
    SHARES,
)
from kernelwright.verifier.truth.trials import make_item

PROBLEM = registry.get("stochastic_round")
Bits = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
"""16 random bits from seeds, rows and columns, uint32 [M, N]."""


def mix(stream: np.ndarray, j: np.ndarray) -> np.ndarray:
    h = stream.astype(np.uint32) * np.uint32(0x9E3779B1)
    h = (h ^ h >> np.uint32(16)) * np.uint32(0x85EBCA6B)
    h = (h ^ h >> np.uint32(13)) + j.astype(np.uint32) * np.uint32(0xC2B2AE35)
    h = (h ^ h >> np.uint32(16)) * np.uint32(0x7FEB352D)
    return ((h ^ h >> np.uint32(15)) * np.uint32(0x846CA68B)) >> np.uint32(16)


def counter(seed: np.ndarray, _: np.ndarray, j: np.ndarray) -> np.ndarray:
    return (seed.astype(np.uint32) + j.astype(np.uint32) * np.uint32(1664525)) >> np.uint32(16)


def keep(bits: np.ndarray, upper: int) -> np.ndarray:
    return bits & np.uint32(0xFFFF << (16 - upper) & 0xFFFF)


WRONG: dict[str, tuple[Bits, str]] = {
    "to the nearest": (lambda s, _, j: np.full_like(mix(s, j), 0x8000), SHARES),
    "cut": (lambda s, _, j: np.zeros_like(mix(s, j)), SHARES),
    "as often up as down": (lambda s, _, j: (mix(s, j) & np.uint32(1)) * np.uint32(0xFFFF), SHARES),
    "a third of the randomness": (lambda s, _, j: mix(s, j) // np.uint32(3), SHARES),
    "no part of the seed": (lambda s, _, j: mix(0 * s + 7, j), INDEPENDENT),
    "no part of the column": (lambda s, _, j: mix(s, 0 * j), INDEPENDENT),
    "pairs with the same bits": (lambda s, _, j: mix(s, j // 2), INDEPENDENT),
    "an even counter": (counter, INDEPENDENT),
    "the row's number for its seed": (lambda _, i, j: mix(i, j), REPEATED),
}


def round_with(bits: Bits, inputs: dict[str, np.ndarray]) -> np.ndarray:
    x, seed = inputs["x"], inputs["seed"]
    i, j = np.indices(x.shape)
    given = x.view(np.uint32)
    carried = given + bits(seed[:, None] + 0 * j, i, j) * np.isfinite(x).astype(np.uint32)
    found: np.ndarray = (carried & np.uint32(0xFFFF0000)).view(np.float32)
    return found.astype(host_dtype(BFLOAT16))


def hold(bits: Bits, family: Family, workload: str = "tiny", seed: int = 3) -> list[Check]:
    structure = PROBLEM.structure(PROBLEM.workload(workload))
    inputs = PROBLEM.values(structure, family, np.random.default_rng(seed))
    expected = PROBLEM.oracle(structure, inputs)["y"]
    y = round_with(bits, inputs)
    return gates.check_output("y", y, expected, PROBLEM.precision, family, poison=None)


@pytest.mark.parametrize("family", PROBLEM.families)
def test_a_right_kernel_passes_on_every_family(family: Family) -> None:
    for seed in range(10):
        found = hold(lambda s, _, j: mix(s, j), family, seed=seed)
        assert gates.first_failure(found) is None
        assert [check.name for check in found[-4:]] == [NEIGHBOUR, REPEATED, SHARES, INDEPENDENT]


@pytest.mark.parametrize("name", WRONG)
def test_bits_that_are_not_random_enough_show_on_a_small_answer(name: str) -> None:
    bits, where = WRONG[name]
    shown = {
        check.name
        for family in (Family.NORMAL, Family.UNIFORM, Family.CONSTANT, Family.LAPLACE)
        for check in hold(bits, family)
        if not check.passed
    }
    assert where in shown


@pytest.mark.parametrize(("upper", "passes"), [(8, False), (12, False), (16, True)])
def test_too_few_random_bits_show_on_a_large_answer(upper: int, passes: bool) -> None:
    found = hold(lambda s, _, j: keep(mix(s, j), upper), Family.OUTLIERS, "1024x4096")
    assert all(check.passed for check in found) is passes


def expect(value: np.ndarray, streams: np.ndarray) -> Expected:
    return Expected(value, np.zeros(1), streams=streams)


def judge(got: np.ndarray, expected: Expected) -> set[str]:
    found = gates.check_output("y", got, expected, PROBLEM.precision, Family.NORMAL, poison=None)
    return {check.name for check in found if not check.passed}


def test_what_is_neither_neighbour_or_has_another_sign_shows() -> None:
    value = np.full((4, 8), 1.001)
    expected = expect(value, np.arange(4))
    right = expected.store_as(host_dtype(BFLOAT16))
    assert judge(right, expected) == set()
    for wrong in (1.015625, 0.99609375, -1.0, 0.0):
        got = right.copy()
        got[2, 5] = wrong
        assert NEIGHBOUR in judge(got, expected)
        checks = gates.check_output(
            "y", got, expected, PROBLEM.precision, Family.NORMAL, poison=None
        )
        assert "y[2, 5]" in next(c.detail for c in checks if c.name == NEIGHBOUR)


def test_ends_of_the_type_nan_and_infinity() -> None:
    last = BFLOAT16.largest
    value = np.array(
        [[np.nan, np.inf, -np.inf, np.nextafter(last, np.inf), last, 0.0, -(2.0**-134)]]
    )
    expected = expect(value, np.zeros(1))
    got = np.array([[np.nan, np.inf, -np.inf, np.inf, last, 0.0, -0.0]]).astype(
        host_dtype(BFLOAT16)
    )
    assert judge(got, expected) == set()
    got[0, 3] = last
    assert judge(got, expected) == set()
    got[0, 4] = np.inf
    assert judge(got, expected) != set()


def test_rows_of_one_stream_differ_where_their_numbers_do() -> None:
    rng = np.random.default_rng(5)
    value = rng.standard_normal((6, 300))
    value[3] = value[1]
    expected = expect(value, np.array([1, 2, 1, 2, 3, 3]))
    got = expected.store_as(host_dtype(BFLOAT16))
    assert judge(got, expected) == set()
    got[3] = expect(value[3:4], np.zeros(1)).store_as(got.dtype)
    assert judge(got, expected) == {REPEATED}


def test_what_a_call_has_left_out_is_filled_with_bits_of_its_own() -> None:
    """As an emulation leaves programs out: of rows with the same bits one may be there alone."""
    structure = PROBLEM.structure(PROBLEM.workload("tiny"))
    item = make_item(PROBLEM, structure, Family.NORMAL, np.random.default_rng(4))
    y = round_with(lambda s, _, j: mix(s, j), item.inputs)
    known = np.random.default_rng(1).random(len(y)) < 0.5
    kept = np.repeat(known[:, None], y.shape[1], 1)
    got = np.where(kept, y, np.zeros_like(y))
    assert Answer(PROBLEM, item, {"y": got}, PATTERNS[0], (), {"y": kept}).failure() is None
    wrong = np.where(kept, item.inputs["x"].astype(y.dtype), got)
    failure = Answer(PROBLEM, item, {"y": wrong}, PATTERNS[0], (), {"y": kept}).failure()
    assert failure is not None
    assert failure.name == SHARES


def test_small_answers_are_never_refused_for_chance() -> None:
    """A bound that holds for sums of any length, where a normal distribution would not."""
    for shape in ((1, 1), (1, 7), (5, 1), (3, 2)):
        for seed in range(300):
            value = np.random.default_rng(seed).standard_normal(shape)
            expected = expect(value, np.arange(shape[0]))
            assert judge(expected.store_as(host_dtype(FLOAT16)), expected) == set()


def test_a_vector_has_a_stream_for_each_element() -> None:
    value = np.random.default_rng(1).standard_normal(20_000)
    expected = expect(value, np.arange(value.size))
    assert judge(expected.store_as(host_dtype(BFLOAT16)), expected) == set()
    assert judge(value.astype(host_dtype(BFLOAT16)), expected) == {SHARES}


@pytest.mark.parametrize("dtype", [FLOAT16, BFLOAT16], ids=str)
def test_neighbours_of_numbers_between_all_codes(dtype: DType) -> None:
    codes = np.arange(1 << 15, dtype=np.uint16)
    numbers = codes[: int(np.array(np.inf, host_dtype(dtype)).view(np.uint16))]
    elements = numbers.view(host_dtype(dtype)).astype(np.float64)
    between = (elements[1:] + elements[:-1]) / 2
    for sign in (1, -1):
        low, high = neighbours(sign * between, dtype)
        ends = (elements[:-1], elements[1:]) if sign > 0 else (-elements[1:], -elements[:-1])
        assert np.array_equal(low, ends[0])
        assert np.array_equal(high, ends[1])
        assert all(
            np.array_equal(each, sign * elements) for each in neighbours(sign * elements, dtype)
        )


def test_rows_of_one_stream_are_encoded_with_the_same_bits() -> None:
    value = np.tile(np.random.default_rng(2).standard_normal(500), (3, 1))
    found = encode_by_streams(value, BFLOAT16, np.array([4, 9, 4])).astype(np.float64)
    assert np.array_equal(found[0], found[2])
    assert not np.array_equal(found[0], found[1])


def test_checks_are_named_in_one_place() -> None:
    assert set(CHECKS) == {NEIGHBOUR, SHARES, INDEPENDENT, REPEATED}
    assert random_rounding.RISK <= 1e-9
