# SPDX-License-Identifier: Apache-2.0
"""What entries of a pattern have of their rows: sums, and how far each is below the maximum."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .problem import Structure
from .sparse import row_lengths, segment_maxima, segment_sums

RowSums = Callable[[np.ndarray], np.ndarray]
RowProducts = Callable[[np.ndarray, np.ndarray], np.ndarray]


def widen_rows(structure: Structure, rows: np.ndarray) -> np.ndarray:
    """Gives each entry what its row has."""
    return np.repeat(rows, row_lengths(structure), axis=0)


def depths(structure: Structure, entries: np.ndarray) -> np.ndarray:
    """How far each entry is below its row's maximum, float64."""
    found = widen_rows(structure, segment_maxima(structure, entries))
    found -= entries
    return found


def row_sums(structure: Structure) -> tuple[RowSums, RowProducts, RowSums]:
    """What a softmax over rows asks for: their sums, those of products, and their widening."""

    def total(entries: np.ndarray) -> np.ndarray:
        return segment_sums(structure, entries)

    def weigh(entries: np.ndarray, others: np.ndarray) -> np.ndarray:
        return total(entries * others)

    def widen(rows: np.ndarray) -> np.ndarray:
        return widen_rows(structure, rows)

    return total, weigh, widen
