"""Scaled codes: a second writing of each scheme, bounds of its errors, and its refusals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kernelwright.errors import UsageError
from kernelwright.kernelbench.codecs import (
    INT4,
    UINT4,
    Integers,
    Scheme,
    Scope,
    codes_of,
    decode_scaled,
    encode_scaled,
)
from kernelwright.kernelbench.dtypes import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT32,
)

INT8, UINT8 = Integers(8), Integers(8, is_signed=False)
GROUP = 4


def scheme(codes: object, scope: Scope, **others: object) -> Scheme:
    return Scheme(codes, scope, GROUP if scope is Scope.GROUP else 0, **others)  # type: ignore[arg-type]


WHOLE = [
    scheme(codes, scope, has_zero_points=has_zero_points)
    for scope in Scope
    for codes, has_zero_points in (
        (INT8, False),
        (INT4, False),
        (INT8, True),
        (UINT8, True),
        (INT4, True),
        (UINT4, True),
    )
]
FLOATS = [scheme(each, scope) for scope in Scope for each in (FLOAT8_E4M3FN, FLOAT8_E5M2)]


def name_of(each: Scheme) -> str:
    return f"{each.codes}-{each.scope}{'-zero' * each.has_zero_points}"


def shares(scope: Scope, shape: tuple[int, ...]) -> dict[tuple[int, ...], list[tuple[int, ...]]]:
    """By the place of a scale, the places of what it is for."""
    found: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for place in itertools.product(*map(range, shape)):
        *rest, last = place
        key = {
            Scope.TENSOR: (0,) * len(shape),
            Scope.ROW: (*rest, 0),
            Scope.CHANNEL: (*(0 for _ in rest), last),
            Scope.GROUP: (*rest, last // GROUP),
        }[scope]
        found.setdefault(key, []).append(place)
    return found


@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 4), (8,)], ids=str)
@pytest.mark.parametrize("each", WHOLE, ids=name_of)
def test_integers_written_down_a_second_time(each: Scheme, shape: tuple[int, ...]) -> None:
    values = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    found = encode_scaled(values, each)
    decoded = decode_scaled(found, each)
    bits = each.codes.bits  # type: ignore[union-attr]
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if str(each.codes).startswith("u"):
        low, high = 0, 2**bits - 1
    for key, places in shares(each.scope, shape).items():
        mine = [float(values[place]) for place in places]
        least, most = min(0.0, *mine), max(0.0, *mine)
        scale, zero, lowest = np.float32(max(most, -least) / high), 0, -high
        if each.has_zero_points:
            scale, lowest = np.float32((most - least) / (high - low)), low
            zero = min(max(round(low - least / float(scale)), low), high)
            assert found.zero_points is not None
            assert found.zero_points[key] == zero
        assert found.scales[key] == scale
        for place, value in zip(places, mine, strict=True):
            code = min(max(round(value / float(scale)) + zero, lowest), high)
            assert found.codes[place] == code
            assert decoded[place] == (code - zero) * float(scale)
    assert found.codes.shape == values.shape
    assert (found.zero_points is not None) == each.has_zero_points


VALUES = arrays.arrays(
    np.float32,
    st.tuples(st.integers(0, 3), st.sampled_from([0, GROUP, 2 * GROUP])),
    elements=st.floats(-(2.0**60), 2.0**60, width=32),
)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(WHOLE), VALUES)
def test_an_integer_is_off_by_half_a_step(each: Scheme, values: np.ndarray) -> None:
    found = encode_scaled(values, each)
    error = np.abs(decode_scaled(found, each) - values.astype(np.float64))
    scales = spread(found.scales, each, values.shape)
    # A zero point is rounded, too, and may push the end of the range out by half a step.
    steps = 1.0 if each.has_zero_points else 0.5
    # Where the scale is no normal float32, what its own rounding loses is lost at the ends.
    high = 2 ** (each.codes.bits - (not each.has_zero_points))  # type: ignore[union-attr]
    lost = high * np.where(
        scales < FLOAT32.smallest_normal, FLOAT32.smallest / 2, scales * 2.0**-24
    )
    assert (error <= steps * scales + lost).all()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FLOATS), VALUES)
def test_a_float_is_off_by_half_of_its_step(each: Scheme, values: np.ndarray) -> None:
    found = encode_scaled(values, each)
    decoded = decode_scaled(found, each)
    scales = spread(found.scales, each, values.shape)
    form = each.codes
    size = np.abs(values.astype(np.float64))
    step = np.maximum(size * form.roundoff, scales * form.smallest / 2)  # type: ignore[union-attr]
    top = form.largest  # type: ignore[union-attr]
    lost = top * np.where(scales < FLOAT32.smallest_normal, FLOAT32.smallest / 2, scales * 2.0**-24)
    assert (np.abs(decoded - values) <= step + lost).all()
    assert (np.abs(found.codes.astype(np.float64)) <= top).all()


def spread(scales: np.ndarray, each: Scheme, shape: tuple[int, ...]) -> np.ndarray:
    wide = scales.astype(np.float64)
    return np.repeat(wide, GROUP, -1) if each.scope is Scope.GROUP else np.broadcast_to(wide, shape)


@pytest.mark.parametrize("each", [*WHOLE, *FLOATS], ids=name_of)
def test_zero_is_exact_and_zeros_have_a_scale(each: Scheme) -> None:
    zeros = np.zeros((2, 8), np.float32)
    found = encode_scaled(zeros, each)
    assert (found.scales == 1).all()
    assert np.array_equal(decode_scaled(found, each), zeros)
    zeros[0, 1], zeros[1, 2] = 3.1, -0.7
    decoded = decode_scaled(encode_scaled(zeros, each), each)
    assert (decoded[zeros == 0] == 0).all()


@pytest.mark.parametrize("scale", [FLOAT32, FLOAT16, BFLOAT16, FLOAT64], ids=str)
def test_codes_are_of_the_scale_as_it_is_stored(scale: object) -> None:
    values = np.random.default_rng(4).standard_normal((5, 64))
    each = Scheme(INT8, Scope.ROW, scale=scale)  # type: ignore[arg-type]
    found = encode_scaled(values, each)
    assert found.scales.dtype.name == str(scale)
    stored = found.scales.astype(np.float64)
    assert np.array_equal(found.codes, np.clip(np.rint(values / stored), -127, 127))


def test_the_largest_value_is_the_largest_code() -> None:
    values = np.array([[0.5, -2.0, 1.0, 0.25]])
    eight = encode_scaled(values, Scheme(INT8, Scope.TENSOR))
    assert eight.codes.tolist() == [[32, -127, 64, 16]]
    floats = encode_scaled(values, Scheme(FLOAT8_E4M3FN, Scope.TENSOR))
    assert floats.codes.astype(float).tolist() == [[112.0, -448.0, 224.0, 56.0]]
    four = encode_scaled(values + 2, Scheme(UINT4, Scope.TENSOR, has_zero_points=True))
    assert four.codes.tolist() == [[12, 0, 15, 11]]


@pytest.mark.parametrize("codes", [INT8, FLOAT8_E4M3FN, FLOAT4_E2M1FN], ids=str)
def test_stochastic_rounding_is_unbiased(codes: object) -> None:
    draws = 4096
    rng = np.random.default_rng(6)
    for value in (0.3, -0.71, 0.033):
        values = np.full((draws, 8), value)
        values[:, 0] = 1.0
        random = rng.integers(0, 1 << 32, values.shape, dtype=np.uint32)
        each = scheme(codes, Scope.GROUP)
        found = decode_scaled(encode_scaled(values, each, random=random), each)[:, 1]
        low, high = found.min(), found.max()
        assert set(found.tolist()) == {low, high}
        assert low < value < high
        share = (value - low) / (high - low)
        assert abs(np.mean(found == high) - share) < 5 * np.sqrt(share * (1 - share) / draws)


def test_tiny_and_large_values_have_a_scale() -> None:
    tiny = np.full((1, 4), 2.0**-149)
    found = encode_scaled(tiny, Scheme(INT8, Scope.ROW))
    assert found.scales.tolist() == [[2.0**-149]]
    assert found.codes.tolist() == [[1, 1, 1, 1]]
    large = np.array([[FLOAT32.largest, -FLOAT32.largest]])
    each = Scheme(UINT8, Scope.ROW, has_zero_points=True)
    assert np.allclose(decode_scaled(encode_scaled(large, each), each), large, rtol=0.01)
    with pytest.raises(UsageError, match=r"a scale of 787\.402 is more") as caught:
        encode_scaled(np.array([[1e5, 1.0]]), Scheme(INT8, Scope.ROW, scale=FLOAT8_E4M3FN))
    assert "wider" in caught.value.hint


def test_symmetric_codes_leave_out_the_lowest() -> None:
    # The scale, 1.4 times the smallest float32, is rounded down to that.
    values = np.array([[-1.4, 1.4]]) * 127 * 2.0**-149
    for random in (None, np.zeros((1, 2), np.uint32)):
        found = encode_scaled(values, Scheme(INT8, Scope.ROW), random=random)
        assert found.codes.tolist() == [[-127, 127]]


def test_ties_are_even_before_the_zero_point_is_added() -> None:
    each = Scheme(UINT4, Scope.ROW, has_zero_points=True)
    values = np.array([[-3.0, 12.0, 0.5, 1.5, -0.5]])
    found = encode_scaled(values, each)
    assert found.zero_points is not None
    assert (found.scales.tolist(), found.zero_points.tolist()) == ([[1.0]], [[3]])
    assert found.codes.tolist() == [[0, 15, 3, 5, 3]]
    up = encode_scaled(values, each, random=np.zeros(values.shape, np.uint32))
    assert up.codes.tolist() == [[0, 15, 4, 5, 3]]


def test_a_range_beyond_float64_has_a_scale() -> None:
    values = np.array([[1.7e308, -1.7e308]])
    each = Scheme(UINT8, Scope.ROW, has_zero_points=True, scale=FLOAT64)
    found = encode_scaled(values, each)
    assert found.codes.tolist() == [[255, 0]]
    with pytest.raises(UsageError, match=r"1\.33333e\+306 is more than float32"):
        encode_scaled(values, Scheme(UINT8, Scope.ROW, has_zero_points=True))


def test_what_no_scale_can_hold_is_refused() -> None:
    for wrong in (np.nan, np.inf):
        with pytest.raises(UsageError, match=rf"the value at \(0, 1\) is {wrong}"):
            encode_scaled(np.array([[1.0, wrong]]), Scheme(INT8, Scope.ROW))
    with pytest.raises(UsageError, match=r"shape \(2, 6\) has no whole blocks of 4"):
        encode_scaled(np.zeros((2, 6)), scheme(INT8, Scope.GROUP))
    with pytest.raises(UsageError, match=r"shape \(\)"):
        encode_scaled(np.array(1.0), Scheme(INT8, Scope.TENSOR))
    with pytest.raises(UsageError, match=r"random bits are uint32\(4,\)"):
        encode_scaled(np.zeros((1, 4)), Scheme(INT8, Scope.ROW), random=np.zeros(4, np.uint32))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"codes": INT8, "scope": Scope.GROUP}, "group = 0"),
        ({"codes": INT8, "scope": Scope.ROW, "group": 4}, "group = 4"),
        ({"codes": UINT4, "scope": Scope.ROW}, "uint4 without zero points"),
        (
            {"codes": FLOAT8_E4M3FN, "scope": Scope.ROW, "has_zero_points": True},
            "float8_e4m3fn with zero points",
        ),
        ({"codes": FLOAT8_E8M0FNU, "scope": Scope.ROW}, "codes of float8_e8m0fnu"),
        ({"codes": INT32, "scope": Scope.ROW}, "codes of int32"),
        ({"codes": INT8, "scope": Scope.ROW, "scale": FLOAT4_E2M1FN}, "scales of float4_e2m1fn"),
        ({"codes": INT8, "scope": Scope.ROW, "scale": INT32}, "scales of int32"),
    ],
)
def test_schemes_that_cannot_be(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Scheme(**arguments)  # type: ignore[arg-type]


def test_four_bit_floats_are_codes_too() -> None:
    each = scheme(FLOAT4_E2M1FN, Scope.GROUP)
    values = np.array([[6.0, -3.0, 0.5, 0.0, 12.0, 1.0, 2.0, -8.0]])
    found = encode_scaled(values, each)
    assert found.scales.tolist() == [[1.0, 2.0]]
    assert codes_of(found.codes).tolist() == [[7, 13, 1, 0, 7, 1, 2, 14]]
