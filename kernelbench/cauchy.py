# SPDX-License-Identifier: Apache-2.0
"""u times numbers of Cauchy's distribution, which is stable under sums.

A sum of terms that are off by such numbers each is off by one of them times the sum of the terms'
magnitudes (Indyk, Stable Distributions, Pseudorandom Generators, Embeddings, and Data Stream
Computation, J. ACM 53, 2006).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from .dtypes import FLOAT32

FARTHEST = 1e5
"""Of a drawn number: what is off by it stays within 0.6 % of what it was."""
CHUNK, KEPT_CHUNKS = 1 << 18, 64
"""Numbers that are drawn together, and how many of those are kept, a MiB each: as the largest
hidden shapes take. To draw them took longer than all else."""
APART = 7919
"""From one operation's numbers to those of the next one, a prime."""
_OF_STEPS = 1 << 20
"""Chunks from here on are those of operations."""


class Numbers:
    """One sequence, and how far it was gone."""

    def __init__(self) -> None:
        self._at = 0

    def take(self, count: int) -> np.ndarray:
        """The next ones, in float32."""
        found, filled = np.empty(count, np.float32), 0
        while filled < count:
            chunk, begin = divmod(self._at, CHUNK)
            part = _draw_chunk(chunk)[begin : begin + count - filled]
            found[filled : filled + part.size] = part
            filled += part.size
            self._at += part.size
        return found


def spread(draw: int, step: int, count: int) -> np.ndarray:
    """As many numbers for one operation of a draw, float32. They come again where they are many,
    and with the next operation beside other elements."""
    chunk = _draw_chunk(_OF_STEPS + draw)
    return np.resize(np.roll(chunk, step * APART)[: min(count, CHUNK)], count)


@lru_cache(KEPT_CHUNKS)
@np.errstate(all="ignore")
def _draw_chunk(number: int) -> np.ndarray:
    """Two normal numbers, one over the other, for each; in float32, which takes a third of the
    time."""
    rng = np.random.default_rng(number)
    drawn = rng.standard_normal(CHUNK, np.float32)
    drawn /= rng.standard_normal(CHUNK, np.float32)
    np.clip(drawn, -FARTHEST, FARTHEST, out=drawn)
    drawn *= np.float32(FLOAT32.roundoff)
    return drawn
