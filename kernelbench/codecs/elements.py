# SPDX-License-Identifier: Apache-2.0
"""Single elements: from float64 to every float type of the table, and to their codes.

An array of a type that numpy lacks is one of the package ml_dtypes, one byte or more an element;
it is decoded by `astype`, which is exact. What a number becomes is declared by the caller: how it
rounds, and where it goes when it is too large. Nothing here knows scales or packed bytes.

Sources: OCP 8-bit Floating Point Specification (OFP8) 1.0 for e4m3 and e5m2; OCP Microscaling
Formats (MX) Specification 1.0 for e2m1 and e8m0; IEEE 754 for the others.
"""

from __future__ import annotations

from enum import StrEnum

import ml_dtypes
import numpy as np

from ...errors import UsageError
from ..dtypes import DTYPES, DType

RANDOM_BITS = 32
"""Of one stochastic rounding, as CUDA's `cvt.rs` takes them."""


class Overflow(StrEnum):
    """What becomes of a number that rounds to more than the largest finite one, and of infinity."""

    SATURATE = "saturate"
    """The largest finite number with its sign; OFP8 has infinities go there, too."""
    NONFINITE = "nonfinite"
    """Infinity with its sign, or NaN where the type has no infinity."""


def host_dtype(dtype: DType) -> np.dtype:
    """numpy's or ml_dtypes' type for arrays of the element type, one element in whole bytes."""
    return np.dtype(dtype.name if dtype.in_numpy else getattr(ml_dtypes, dtype.name))


def codes_of(elements: np.ndarray) -> np.ndarray:
    """The bit patterns of float elements, in unsigned integers of the same shape and width.

    Raises:
        UsageError: if the elements are none of the float types of the table.
    """
    known = _float_type(elements)
    return np.ascontiguousarray(elements).view(f"u{known.bytes}").reshape(elements.shape)


def elements_of(codes: np.ndarray, dtype: DType) -> np.ndarray:
    """The elements with these bit patterns, in an array of the same shape of `host_dtype(dtype)`.

    Args:
        codes: unsigned integers as wide as an element that stands alone.
        dtype: a float type.

    Raises:
        UsageError: if the codes are of another width, or one is beyond the type's bits.
    """
    unsigned = np.dtype(f"u{dtype.bytes}")
    if codes.dtype != unsigned:
        raise UsageError(
            f"codes of {dtype} are {codes.dtype}", hint=f"pass them as an array of {unsigned}"
        )
    beyond = codes >> (dtype.bits - 1) > 1
    if beyond.any():
        at = first_place(beyond)
        raise UsageError(
            f"code {codes[at]} at {at} is none of {dtype}, whose codes have {dtype.bits} bits",
            hint="unpack codes that share a byte first",
        )
    return np.ascontiguousarray(codes).view(host_dtype(dtype)).reshape(codes.shape)


def encode(
    values: np.ndarray, dtype: DType, *, overflow: Overflow, random: np.ndarray | None = None
) -> np.ndarray:
    """The values as elements of a float type, rounded once.

    Without random bits a value goes to the nearest element, a tie to the even significand; with
    them to one of its two neighbours, the larger magnitude as likely as it is near: that is
    unbiased to 2^-32 of their distance. A value keeps its sign, as zero and NaN, too.

    A type of scales alone (e8m0) has neither sign nor zero: what is negative becomes NaN, and what
    is smaller than its smallest power of two, zero included, becomes that.

    Args:
        values: floats of any shape, of a type of the table.
        dtype: the float type to encode in.
        overflow: where too large values and infinities go, after rounding.
        random: uniform uint32 of the values' shape, for stochastic rounding.

    Returns:
        An array of the values' shape and of `host_dtype(dtype)`.

    Raises:
        UsageError: if the values or the type are no floats, if the random bits do not fit, or if a
            value or the declared overflow needs a NaN that the type does not have.
    """
    exact = float64_of(values)
    _require_codes(exact, dtype, overflow)
    magnitude = np.where(np.isfinite(exact), np.abs(exact), 0.0)
    last = int(_round_codes(np.array(dtype.largest), dtype, None))
    codes = _round_codes(magnitude, dtype, random)
    beyond = (codes > last) | np.isinf(exact)
    # Infinity, or else NaN, is the code after the last number.
    codes = np.where(beyond, last if overflow is Overflow.SATURATE else last + 1, codes)
    is_nan = np.isnan(exact)
    if dtype.is_scale:
        is_nan |= exact < 0
    quiet = 1 << (dtype.digits - 2) if dtype.has_infinity else 0
    codes = np.where(is_nan, last + 1 + quiet, codes).astype(np.uint64)
    if not dtype.is_scale:
        codes |= np.signbit(exact).astype(np.uint64) << np.uint64(dtype.bits - 1)
    return elements_of(codes.astype(f"u{dtype.bytes}"), dtype)


def encode_by_streams(values: np.ndarray, dtype: DType, streams: np.ndarray) -> np.ndarray:
    """`encode`, rounded stochastically with bits of its own; what overflows is infinite.

    Args:
        streams: of each row, along the first axis; rows with equal ones have the same bits.
    """
    _, stream = np.unique(streams, return_inverse=True)
    shape = (int(stream.max(initial=-1)) + 1, *values.shape[1:])
    bits = np.random.default_rng().integers(1 << 32, size=shape, dtype=np.uint32)
    random = bits[stream.reshape(-1)]
    return encode(values, dtype, overflow=Overflow.NONFINITE, random=random)


def neighbours(values: np.ndarray, dtype: DType) -> tuple[np.ndarray, np.ndarray]:
    """The largest element that is no larger than each value, and the smallest that is no smaller.

    Args:
        values: float64; NaN gives NaN. Beyond the largest element one of the two is infinite.
        dtype: a float type with infinities.

    Returns:
        Two arrays of float64, equal where a value is an element.
    """
    with np.errstate(all="ignore"):
        near = values.astype(host_dtype(dtype))
        exact = near.astype(np.float64)
        ends = np.array(-np.inf, near.dtype), np.array(np.inf, near.dtype)
        below, above = (np.nextafter(near, end).astype(np.float64) for end in ends)
    low, high = np.where(exact > values, below, exact), np.where(exact < values, above, exact)
    return low, high


def round_steps(steps: np.ndarray, random: np.ndarray | None) -> np.ndarray:
    """Whole numbers near these float64: the nearest, ties to even; or one at random.

    With random bits, uniform uint32 of the same shape, a number rounds up with the probability of
    its fraction, cut to 2^-32 upwards.

    Raises:
        UsageError: if the random bits have another shape or type.
    """
    if random is None:
        near: np.ndarray = np.rint(steps)
        return near
    if random.dtype != np.uint32 or random.shape != steps.shape:
        raise UsageError(
            f"random bits are {random.dtype}{random.shape} beside values of {steps.shape}",
            hint="draw one uniform uint32 for each value",
        )
    down = np.floor(steps)
    rounded: np.ndarray = down + (random < np.ldexp(steps - down, RANDOM_BITS))
    return rounded


def float64_of(values: np.ndarray) -> np.ndarray:
    """The values in float64, which is exact; UsageError unless they are floats of the table."""
    _float_type(values)
    # A signalling NaN would warn.
    with np.errstate(invalid="ignore"):
        exact: np.ndarray = values.astype(np.float64)
    return exact


def first_place(wrong: np.ndarray) -> tuple[int, ...]:
    """The index of the first True of an array that holds one."""
    return tuple(int(at) for at in np.argwhere(wrong)[0])


def _float_type(values: np.ndarray) -> DType:
    known = DTYPES.get(values.dtype.name)
    if known is None or not known.is_float:
        raise UsageError(
            f"values are {values.dtype}, which is no float type",
            hint=f"known: {', '.join(each.name for each in DTYPES.values() if each.is_float)}",
        )
    return known


def _require_codes(exact: np.ndarray, dtype: DType, overflow: Overflow) -> None:
    """Refuses what would need a NaN where the type has none, and types that do not round."""
    if not dtype.is_float:
        raise UsageError(f"{dtype} is no float type", hint="integers are made with a scale")
    if dtype.has_nan:
        return
    if overflow is Overflow.NONFINITE:
        raise UsageError(
            f"{dtype} has neither infinity nor NaN for what overflows",
            hint="declare that it saturates",
        )
    if np.isnan(exact).any():
        raise UsageError(
            f"the value at {first_place(np.isnan(exact))} is NaN, which {dtype} does not have",
            hint="scale in blocks, whose scale can be NaN, or remove it",
        )


def _round_codes(magnitude: np.ndarray, dtype: DType, random: np.ndarray | None) -> np.ndarray:
    """Codes without sign of finite magnitudes, as if exponents went on for ever.

    Consecutive numbers have consecutive codes, so a carry into the next exponent needs no care.
    """
    _, behind = np.frexp(magnitude)
    power = np.maximum(behind.astype(np.int64) - 1, dtype.least_exponent)
    power = np.where(magnitude == 0, dtype.least_exponent, power)
    steps = round_steps(np.ldexp(magnitude, dtype.digits - 1 - power), random)
    if dtype.is_scale:
        # The first code is the smallest power, where others have zero.
        steps = np.maximum(steps, 1) - 1
    return ((power - dtype.least_exponent) << (dtype.digits - 1)) + steps.astype(np.int64)
