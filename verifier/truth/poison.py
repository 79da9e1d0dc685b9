# SPDX-License-Identifier: Apache-2.0
"""Poison and guard bands: what an output holds before a call, and what must not change around it.

Outputs are filled with a tagged NaN, one of two patterns chosen at random, so that an element
that was never written is seen (A1, A2). The bands before and after every output hold random
bytes that no call may touch (verification.md §3.8); in trials the memory behind them is watched.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field

import numpy as np

from ...kernelbench.dtypes import DType
from ...traces.records import Check

PATTERNS = (0x7FC0DEAD, 0xFFD1BEEF)
"""Two quiet NaNs of either sign, with payloads that no arithmetic makes."""
FULL = 4
"""Bytes of an element that has room for them."""
_NARROW = {PATTERNS[0]: 0x7FD5, PATTERNS[1]: 0xFFE9}
"""The same in two bytes, in which both float16 and bfloat16 have quiet NaNs with such payloads. One
byte has the upper half: a NaN of both eight-bit floats."""


_memcmp = ctypes.CDLL(None).memcmp
_memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


def choose(rng: np.random.Generator) -> int:
    """One of the patterns."""
    return PATTERNS[int(rng.integers(len(PATTERNS)))]


def fill(output: np.ndarray, pattern: int) -> None:
    """Fills an output with the pattern, as its elements have it."""
    flat = output.reshape(-1)
    flat.view(f"u{flat.itemsize}").fill(bits_of(pattern, flat.itemsize))


def bits_of(pattern: int, itemsize: int) -> int:
    """The pattern in an element of so many bytes."""
    return pattern if itemsize == FULL else _NARROW[pattern] >> (8 * (2 - itemsize))


def word_of(pattern: int, itemsize: int) -> int:
    """What four bytes hold of elements that all hold it."""
    raw = bits_of(pattern, itemsize).to_bytes(itemsize, "little")
    return int.from_bytes(raw * (FULL // itemsize), "little")


def is_telling(dtype: DType) -> bool:
    """Whether no answer holds the pattern: short integers and small floats may."""
    return dtype.bytes >= FULL or (dtype.is_float and dtype.bytes == FULL // 2)


def find_left(output: np.ndarray, pattern: int) -> np.ndarray:
    """Which elements hold what they were filled with."""
    bits = np.ascontiguousarray(output).view(f"u{output.itemsize}")
    left: np.ndarray = bits == bits_of(pattern, output.itemsize)
    return left


@dataclass(frozen=True)
class _Band:
    slot: int
    where: str
    bytes: np.ndarray
    expected: np.ndarray
    """One byte for all, or one for each."""
    gap: int = 0
    """Bytes between it and the output."""

    def hits(self) -> np.ndarray:
        """Places that are not as they were."""
        if self._is_whole():
            return np.zeros(0, np.intp)
        return np.flatnonzero(self.bytes != self.expected)

    def _is_whole(self) -> bool:
        """By one pass without a copy, since it is megabytes after every trial.

        Where all bytes are to be the same, each is held against the one before.
        """
        at, size = self.bytes.ctypes.data, self.bytes.size
        if not size or not self.bytes.flags.c_contiguous:
            return not (self.bytes != self.expected).any()
        if self.expected.ndim:
            return not _memcmp(at, self.expected.ctypes.data, size)
        return bool(self.bytes[0] == self.expected) and not _memcmp(at, at + 1, size - 1)


@dataclass
class Marks:
    """What was put into a slot before a call, and around it."""

    pattern: int
    _bands: list[_Band] = field(default_factory=list)
    _kept: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def guard(self, slot: int, where: str, band: np.ndarray, rng: np.random.Generator) -> None:
        """Fills one guard band (uint8 view) with random bytes and remembers them."""
        expected = np.frombuffer(rng.bytes(band.size), dtype=np.uint8)
        band[...] = expected
        self._bands.append(_Band(slot, where, band, expected))

    def watch(self, slot: int, where: str, rest: np.ndarray, gap: int) -> None:
        """Remembers bytes that are all the same and lie `gap` bytes from an output."""
        self._bands.append(_Band(slot, where, rest, rest[:1].reshape(()).copy(), gap))

    def keep(self, plan: np.ndarray, held: np.ndarray) -> None:
        """Remembers words of the plan of the one call, which must stay what they are."""
        self._kept.append((plan, held))

    def check(self, slot: int) -> Check:
        """Whether the bands of a slot are as they were, and its plan."""
        for band in self._bands:
            if band.slot == slot and (hits := band.hits()).size:
                is_before = band.where.startswith("before")
                nearest = band.bytes.size - int(hits[-1]) if is_before else int(hits[0])
                return Check(
                    name="guard bands",
                    passed=False,
                    figure=float(hits.size),
                    limit=0.0,
                    detail=f"{hits.size} bytes were written out of bounds, {band.gap + nearest} "
                    f"bytes {band.where}",
                )
        if changed := sum(int((plan != held).sum()) for plan, held in self._kept):
            return Check(
                name="the plan as it was prepared",
                passed=False,
                figure=float(changed),
                limit=0.0,
                detail=f"{changed} of the words that were looked at are others after a call: "
                "what a call needs to write belongs in memory of its own",
            )
        return Check(name="guard bands", passed=True, figure=0.0, limit=0.0)
