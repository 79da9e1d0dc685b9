"""Poison and guard bands: what an output holds before a call, and what must not change around it.

Outputs are filled with a tagged NaN, one of two patterns chosen at random, so that an element
that was never written is seen (A1, A2). The bands before and after every output hold random
bytes that no call may touch (verification.md §3.8).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..traces.records import Check

PATTERNS = (0x7FC0DEAD, 0xFFD1BEEF)
"""Two quiet NaNs of either sign, with payloads that no arithmetic makes."""


def choose(rng: np.random.Generator) -> int:
    """One of the patterns."""
    return PATTERNS[int(rng.integers(len(PATTERNS)))]


def fill(output: np.ndarray, pattern: int) -> None:
    """Fills an output of four-byte elements with the pattern."""
    output.reshape(-1).view(np.uint32).fill(pattern)


@dataclass(frozen=True)
class _Band:
    slot: int
    where: str
    bytes: np.ndarray
    expected: np.ndarray


@dataclass
class Marks:
    """What was put into a slot before a call."""

    pattern: int
    _bands: list[_Band] = field(default_factory=list)

    def guard(self, slot: int, where: str, band: np.ndarray, rng: np.random.Generator) -> None:
        """Fills one guard band (uint8 view) with random bytes and remembers them."""
        expected = np.frombuffer(rng.bytes(band.size), dtype=np.uint8)
        band[...] = expected
        self._bands.append(_Band(slot, where, band, expected))

    def check(self, slot: int) -> Check:
        """Whether the bands of a slot are as they were."""
        for band in self._bands:
            if band.slot != slot:
                continue
            hit = np.flatnonzero(band.bytes != band.expected)
            if hit.size:
                is_before = band.where.startswith("before")
                distance = band.bytes.size - int(hit[-1]) if is_before else int(hit[0])
                return Check(
                    name="guard bands",
                    passed=False,
                    figure=float(hit.size),
                    limit=0.0,
                    detail=f"{hit.size} bytes were written out of bounds, {distance} bytes "
                    f"{band.where}",
                )
        return Check(name="guard bands", passed=True, figure=0.0, limit=0.0)
