"""The formats written down a second time: from bit fields, in exact rational numbers."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

from kernelwright.kernelbench.dtypes import (
    BFLOAT16,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    FLOAT16,
    DType,
)

INFINITY, NAN = "infinity", "nan"


class Fields(NamedTuple):
    """Widths of sign, exponent and mantissa, and the exponent's bias."""

    dtype: DType
    sign: int
    exponent: int
    mantissa: int
    bias: int

    def __str__(self) -> str:
        return self.dtype.name

    @property
    def codes(self) -> int:
        return 1 << (self.sign + self.exponent + self.mantissa)


FORMATS = (
    Fields(FLOAT8_E4M3FN, 1, 4, 3, 7),
    Fields(FLOAT8_E5M2, 1, 5, 2, 15),
    Fields(FLOAT8_E8M0FNU, 0, 8, 0, 127),
    Fields(FLOAT4_E2M1FN, 1, 2, 1, 1),
    Fields(FLOAT16, 1, 5, 10, 15),
    Fields(BFLOAT16, 1, 8, 7, 127),
)
SMALL = FORMATS[:4]
SIGNED = tuple(each for each in FORMATS if each.sign)


def meaning(code: int, form: Fields) -> tuple[bool, Fraction | str]:
    """Whether the sign bit is set, and the magnitude that the tables of the formats give."""
    mantissa = code & ((1 << form.mantissa) - 1)
    exponent = (code >> form.mantissa) & ((1 << form.exponent) - 1)
    is_negative = bool(form.sign and code >> (form.mantissa + form.exponent))
    top = (1 << form.exponent) - 1
    name = form.dtype.name
    if name == "float8_e8m0fnu":
        return False, NAN if code == 0xFF else times_power(1, code - 127)
    if name == "float8_e4m3fn" and exponent == top and mantissa == 7:
        return is_negative, NAN
    if name in ("float8_e5m2", "float16", "bfloat16") and exponent == top:
        return is_negative, NAN if mantissa else INFINITY
    if exponent == 0:
        return is_negative, times_power(mantissa, 1 - form.bias - form.mantissa)
    whole = (1 << form.mantissa) + mantissa
    return is_negative, times_power(whole, exponent - form.bias - form.mantissa)


def times_power(number: int, power: int) -> Fraction:
    """number * 2^power."""
    return Fraction(number << power) if power >= 0 else Fraction(number, 1 << -power)


@cache
def magnitudes(form: Fields) -> list[Fraction]:
    """Of all codes without a sign that are numbers, ascending as their codes are."""
    codes = range(form.codes >> form.sign)
    return [found for code in codes if isinstance(found := meaning(code, form)[1], Fraction)]


def nearest(value: Fraction, form: Fields) -> int:
    """The code of the nearest number to a magnitude by exact comparison; the code behind the last
    number where it rounds beyond it, as if there were one more."""
    known = list(magnitudes(form))
    step = known[-1] - known[-2] if form.mantissa else known[-1]
    known.append(known[-1] + step)
    low, high = 0, len(known) - 1
    if value <= known[0]:
        return 0
    if value >= known[-1]:
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if known[middle] <= value else (low, middle)
    below, above = value - known[low], known[high] - value
    if below != above:
        return low if below < above else high
    # The even significand is the even code; of e8m0 it is 2 of 1 and 2, which is the upper one.
    return high if not form.mantissa or high % 2 == 0 else low


def bits(array: np.ndarray) -> np.ndarray:
    """The same bytes as unsigned integers."""
    return array.view(f"u{array.dtype.itemsize}")
