"""Elements: every code against its bit fields, every rounding against exact comparison."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
import torch

from kernelwright.errors import UsageError
from kernelwright.kernelbench.codecs import (
    Overflow,
    codes_of,
    elements_of,
    encode,
    host_dtype,
)
from kernelwright.kernelbench.dtypes import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT16,
    FLOAT32,
    INT8,
    DType,
)
from kernelwright.tests.kernelbench.codecs.fields import (
    FORMATS,
    INFINITY,
    NAN,
    SIGNED,
    SMALL,
    Fields,
    bits,
    magnitudes,
    meaning,
    nearest,
)

RANDOM = 300_000


def overflow_of(dtype: DType) -> Overflow:
    """What the type can declare beside saturation, if anything."""
    return Overflow.NONFINITE if dtype.has_nan else Overflow.SATURATE


def decoded(elements: np.ndarray) -> np.ndarray:
    """In float64, as any user would; some casts tell of a signalling NaN."""
    with np.errstate(invalid="ignore"):
        return elements.astype(np.float64)


def every_code(form: Fields) -> np.ndarray:
    return np.arange(form.codes).astype(f"u{form.dtype.bytes}")


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_every_code_means_what_its_bit_fields_say(form: Fields) -> None:
    codes = every_code(form)
    numbers = decoded(elements_of(codes, form.dtype))
    assert len(codes) == form.codes
    for code, found in zip(codes.tolist(), numbers.tolist(), strict=True):
        is_negative, wanted = meaning(code, form)
        if wanted == NAN:
            assert np.isnan(found), code
        elif wanted == INFINITY:
            assert found == (-np.inf if is_negative else np.inf), code
        else:
            assert Fraction(found) == (-wanted if is_negative else wanted), code
            assert np.signbit(found) == is_negative, code


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_every_code_comes_back(form: Fields) -> None:
    codes = every_code(form)
    elements = elements_of(codes, form.dtype)
    is_nan = np.isnan(decoded(elements))
    back = encode(elements, form.dtype, overflow=overflow_of(form.dtype))
    assert back.dtype == host_dtype(form.dtype)
    assert np.array_equal(codes_of(back)[~is_nan], codes[~is_nan])
    assert np.isnan(back.astype(np.float64))[is_nan].all()
    assert np.array_equal(codes_of(elements), codes)


def encoded(values: list[float], form: Fields, overflow: Overflow) -> list[int]:
    return codes_of(encode(np.array(values), form.dtype, overflow=overflow)).tolist()


@pytest.mark.parametrize("form", SMALL, ids=str)
def test_rounding_at_and_beside_every_midpoint(form: Fields) -> None:
    known = magnitudes(form)
    beyond = known[-1] + (known[-1] - known[-2])
    bounds = [*known, beyond, 2 * beyond] if form.sign else [*known, 2 * known[-1], 4 * known[-1]]
    near: list[float] = [known[0] / 3, 5e-324, 1e-30, 3e38, 1e300]
    for low, high in pairwise(bounds):
        for point in (float((low + high) / 2), float(low), float(high)):
            near += [np.nextafter(point, 0), point, np.nextafter(point, np.inf)]
    values = [float(each) for each in near]
    codes = [nearest(Fraction(each), form) for each in values]
    last = len(known) - 1
    saturated = [min(code, last) for code in codes]
    assert encoded(values, form, Overflow.SATURATE) == saturated
    if form.dtype.has_nan:
        # Infinity, or the only NaN, has the code behind the last number.
        assert encoded(values, form, Overflow.NONFINITE) == codes
    if form.sign:
        sign = form.codes // 2
        below = [-each for each in values]
        assert encoded(below, form, Overflow.SATURATE) == [code | sign for code in saturated]


@pytest.mark.parametrize("form", SIGNED, ids=str)
def test_zeros_keep_their_signs_and_the_least_half_is_a_tie(form: Fields) -> None:
    sign = form.codes // 2
    half = form.dtype.smallest / 2
    given = [0.0, -0.0, half, -half, np.nextafter(half, 1), 3 * half]
    assert encoded(given, form, Overflow.SATURATE) == [0, sign, 0, sign, 1, 2]


@pytest.mark.parametrize(
    ("dtype", "saturated", "nonfinite"),
    [
        (FLOAT8_E4M3FN, [0x7E, 0xFE, 0x7F], [0x7F, 0xFF, 0x7F]),
        (FLOAT8_E5M2, [0x7B, 0xFB, 0x7E], [0x7C, 0xFC, 0x7E]),
        (FLOAT8_E8M0FNU, [0xFE, 0xFF, 0xFF], [0xFF, 0xFF, 0xFF]),
        (FLOAT16, [0x7BFF, 0xFBFF, 0x7E00], [0x7C00, 0xFC00, 0x7E00]),
        (BFLOAT16, [0x7F7F, 0xFF7F, 0x7FC0], [0x7F80, 0xFF80, 0x7FC0]),
    ],
    ids=str,
)
def test_where_infinities_and_nan_go(
    dtype: DType, saturated: list[int], nonfinite: list[int]
) -> None:
    given = np.array([np.inf, -np.inf, np.nan])
    assert codes_of(encode(given, dtype, overflow=Overflow.SATURATE)).tolist() == saturated
    assert codes_of(encode(given, dtype, overflow=Overflow.NONFINITE)).tolist() == nonfinite


def test_four_bits_take_infinity_and_no_nan() -> None:
    given = np.array([np.inf, -np.inf, 7.0])
    four = encode(given, FLOAT4_E2M1FN, overflow=Overflow.SATURATE)
    assert codes_of(four).tolist() == [0x7, 0xF, 0x7]
    with pytest.raises(UsageError, match=r"at \(1, 0\) is NaN, which float4_e2m1fn"):
        encode(np.array([[0.0], [np.nan]]), FLOAT4_E2M1FN, overflow=Overflow.SATURATE)
    with pytest.raises(UsageError, match="neither infinity nor NaN"):
        encode(given, FLOAT4_E2M1FN, overflow=Overflow.NONFINITE)


def test_a_scale_has_no_sign_and_no_zero() -> None:
    given = np.array([0.0, -0.0, -1.0, 2.0**-149, 1.0, 1.5])
    scale = encode(given, FLOAT8_E8M0FNU, overflow=Overflow.SATURATE)
    assert codes_of(scale).tolist() == [0, 0, 0xFF, 0, 127, 128]


def drawn_values(form: Fields) -> np.ndarray:
    """Random bit patterns of float32, half of them about the format's own range."""
    rng = np.random.default_rng(7)
    patterns = rng.integers(0, 1 << 32, RANDOM, dtype=np.uint32).view(np.float32)
    spread = rng.uniform(form.dtype.least_exponent - 5, np.log2(form.dtype.largest) + 2, RANDOM)
    with np.errstate(over="ignore"):
        within = (rng.choice([-1.0, 1.0], RANDOM) * 2.0**spread).astype(np.float32)
    return np.concatenate([patterns, within])


def is_misread(values: np.ndarray) -> np.ndarray:
    """Denormals of float32 beside 2^-127 that ml_dtypes and torch take to 2^-126: they look at the
    bits of a fraction whose leading one is no longer implied."""
    return (values > 2.0**-127) & (values < 1.5 * 2.0**-127)


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_ml_dtypes_rounds_alike(form: Fields) -> None:
    values = drawn_values(form)
    if not form.dtype.has_nan:
        values = values[~np.isnan(values)]
    if not form.sign:
        # Declared otherwise: zero is NaN there.
        values = values[(values != 0) & ~is_misread(values)]
    mine = encode(values, form.dtype, overflow=overflow_of(form.dtype))
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = values.astype(host_dtype(form.dtype))
    is_nan = np.isnan(mine.astype(np.float32))
    assert np.array_equal(is_nan, np.isnan(theirs.astype(np.float32)))
    assert np.array_equal(bits(mine)[~is_nan], bits(theirs)[~is_nan])


@pytest.mark.parametrize(
    "form", [each for each in FORMATS if hasattr(torch, each.dtype.name)], ids=str
)
def test_torch_rounds_alike(form: Fields) -> None:
    values = drawn_values(form)
    if not form.sign:
        # Declared otherwise: torch drops the sign.
        values = values[~(values < 0) & ~is_misread(values)]
    name = getattr(torch, form.dtype.name)
    # Releases of torch differ in whether e4m3 saturates.
    does_saturate = bool(torch.tensor(np.inf).to(name).to(torch.float32).isfinite())
    overflow = Overflow.SATURATE if does_saturate else Overflow.NONFINITE
    mine = encode(values, form.dtype, overflow=overflow)
    cast = torch.from_numpy(values).to(name)
    theirs = cast.view(getattr(torch, f"uint{form.dtype.bits}")).numpy()
    is_nan = np.isnan(mine.astype(np.float32))
    assert np.array_equal(is_nan, torch.isnan(cast.to(torch.float32)).numpy())
    assert np.array_equal(bits(mine)[~is_nan], theirs[~is_nan])


def test_float64_is_rounded_once() -> None:
    # By way of float32 it would be a tie, and go down to the even 1.
    value = np.array([1 + 2.0**-4 + 2.0**-40])
    once = encode(value, FLOAT8_E4M3FN, overflow=Overflow.SATURATE)
    twice = encode(value.astype(np.float32), FLOAT8_E4M3FN, overflow=Overflow.SATURATE)
    assert (float(once[0]), float(twice[0])) == (1.125, 1.0)


def test_float32_is_rounded_as_numpy_does() -> None:
    values = np.random.default_rng(2).standard_normal(1000) * 2.0 ** np.arange(-160, 90, 0.25)
    mine = encode(values, FLOAT32, overflow=Overflow.NONFINITE)
    assert np.array_equal(bits(mine), bits(values.astype(np.float32)))


DRAWS = 4096


@pytest.mark.parametrize("form", SMALL, ids=str)
def test_stochastic_rounding_is_unbiased(form: Fields) -> None:
    rng = np.random.default_rng(5)
    known = [float(each) for each in magnitudes(form)]
    lows = rng.choice(len(known) - 1, min(12, len(known) - 1), replace=False)
    shares = rng.uniform(0.02, 0.98, len(lows))
    for low, share in zip(lows, shares, strict=True):
        below, above = known[low], known[low + 1]
        value = below + share * (above - below)
        for signed in (value, -value)[: 1 + form.sign]:
            draws = rng.integers(0, 1 << 32, DRAWS, dtype=np.uint32)
            given = np.full(DRAWS, signed)
            found = encode(given, form.dtype, overflow=Overflow.SATURATE, random=draws)
            sizes = np.abs(found.astype(np.float64))
            assert set(sizes.tolist()) == {below, above}
            assert (np.signbit(found.astype(np.float64)) == (signed < 0)).all()
            # Five standard deviations of a binomial.
            ups, spread = np.mean(sizes == above), np.sqrt(share * (1 - share) / DRAWS)
            assert abs(ups - share) < 5 * spread, (signed, ups, share)


def test_stochastic_rounding_goes_up_for_the_lowest_part_of_the_bits() -> None:
    quarter = 1 << 30
    draws = np.array([0, quarter - 1, quarter, (1 << 32) - 1], np.uint32)
    values = np.full(4, 2.25)  # a quarter of the way from 2 to 3
    found = encode(values, FLOAT4_E2M1FN, overflow=Overflow.SATURATE, random=draws)
    assert found.astype(float).tolist() == [3.0, 3.0, 2.0, 2.0]


@pytest.mark.parametrize("form", SMALL, ids=str)
def test_stochastic_rounding_keeps_what_is_exact(form: Fields) -> None:
    codes = every_code(form)
    values = elements_of(codes, form.dtype).astype(np.float64)
    kept = np.isfinite(values)
    for draw in (0, (1 << 32) - 1):
        random = np.full(kept.sum(), draw, np.uint32)
        found = encode(values[kept], form.dtype, overflow=Overflow.SATURATE, random=random)
        assert np.array_equal(codes_of(found), codes[kept])


def test_stochastic_rounding_saturates() -> None:
    values = np.array([449.0, 1e9, np.inf, -449.0])
    random = np.zeros(4, np.uint32)
    found = encode(values, FLOAT8_E4M3FN, overflow=Overflow.SATURATE, random=random)
    assert found.astype(float).tolist() == [448.0, 448.0, 448.0, -448.0]


def test_what_does_not_fit_is_refused() -> None:
    ones = np.ones(3)
    with pytest.raises(UsageError, match=r"uint64\(3,\) beside values of \(3,\)"):
        encode(
            ones,
            FLOAT8_E5M2,
            overflow=Overflow.SATURATE,
            random=np.zeros(3, np.uint64),
        )
    with pytest.raises(UsageError, match=r"uint32\(2,\) beside"):
        encode(
            ones,
            FLOAT8_E5M2,
            overflow=Overflow.SATURATE,
            random=np.zeros(2, np.uint32),
        )
    with pytest.raises(UsageError, match="values are int64"):
        encode(np.arange(3), FLOAT8_E5M2, overflow=Overflow.SATURATE)
    with pytest.raises(UsageError, match="int8 is no float type"):
        encode(ones, INT8, overflow=Overflow.SATURATE)
    with pytest.raises(UsageError, match=r"code 16 at \(1,\) is none of float4_e2m1fn"):
        elements_of(np.array([15, 16], np.uint8), FLOAT4_E2M1FN)
    with pytest.raises(UsageError, match="codes of float16 are uint8"):
        elements_of(np.array([1], np.uint8), FLOAT16)


def test_arrays_of_any_shape() -> None:
    for shape in ((), (0,), (2, 0, 3), (2, 3)):
        values = np.full(shape, 1.5)
        for given in (values, values.T):
            found = encode(given, FLOAT8_E4M3FN, overflow=Overflow.SATURATE)
            assert found.shape == codes_of(found).shape == given.shape
            assert (found.astype(float) == 1.5).all()


def test_the_host_has_a_type_for_each() -> None:
    assert host_dtype(FLOAT8_E5M2) == np.dtype(ml_dtypes.float8_e5m2)
    assert host_dtype(FLOAT32) == np.dtype(np.float32)
