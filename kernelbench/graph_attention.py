# SPDX-License-Identifier: Apache-2.0
"""Attention on a graph (GAT, arXiv 1710.10903): scores of the entries of a pattern, which are
e[p,h] = leakyrelu(a_row[i,h] + a_col[j,h]), drawn, and as weights with what they may be off; and
what torch makes of them.

A score is a sum and a product, each rounded once. With the rounding of a base-2 exponential's
argument its exponent may be off by 3 u |e|.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from .exponentials import add_noise, softmax_of
from .families import LONG_LOGITS, PEAKS, SUNK, blemish, draw, draw_places, is_thinned, noise
from .problem import Family, Inputs, Pair, Structure
from .sparse import (
    csr,
    live_rows,
    row_lengths,
    row_numbers,
    row_terms,
    segment_maxima,
    segment_sums,
)

SLOPE = 0.2
SHIFTED = 0.2
"""Of the rows of LARGE, those whose scores are so low that their exponentials vanish."""


def draw_scores(
    structure: Structure, family: Family, rng: np.random.Generator, shape: tuple[int, int, int]
) -> Inputs:
    """Shares of scores of rows and columns. Of more columns than a plain sum of exponentials takes
    most do not count.

    In LARGE exponentials overflow, or all of a row vanish, without the subtraction of the maximum;
    but not in all heads and rows: scores of one sign do not show what a row's share is.

    Args:
        shape: rows, columns and heads.
    """
    rows, columns, heads = shape
    a_row, a_col = (_draw_shares(family, (n, heads), rng) for n in (rows, columns))
    a_col[is_thinned(np.arange(columns), columns, (columns,), rng, LONG_LOGITS)] += SUNK
    live, indices = live_rows(structure), structure.arrays["indices"]
    if family is Family.LARGE:
        a_row -= np.float32(PEAKS[0]) * (rng.random((rows, 1)) < SHIFTED)
        raised = rng.permutation(live)[: -(-len(live) // 8)]
        at = structure.arrays["indptr"][raised]
        at = at + draw_places(row_lengths(structure)[raised], rng)
        height = rng.uniform(*PEAKS, (len(at), 1)) * rng.integers(0, 2, heads)
        a_col[indices[at]] += height.astype(np.float32)
    blemish(family, a_row, rng, (np.nan,), places=live)
    blemish(family, a_col, rng, (np.nan,), places=indices)
    return a_row, a_col


def _draw_shares(family: Family, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
    if family is Family.LARGE:
        return noise(shape, rng)
    return add_noise(draw(family, shape, rng, varies=0), family, rng)


def weigh(structure: Structure, a_row: np.ndarray, a_col: np.ndarray) -> Pair:
    """The softmax of each row's scores, of all entries and heads, and its scale."""
    rows, indices = row_numbers(structure), structure.arrays["indices"]
    sums = a_row.astype(np.float64)[rows] + a_col[indices]
    e = np.where(sums > 0, sums, SLOPE * sums)

    def total(entries: np.ndarray) -> np.ndarray:
        found: np.ndarray = segment_sums(structure, entries)[rows]
        return found

    terms = row_terms(structure)[rows][:, None]
    distance = segment_maxima(structure, e)[rows] - e
    return softmax_of(distance, 3 * e, terms, total, lambda y, d: total(y * d))


def add_neighbours(structure: Structure, weights: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The sum over the entries of each row of weights[p,h] X[indices[p],h,:], float64."""
    summed = np.empty((len(structure.arrays["indptr"]) - 1, *X.shape[1:]))
    for h in range(X.shape[1]):
        summed[:, h] = csr(structure, weights[:, h], len(X)) @ X[:, h].astype(np.float64)
    return summed


def attend_by_segments(
    torch: Any, indptr: Any, indices: Any, rows: Any, size: tuple[int, int]
) -> Callable[[Any, Any, Any], Any]:
    """What torch has: segments that are reduced, and a sparse product for each head.

    Args:
        size: rows and columns.
    """
    offsets = indptr.long()

    def per_row(entries: Any, reduce: str) -> Any:
        # unsafe: skips a check of the offsets that never change.
        found = torch.segment_reduce(entries, reduce, offsets=offsets, axis=0, unsafe=True)
        return torch.index_select(found, 0, rows)

    def attend(a_row: Any, a_col: Any, X: Any) -> Any:
        e = a_row.float().index_select(0, rows) + a_col.float().index_select(0, indices)
        e = torch.nn.functional.leaky_relu(e, SLOPE, inplace=True)
        risen = e.sub_(per_row(e, "max")).exp_()
        alpha = risen.div_(per_row(risen, "sum")).t().contiguous()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
            matrices = [
                torch.sparse_csr_tensor(indptr, indices, weight, size, check_invariants=False)
                for weight in alpha
            ]
        return torch.stack([matrix @ X[:, h].float() for h, matrix in enumerate(matrices)], 1)

    return attend


def attend_by_messages(torch: Any, rows: Any, columns: Any, a_row: Any, a_col: Any, X: Any) -> Any:
    """What torch.compile takes: segments scattered, and a message of each entry."""
    e = torch.nn.functional.leaky_relu(a_row.float()[rows] + a_col.float()[columns], SLOPE)
    wide = rows[:, None].expand(e.shape)
    top = e.new_full(a_row.shape, -torch.inf).scatter_reduce(0, wide, e, "amax")
    risen = torch.exp(e - top[rows])
    alpha = risen / torch.zeros_like(top).index_add(0, rows, risen)[rows]
    messages = alpha[:, :, None] * X.float()[columns]
    return e.new_zeros((len(a_row), *X.shape[1:])).index_add(0, rows, messages)
