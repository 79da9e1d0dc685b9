# SPDX-License-Identifier: Apache-2.0
"""Tensors of bytes that hold codes: what the bytes of an input mean, and how answers become bytes.

A problem declares such a tensor as `uint8` and names its codec beside it: packed whole numbers of
4 bits, or small floats by their bit patterns. Every kernel is given the bytes; an oracle is given,
and gives, the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np

from ..errors import UsageError
from .codecs import (
    INT4,
    UINT4,
    Integers,
    Layout,
    Overflow,
    codes_of,
    elements_of,
    encode,
    host_dtype,
    unpack,
)
from .dtypes import (
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
    DType,
)
from .families import draw
from .problem import Arrays, Expected, Family

_PAIR = "two of {} in a byte, the first in the low nibble"


@dataclass(frozen=True)
class Codec:
    """How the bytes of one tensor are read: along the last axis."""

    name: str
    numbers: Integers | DType
    """What the codes stand for."""
    meaning: str
    """Behind that of the tensor: for whoever writes a kernel."""

    @property
    def layout(self) -> Layout:
        """Of codes that share bytes."""
        return Layout(UINT4 if isinstance(self.numbers, DType) else self.numbers)

    @property
    def in_byte(self) -> int:
        """Codes of one byte."""
        return 8 // self.numbers.bits

    @property
    def largest(self) -> float:
        """The largest number that it has."""
        known = self.numbers
        return known.largest if isinstance(known, DType) else float(known.highest)

    def decode(self, array: np.ndarray) -> np.ndarray:
        """The numbers of an array of bytes (..., n), in float32 (..., in_byte * n): exact."""
        found: np.ndarray = _table(self.name)[array]
        return found.reshape(*array.shape[:-1], -1)

    def encode(self, numbers: np.ndarray) -> np.ndarray:
        """The bytes of numbers (..., in_byte * n): of floats what is nearest, ties to even, and the
        largest of those that are too large; of whole numbers the numbers themselves.

        Raises:
            UsageError: a whole number is none of the codec's, or the last axis does not divide.
        """
        if isinstance(self.numbers, DType):
            codes = codes_of(_round(numbers, self.numbers))
        else:
            codes = numbers.astype(self.numbers.host)
            wrong = (codes < self.numbers.lowest) | (codes > self.numbers.highest)
            if (wrong := wrong | (codes != numbers)).any():
                raise UsageError(f"{numbers[wrong][0]} is no {self.name}", hint=self.meaning)
        if self.in_byte == 1:
            return codes
        if codes.shape[-1] % self.in_byte:
            raise UsageError(
                f"{codes.shape[-1]} codes of {self.name} are no whole bytes", hint=self.meaning
            )
        # As `pack` has it, in a twentieth of the time.
        low, high = codes[..., ::2].view(np.uint8) & 15, codes[..., 1::2].view(np.uint8) << 4
        return low | high

    def round(self, numbers: np.ndarray) -> np.ndarray:
        """What is left of numbers that are encoded, float32."""
        return self.decode(self.encode(numbers))


CODECS = {
    each.name: each
    for each in (
        Codec("uint4", UINT4, _PAIR.format("0 to 15")),
        Codec("int4", INT4, _PAIR.format("-8 to 7, in two's complement")),
        Codec("float4_e2m1fn", FLOAT4_E2M1FN, _PAIR.format("e2m1 (0 0.5 1 1.5 2 3 4 6 by code)")),
        Codec("float8_e4m3fn", FLOAT8_E4M3FN, "the bit pattern of a float8 e4m3fn"),
        Codec("float8_e5m2", FLOAT8_E5M2, "the bit pattern of a float8 e5m2"),
        Codec("float8_e8m0fnu", FLOAT8_E8M0FNU, "e8m0: 2 to the power of code - 127, 255 is NaN"),
    )
}
"""By the name that a declaration has."""


def _round(numbers: np.ndarray, dtype: DType) -> np.ndarray:
    """The nearest elements. Float32 is cast as `encode` has it, in a thirtieth of the time; float64
    would be rounded twice, and zero is no scale there."""
    if dtype.is_scale or numbers.dtype != np.float32:
        return encode(numbers, dtype, overflow=Overflow.SATURATE)
    limited = np.clip(numbers, -dtype.largest, dtype.largest)
    found: np.ndarray = limited.astype(host_dtype(dtype))
    return found


@cache
def _table(codec: str) -> np.ndarray:
    """The numbers of each byte there is, (256, in_byte): to look them up takes a twentieth."""
    known = CODECS[codec]
    octets = np.arange(256, dtype=np.uint8)[:, None]
    if known.in_byte > 1:
        octets = unpack(octets, known.layout)
    if isinstance(known.numbers, DType):
        octets = elements_of(octets, known.numbers)
    found: np.ndarray = octets.astype(np.float32)
    return found


def decode_all(arrays: Mapping[str, np.ndarray], codes: Mapping[str, str]) -> Arrays:
    """The arrays with the numbers of those that hold codes, where these are still bytes."""
    return {
        name: CODECS[codes[name]].decode(array)
        if name in codes and array.dtype == np.uint8
        else array
        for name, array in arrays.items()
    }


def encode_answer(answer: Expected | np.ndarray, codec: str) -> Expected:
    """What an oracle says in numbers, as the bytes that are to be written, each of them exactly;
    what lies between two floats of the codec is rounded to the nearest, a tie to the even one."""
    numbers = answer.value if isinstance(answer, Expected) else answer
    value = CODECS[codec].encode(numbers).astype(np.float64)
    return Expected(value, np.abs(value), is_exact=True)


def draw_codes(
    codec: str, family: Family, shape: tuple[int, ...], rng: np.random.Generator
) -> np.ndarray:
    """Bytes of this shape: of whole numbers every code is as likely as another, of floats they are
    what is nearest to numbers of the family."""
    known = CODECS[codec]
    if not isinstance(known.numbers, DType):
        return np.frombuffer(rng.bytes(int(np.prod(shape))), np.uint8).reshape(shape)
    *outer, last = shape
    return known.encode(draw(family, (*outer, last * known.in_byte), rng))
