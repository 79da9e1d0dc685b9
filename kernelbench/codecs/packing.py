# SPDX-License-Identifier: Apache-2.0
"""Codes of a few bits in whole words, in a declared order, and back.

A layout is one stream of bits along the last axis, cut into words: codes may lie across two of
them. It says which code comes first, and nothing of what codes mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from ...errors import UsageError
from .elements import first_place

WORD_BITS = (8, 16, 32)


class Order(StrEnum):
    """Where the first code of a word lies."""

    LOW_FIRST = "low first"
    """In the lowest bits, and a code that lies across two words has its low bits in the first."""
    HIGH_FIRST = "high first"
    """In the highest bits, and a code across two words has its high bits in the first."""


@dataclass(frozen=True)
class Integers:
    """Whole numbers of a few bits, in two's complement where they are signed."""

    bits: int
    is_signed: bool = True

    def __post_init__(self) -> None:
        if not 1 + self.is_signed <= self.bits <= 8:
            raise UsageError(
                f"there are no {self} of {self.bits} bits",
                hint="unsigned ones have 1 to 8, signed ones 2 to 8",
            )

    def __str__(self) -> str:
        return f"{'' if self.is_signed else 'u'}int{self.bits}"

    @property
    def lowest(self) -> int:
        """The smallest of them."""
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @property
    def highest(self) -> int:
        """The largest of them."""
        return (1 << (self.bits - self.is_signed)) - 1

    @property
    def host(self) -> np.dtype:
        """numpy's type for arrays of them, a byte each."""
        return np.dtype(np.int8 if self.is_signed else np.uint8)


@dataclass(frozen=True)
class Layout:
    """How codes lie in words.

    `Layout(UINT4)` has two codes a byte, the first in the low nibble; of `Integers(2)` there are 4
    a byte, of `Integers(6)` 4 in 3 bytes, of `Integers(3)` 8 in 3 bytes, or with words of 32 bits
    32 in 3 words, as GPTQ has them.
    """

    codes: Integers
    order: Order = Order.LOW_FIRST
    word_bits: int = 8

    def __post_init__(self) -> None:
        if self.word_bits not in WORD_BITS:
            raise UsageError(
                f"there are no words of {self.word_bits} bits",
                hint=f"known: {', '.join(map(str, WORD_BITS))}",
            )

    @property
    def word(self) -> np.dtype:
        """numpy's type of a word."""
        return np.dtype(f"u{self.word_bits // 8}")

    @property
    def group_codes(self) -> int:
        """Codes of the shortest stretch that ends with a word."""
        return math.lcm(self.codes.bits, self.word_bits) // self.codes.bits

    @property
    def group_words(self) -> int:
        """Words of that stretch."""
        return math.lcm(self.codes.bits, self.word_bits) // self.word_bits


INT4 = Integers(4)
UINT4 = Integers(4, is_signed=False)


def pack(codes: np.ndarray, layout: Layout) -> np.ndarray:
    """The codes in words.

    Args:
        codes: integers of shape (..., N); N is a multiple of `layout.group_codes`.
        layout: how they lie.

    Returns:
        Words of shape (..., N * bits / word_bits), of `layout.word`.

    Raises:
        UsageError: if a code is outside of the layout's integers, if they are no integers, or if
            N does not divide.
    """
    kind = layout.codes
    if codes.dtype.kind not in "iu":
        raise UsageError(
            f"codes of {kind} are {codes.dtype}", hint="pass integers; elements have `codes_of`"
        )
    _require_length(codes, layout.group_codes, f"{kind} in words of {layout.word_bits} bits")
    outside = (codes < kind.lowest) | (codes > kind.highest)
    if outside.any():
        at = first_place(outside)
        raise UsageError(
            f"code {codes[at]} at {at} is no {kind}",
            hint=f"codes are {kind.lowest} to {kind.highest}",
        )
    shape = (*codes.shape[:-1], codes.shape[-1] // layout.group_codes * layout.group_words)
    octets = np.ascontiguousarray(codes.astype(np.uint8))
    if layout.order is Order.LOW_FIRST:
        stream = np.unpackbits(octets[..., None], axis=-1, bitorder="little")[..., : kind.bits]
        packed = np.packbits(stream.reshape(-1), bitorder="little").view(f"<{layout.word.str[1:]}")
    else:
        stream = np.unpackbits(octets[..., None], axis=-1)[..., -kind.bits :]
        packed = np.packbits(stream.reshape(-1)).view(f">{layout.word.str[1:]}")
    return packed.astype(layout.word).reshape(shape)


def unpack(words: np.ndarray, layout: Layout) -> np.ndarray:
    """The codes that lie in words: what `pack` was given.

    Args:
        words: of `layout.word` and of shape (..., W); W is a multiple of `layout.group_words`.
        layout: how the codes lie.

    Returns:
        Codes of shape (..., W * word_bits / bits), of `layout.codes.host`.

    Raises:
        UsageError: if the words are of another type, or if W does not divide.
    """
    kind = layout.codes
    if words.dtype != layout.word:
        raise UsageError(
            f"words of {layout.word_bits} bits are {words.dtype}", hint=f"pass {layout.word}"
        )
    _require_length(words, layout.group_words, f"words of {kind}")
    shape = (*words.shape[:-1], words.shape[-1] // layout.group_words * layout.group_codes)
    is_low = layout.order is Order.LOW_FIRST
    ordered = words.astype(f"{'<' if is_low else '>'}{layout.word.str[1:]}").reshape(-1)
    bits = np.unpackbits(ordered.view(np.uint8), bitorder="little" if is_low else "big")
    places = np.arange(kind.bits, dtype=np.uint8)
    weights = np.left_shift(1, places if is_low else places[::-1], dtype=np.uint8)
    codes: np.ndarray = (bits.reshape(-1, kind.bits) * weights).sum(axis=-1, dtype=np.uint8)
    if kind.is_signed:
        # The sign bit up to the top of the byte, and down again with copies of it.
        idle = 8 - kind.bits
        codes = (codes << idle).view(np.int8) >> idle
    return codes.reshape(shape)


def _require_length(given: np.ndarray, divisor: int, what: str) -> None:
    length = given.shape[-1] if given.ndim else 0
    if not given.ndim or length % divisor:
        raise UsageError(
            f"{what}: the last axis of shape {given.shape} is no multiple of {divisor}",
            hint=f"pad it to {-(-length // divisor) * divisor}" if given.ndim else "give it one",
        )
