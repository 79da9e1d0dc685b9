# SPDX-License-Identifier: Apache-2.0
"""Rows of inputs unlike the others: what counts nothing by -inf or by zeros, or little.

A kernel that shares a row out among lanes has some that see masked logits alone, or first; one that
passes over zeros passes over what they meet, and zero times infinity is NaN; one that adds rows
before it multiplies (Strassen) loses the small one.
"""

from __future__ import annotations

import numpy as np

from .problem import Family

SHARES = (1 / 8, 1 / 2, 7 / 8)
"""Of a row's logits, where they are masked here and there."""
ZERO_ROWS = 16
"""At most: a tile that is skipped has no more."""
GRADES = 10
"""Powers of two by which a row is smaller, at most."""


def draw_mask(
    places: np.ndarray,
    lengths: np.ndarray | int,
    rows: np.ndarray,
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> np.ndarray:
    """Which logits are masked: of a row none, those from some place on, as in causal attention,
    those before one, as behind a window, or some of all; never the first.

    Args:
        places: the number of each within its row.
        lengths: of the row that each belongs to.
        rows: the number of the row that each belongs to.
        shape: that all three are broadcast to.
    """
    count = int(rows.max(initial=0)) + 1
    kinds, where = rng.integers(4, size=count)[rows], rng.random(count)[rows]
    shares, border = rng.choice(SHARES, count)[rows], 1 + where * (np.asarray(lengths) - 1)
    behind, before, scattered = (kinds == kind for kind in range(3))
    is_masked = (behind & (places >= border)) | (before & (places < border))
    is_masked = is_masked | (scattered & (rng.random(shape) < shares))
    found: np.ndarray = is_masked & (places > 0)
    return found


def change_some(family: Family, rows: np.ndarray, rng: np.random.Generator) -> None:
    """Of a factor, in place. NONFINITE: zeros all along some neighbouring rows, a quarter of them
    at most. LARGE: some half of the rows are smaller, by powers of two, so that nothing is rounded.
    """
    if family is Family.NONFINITE:
        count = min(ZERO_ROWS, len(rows) // 4)
        start = int(rng.integers(len(rows) - count + 1))
        rows[start : start + count] = 0
    if family is Family.LARGE:
        powers = rng.integers(0, GRADES, len(rows), endpoint=True) * (rng.random(len(rows)) < 1 / 2)
        rows *= (2.0**-powers).astype(rows.dtype).reshape(-1, *(1,) * (rows.ndim - 1))
