"""Exact arithmetic on the narrow float types, by fractions: what the emulator is held to."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from kernelwright.kernelbench.codecs.elements import (
    Overflow,
    codes_of,
    elements_of,
    encode,
    float64_of,
)
from kernelwright.kernelbench.dtypes import DType

ROUND: dict[str, Callable[[Fraction], int]] = {
    "rn": round,
    "rz": lambda x: int(x),
    "ru": lambda x: -(-x.numerator // x.denominator),
    "rd": lambda x: x.numerator // x.denominator,
}
"""Whole numbers near a fraction, by the suffix of CUDA's names."""
SHARE = 13
"""Fractions are slow: one row of so many, prime to what repeats in the codes."""


def values(codes: np.ndarray, dtype: DType) -> np.ndarray:
    """What the codes stand for, in float64."""
    return float64_of(elements_of(codes, dtype))


def rounded(exact: Fraction, dtype: DType, mode: str = "rn") -> float:
    """The number of the type that the fraction is rounded to; an infinity beyond the last one."""
    if exact == 0:
        return 0.0
    exponent = max(_exponent(abs(exact)), dtype.least_exponent)
    step = Fraction(2) ** (exponent - dtype.digits + 1)
    found = ROUND[mode](exact / step) * step
    if abs(found) <= Fraction(dtype.largest):
        return float(found)
    goes_on = mode == "rn" or mode == ("rd" if exact < 0 else "ru")
    size = np.inf if goes_on else dtype.largest
    return -size if exact < 0 else size


def _exponent(size: Fraction) -> int:
    guess = size.numerator.bit_length() - size.denominator.bit_length()
    return guess if size >= Fraction(2) ** guess else guess - 1


def nearest_codes(exact: np.ndarray, dtype: DType) -> np.ndarray:
    """The codes of float64 numbers, rounded once; NaN is the one that devices make."""
    codes = codes_of(encode(exact, dtype, overflow=Overflow.NONFINITE))
    return np.where(np.isnan(exact), (1 << (dtype.bits - 1)) - 1, codes)


def fold(operation: Callable[..., Fraction], *operands: np.ndarray, dtype: DType) -> np.ndarray:
    """The operation on some of the rows with finite operands, rounded once; NaN in all others."""
    out = np.full(len(operands[0]), np.nan)
    finite = np.logical_and.reduce([np.isfinite(one) for one in operands])
    for i in np.flatnonzero(finite)[::SHARE]:
        out[i] = rounded(operation(*(Fraction(float(one[i])) for one in operands)), dtype)
    return out
