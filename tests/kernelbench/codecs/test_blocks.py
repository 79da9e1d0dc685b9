"""Block formats: a second writing in rational numbers, bounds of errors, and what is not finite."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from kernelwright.errors import UsageError
from kernelwright.kernelbench.codecs import (
    MX_BLOCK,
    MX_ELEMENTS,
    NVFP4_BLOCK,
    codes_of,
    decode_mx,
    decode_nvfp4,
    encode_mx,
    encode_nvfp4,
)
from kernelwright.kernelbench.dtypes import (
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT32,
    DType,
)
from kernelwright.tests.kernelbench.codecs.fields import (
    FORMATS,
    Fields,
    magnitudes,
    nearest,
    times_power,
)

FORM = {each.dtype.name: each for each in FORMATS}
EMAX = {"float8_e4m3fn": 8, "float8_e5m2": 15, "float4_e2m1fn": 2}
"""Table of the MX specification."""
E4M3, E2M1 = FORM["float8_e4m3fn"], FORM["float4_e2m1fn"]


def values_of(block: int) -> st.SearchStrategy[np.ndarray]:
    """Blocks over all of float32, and blocks whose values are near each other."""
    shape = st.tuples(st.integers(1, 2), st.sampled_from([block, 2 * block]))
    any_float = st.floats(allow_nan=False, allow_infinity=False, width=32)
    near = st.floats(-100, 100, width=32)
    return st.one_of(
        arrays.arrays(np.float32, shape, elements=any_float),
        arrays.arrays(np.float32, shape, elements=near),
    )


def code_of(value: Fraction, form: Fields) -> int:
    """The saturated code, with the sign of a value that is not zero."""
    last = len(magnitudes(form)) - 1
    return min(nearest(abs(value), form), last) | (form.codes // 2 if value < 0 else 0)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(MX_ELEMENTS), values_of(MX_BLOCK))
def test_mx_written_down_a_second_time(element: DType, values: np.ndarray) -> None:
    found = encode_mx(values, element)
    decoded = decode_mx(found)
    form = FORM[element.name]
    numbers = magnitudes(form)
    assert found.codes.shape == values.shape
    assert found.scales.shape == (values.shape[0], values.shape[1] // MX_BLOCK)
    for row, column in np.ndindex(found.scales.shape):
        places = [(row, at) for at in range(column * MX_BLOCK, (column + 1) * MX_BLOCK)]
        block = [Fraction(float(values[place])) for place in places]
        amax = max(map(abs, block))
        power = int(codes_of(found.scales)[row, column]) - 127
        # The greatest power of two that amax holds, over that of the element's largest number.
        if -127 < power < 127:
            assert times_power(1, power + EMAX[element.name]) <= amax
            assert amax < times_power(1, power + EMAX[element.name] + 1)
        elif power == -127:
            assert amax < times_power(1, EMAX[element.name] - 126)
        scale = times_power(1, power)
        for place, value in zip(places, block, strict=True):
            code = code_of(value / scale, form)
            assert int(codes_of(found.codes)[place]) & ~(form.codes // 2 * (value == 0)) == code
            exact = numbers[code % (form.codes // 2)] * scale * (-1 if value < 0 else 1)
            assert Fraction(float(decoded[place])) == exact


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(MX_ELEMENTS), values_of(MX_BLOCK))
def test_an_mx_value_is_off_by_half_a_step_or_saturates(element: DType, values: np.ndarray) -> None:
    found = encode_mx(values, element)
    scales = np.repeat(found.scales.astype(np.float64), MX_BLOCK, -1)
    exact = values.astype(np.float64)
    error = np.abs(decode_mx(found) - exact)
    half = np.maximum(np.abs(exact) * element.roundoff, scales * element.smallest / 2)
    beyond = np.abs(exact) - element.largest * scales
    assert (error <= np.where(beyond > 0, beyond, half)).all()
    # What saturates is in the last binade: less than twice the largest power.
    assert (np.abs(exact) < 2 * 2.0 ** EMAX[element.name] * scales)[exact != 0].all()


def test_scales_by_hand() -> None:
    values = np.zeros((5, MX_BLOCK))
    values[:, 3] = [1.0, 6.0, 8.0, 448.0, 0.0]
    assert codes_of(encode_mx(values, FLOAT4_E2M1FN).scales)[:, 0].tolist() == [
        125,
        127,
        128,
        133,
        0,
    ]
    assert codes_of(encode_mx(values, FLOAT8_E4M3FN).scales)[:, 0].tolist() == [
        119,
        121,
        122,
        127,
        0,
    ]
    assert codes_of(encode_mx(values, FLOAT8_E5M2).scales)[:, 0].tolist() == [112, 114, 115, 120, 0]


@pytest.mark.parametrize("element", MX_ELEMENTS, ids=str)
def test_mx_scales_are_kept_within_their_range(element: DType) -> None:
    values = np.zeros((2, MX_BLOCK))
    values[0, 0], values[1, 0] = 1e300, 1e-300
    found = encode_mx(values, element)
    assert codes_of(found.scales)[:, 0].tolist() == [254, 0]
    assert decode_mx(found)[:, 0].tolist() == [element.largest * 2.0**127, 0.0]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("element", MX_ELEMENTS, ids=str)
def test_what_is_not_finite_is_all_of_its_mx_block(element: DType, wrong: float) -> None:
    values = np.ones((2, 2 * MX_BLOCK), np.float32)
    values[1, 5] = wrong
    found = encode_mx(values, element)
    assert (codes_of(found.scales) == 0xFF).tolist() == [[False, False], [True, False]]
    assert (codes_of(found.codes)[1, :MX_BLOCK] == 0).all()
    decoded = decode_mx(found)
    assert np.isnan(decoded[1, :MX_BLOCK]).all()
    assert (decoded[0] == 1).all()
    assert (decoded[1, MX_BLOCK:] == 1).all()


@settings(max_examples=60, deadline=None)
@given(values_of(NVFP4_BLOCK))
def test_nvfp4_written_down_a_second_time(values: np.ndarray) -> None:
    found = encode_nvfp4(values)
    decoded = decode_nvfp4(found)
    amax = float(np.abs(values.astype(np.float64)).max())
    wanted = np.float32(amax / (6 * 448)) or np.float32(2.0**-149)
    assert found.tensor_scale == (wanted if amax else 1.0)
    assert found.scales.shape == (values.shape[0], values.shape[1] // NVFP4_BLOCK)
    whole = float(found.tensor_scale)
    for row, column in np.ndindex(found.scales.shape):
        places = [(row, at) for at in range(column * NVFP4_BLOCK, (column + 1) * NVFP4_BLOCK)]
        largest = max(abs(float(values[place])) for place in places)
        code = code_of(Fraction(largest / 6 / whole), E4M3)
        assert codes_of(found.scales)[row, column] == code
        scale = magnitudes(E4M3)[code] * Fraction(whole)
        for place in places:
            quotient = float(values[place]) / float(scale) if scale else 0.0
            four = code_of(Fraction(quotient), E2M1)
            assert codes_of(found.codes)[place] & (7 if four == 0 else 15) == four
            sign = -1 if four & 8 else 1
            assert Fraction(float(decoded[place])) == sign * magnitudes(E2M1)[four & 7] * scale


@settings(max_examples=80, deadline=None)
@given(values_of(NVFP4_BLOCK))
def test_an_nvfp4_value_is_off_by_half_a_step_or_saturates(values: np.ndarray) -> None:
    found = encode_nvfp4(values)
    scales = np.repeat(found.scales.astype(np.float64), NVFP4_BLOCK, -1) * float(found.tensor_scale)
    exact = values.astype(np.float64)
    error = np.abs(decode_nvfp4(found) - exact)
    half = np.maximum(np.abs(exact) * FLOAT4_E2M1FN.roundoff, scales / 4)
    beyond = np.abs(exact) - 6 * scales
    limit = np.where(beyond > 0, beyond, half)
    assert (error <= limit * (1 + 2.0**-50)).all()
    # The scale is off by 1/16 of itself or half of its own smallest step, so no more is cut off.
    whole = float(found.tensor_scale)
    if whole >= FLOAT32.smallest_normal:
        amax = np.abs(exact).reshape(*found.scales.shape, NVFP4_BLOCK).max(-1)
        wanted = amax / 6 / whole
        off = np.abs(found.scales.astype(np.float64) - wanted)
        assert (off <= np.maximum(wanted / 16, 2.0**-10) + 448 * 2.0**-23).all()


def test_nvfp4_by_hand() -> None:
    values = np.zeros((1, 4 * NVFP4_BLOCK), np.float32)
    values[0, :3] = [2688, -448, 1344]
    values[0, NVFP4_BLOCK : NVFP4_BLOCK + 3] = [6, -1, 0.2]
    values[0, 2 * NVFP4_BLOCK] = 0.003
    found = encode_nvfp4(values)
    assert found.tensor_scale == 1.0
    # 0.003 / 6 is less than half of the smallest scale.
    assert found.scales.astype(float).tolist() == [[448.0, 1.0, 0.0, 0.0]]
    assert codes_of(found.codes)[0, :3].tolist() == [7, 10, 5]
    assert codes_of(found.codes)[0, NVFP4_BLOCK : NVFP4_BLOCK + 3].tolist() == [7, 10, 0]
    assert decode_nvfp4(found)[0, 2 * NVFP4_BLOCK] == 0


@pytest.mark.parametrize(("amax", "scale"), [(1.0, 0.171875), (1.4 * 2688, 448.0)])
def test_an_nvfp4_tensor_has_no_scale_below_the_smallest_float32(amax: float, scale: float) -> None:
    found = encode_nvfp4(np.full((1, 16), amax * 2.0**-149))
    assert found.tensor_scale == np.float32(2.0**-149)
    assert found.scales.astype(float).tolist() == [[scale]]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_all_of_its_nvfp4_block(wrong: float) -> None:
    values = np.ones((2, 2 * NVFP4_BLOCK), np.float32)
    values[1, 20] = wrong
    found = encode_nvfp4(values)
    assert found.tensor_scale == np.float32(1 / 2688)
    decoded = decode_nvfp4(found)
    assert np.isnan(decoded[1, NVFP4_BLOCK:]).all()
    assert np.isnan(found.scales.astype(float)).tolist() == [[False, False], [False, True]]
    assert np.allclose(np.delete(decoded.reshape(-1, NVFP4_BLOCK), 3, 0), 1)


def test_blocks_round_at_random() -> None:
    draws = 4096
    rng = np.random.default_rng(8)
    values = np.full((draws, MX_BLOCK), 0.3)
    values[:, ::NVFP4_BLOCK] = 1.0
    random = rng.integers(0, 1 << 32, values.shape, dtype=np.uint32)
    mx = decode_mx(encode_mx(values, FLOAT4_E2M1FN, random=random))[:, 1]
    nv = decode_nvfp4(encode_nvfp4(values, random=random))[:, 1]
    for found in (mx, nv):
        low, high = found.min(), found.max()
        assert set(found.tolist()) == {low, high}
        share = (0.3 - low) / (high - low)
        assert 0 < share < 1
        assert abs(np.mean(found == high) - share) < 5 * np.sqrt(share * (1 - share) / draws)


def test_blocks_of_any_shape() -> None:
    for shape in ((0,), (2, 0), (0, 64), (64,), (2, 3, 64)):
        values = np.ones(shape)
        assert decode_mx(encode_mx(values, FLOAT8_E5M2)).shape == shape
        assert decode_nvfp4(encode_nvfp4(values)).shape == shape


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="whole blocks of 32") as caught:
        encode_mx(np.zeros((2, 48)), FLOAT8_E4M3FN)
    assert "pad it" in caught.value.hint
    with pytest.raises(UsageError, match="whole blocks of 16"):
        encode_nvfp4(np.zeros((2, 40)))
    with pytest.raises(UsageError, match="float32 is no element"):
        encode_mx(np.zeros((2, 32)), FLOAT32)
    with pytest.raises(UsageError, match=r"1e\+300, makes a scale beyond float32"):
        encode_nvfp4(np.full((1, 16), 1e300))
    with pytest.raises(UsageError, match=r"random bits are uint32\(16,\)"):
        encode_nvfp4(np.zeros((1, 16)), random=np.zeros(16, np.uint32))
