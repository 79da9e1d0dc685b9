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
from .families import (
    LONG_LOGITS,
    PEAKS,
    SUNK,
    blemish,
    draw,
    draw_places,
    is_thinned,
    noise,
    thin_columns,
)
from .gradients import write_each
from .messages import multiply_at_entries, prepare_products, turn
from .problem import BaselineCall, Expected, Family, Inputs, Pair, Prepared, Structure
from .segments import depths, row_sums, widen_rows
from .sparse import csr, live_rows, row_lengths, row_numbers, row_terms, segment_sums
from .torch_calls import dense_view, views_beside_pattern

SLOPE = 0.2
SHIFTED = 0.2
"""Of the rows of LARGE, those whose scores are so low that their exponentials vanish."""
LOWERED = 0.875
"""Of a backward's rows, and of its columns, those with shares far from 0."""


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


def weigh(
    structure: Structure, a_row: np.ndarray, a_col: np.ndarray, terms: np.ndarray | None = None
) -> Pair:
    """The softmax of each row's scores, of all entries and heads, and its scale.

    Args:
        terms: of the sums that each weight is part of; None: those of its row.
    """
    e = leak(structure, a_row, a_col)
    if terms is None:
        terms = widen_rows(structure, row_terms(structure)[:, None])
    return softmax_of(depths(structure, e), 3 * e, terms, *row_sums(structure))


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


def draw_backward(structure: Structure, family: Family, rng: np.random.Generator) -> Inputs:
    """Shares of scores, features, and a gradient, of which few rows are not 0 where there are many:
    columns are summed, too."""
    rows, columns, heads, width = (structure.axes[axis] for axis in "MKHF")
    a_row, a_col = draw_scores(structure, family, rng, (rows, columns, heads))
    if family is Family.LARGE:
        a_row, a_col = _draw_raised(rng, rows, heads), -_draw_raised(rng, columns, heads)
    X = draw(family, (columns, heads * width), rng, varies=0)
    dY = draw(family, (rows, heads * width), rng, varies=0)
    thin_columns(family, dY, rng)
    if family is not Family.NORMAL:
        dY[is_thinned(np.arange(rows), rows, (rows,), rng)] = 0
    blemish(family, X, rng, (np.nan,), places=structure.arrays["indices"])
    blemish(family, dY, rng, (np.nan,), places=live_rows(structure))
    return a_row, a_col, X.reshape(columns, heads, -1), dY.reshape(rows, heads, -1)


def _draw_raised(rng: np.random.Generator, count: int, heads: int) -> np.ndarray:
    """Shares of scores of LARGE, most of them lowered by one height: a row and a column with
    opposite ones have a score near 0, where its slope changes. A single weight of 1 in a row would
    leave nothing of the row's gradients."""
    is_lowered = rng.random((count, heads)) < LOWERED
    return noise((count, heads), rng) - np.float32(PEAKS[0]) * is_lowered


def leak(structure: Structure, a_row: np.ndarray, a_col: np.ndarray) -> np.ndarray:
    """The scores of all entries and heads, float64."""
    sums = a_row.astype(np.float64)[row_numbers(structure)] + a_col[structure.arrays["indices"]]
    scores: np.ndarray = np.where(sums > 0, sums, SLOPE * sums)
    return scores


def expect_backward(
    structure: Structure, shares: Pair, X: np.ndarray, dY: np.ndarray
) -> tuple[Expected, ...]:
    """The gradients of both shares of the scores and of X, float64.

    A weight is off by what its exponential is, a product of dY and X by what a sum of its terms is,
    and their mean in a row by both: it reaches every entry, and they add up where those are summed.

    Args:
        shares: of the scores of rows and of columns.
    """
    rows, (turned, order) = row_numbers(structure), turn(structure)
    of_row, of_column = (row_terms(each)[:, None] for each in (structure, turned))
    of_row = of_row + X.shape[2]
    terms, in_column = of_row[rows], np.empty((len(rows), 1))
    in_column[order] = of_column[row_numbers(turned)]
    (alpha, off), (_, weight_off) = (weigh(structure, *shares, n) for n in (terms, in_column))
    pairs = [multiply_at_entries(structure, dY[:, h], X[:, h]) for h in range(X.shape[1])]
    told, size = (np.stack(each, 1) for each in zip(*pairs, strict=True))
    change = alpha * (told - segment_sums(structure, alpha * told)[rows])
    mean, mean_off = (segment_sums(structure, each * size)[rows] for each in (alpha, off))
    scale = off * (size + mean) + alpha * mean_off
    slope = np.where(leak(structure, *shares) > 0, 1.0, SLOPE)
    change, scale = change * slope, scale * slope
    again = scale * (1 + np.sqrt(terms / in_column))
    return (
        Expected(segment_sums(structure, change), segment_sums(structure, scale), of_row),
        Expected(
            segment_sums(turned, change[order]), segment_sums(turned, again[order]), of_column
        ),
        Expected(
            add_neighbours(turned, alpha[order], dY),
            add_neighbours(turned, weight_off[order], np.abs(dY)),
            of_column[:, :, None],
        ),
    )


def go_back_by_segments(
    torch: Any, structure: Structure, call: BaselineCall, rows: Any, indices: Any
) -> Prepared:
    """What torch has for the backward: segments that are reduced, and of each head a sampled
    product and one with the transposed matrix."""
    a_row, a_col, X, dY, *gradients = views_beside_pattern(call)
    offsets = dense_view(structure.arrays["indptr"]).long()
    multiply = prepare_products(torch, structure, (len(dY), len(X)))

    def per_row(entries: Any, reduce: str = "sum") -> Any:
        # unsafe: skips a check of the offsets that never change.
        return torch.segment_reduce(entries, reduce, offsets=offsets, axis=0, unsafe=True)

    def compute() -> None:
        sums = a_row.float().index_select(0, rows) + a_col.float().index_select(0, indices)
        slope = torch.where(sums > 0, 1.0, SLOPE)
        e = sums.mul_(slope)
        alpha = e.sub_(per_row(e, "max").index_select(0, rows)).exp_()
        alpha = alpha.div_(per_row(alpha).index_select(0, rows))
        heads = range(X.shape[1])
        found = [multiply(alpha[:, h], X[:, h].float(), dY[:, h].float()) for h in heads]
        told = torch.stack([each for each, _ in found], 1)
        mean = per_row(alpha * told).index_select(0, rows)
        change = told.sub_(mean).mul_(alpha).mul_(slope)
        d_col = torch.zeros_like(a_col, dtype=torch.float32).index_add_(0, indices, change)
        d_X = torch.stack([each for _, each in found], 1)
        write_each(gradients, (per_row(change), d_col, d_X))

    return compute


def go_back_by_messages(torch: Any, rows: Any, columns: Any, *tensors: Any) -> None:
    """The same as torch.compile takes it: a message of each entry. It writes the gradients."""
    a_row, a_col, X, dY, *gradients = tensors
    sums = a_row.float()[rows] + a_col.float()[columns]
    slope = torch.where(sums > 0, 1.0, SLOPE)
    e, wide = sums * slope, rows[:, None].expand(sums.shape)
    top = e.new_full(a_row.shape, -torch.inf).scatter_reduce(0, wide, e, "amax")
    risen = torch.exp(e - top[rows])
    alpha = risen / torch.zeros_like(top).index_add(0, rows, risen)[rows]
    taken = dY.float()[rows]
    told = (taken * X.float()[columns]).sum(2)
    mean = torch.zeros_like(a_row).float().index_add(0, rows, alpha * told)[rows]
    change = alpha * (told - mean) * slope
    d_row = torch.zeros_like(a_row).float().index_add(0, rows, change)
    d_col = torch.zeros_like(a_col).float().index_add(0, columns, change)
    d_X = torch.zeros_like(X).float().index_add(0, columns, alpha[:, :, None] * taken)
    write_each(gradients, (d_row, d_col, d_X))
