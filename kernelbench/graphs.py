# SPDX-License-Identifier: Apache-2.0
"""Draws sparse patterns: by a law of degrees, as R-MAT, or as one of a few hard shapes.

Everything is a function of its arguments and a seed. It knows statistics of graphs, not where they
come from (`standins.py`) and not what is computed on them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MAX_REDRAWS = 8


class Pattern(NamedTuple):
    """A CSR pattern: int32 arrays, columns sorted within a row and distinct."""

    rows: int
    cols: int
    indptr: np.ndarray
    indices: np.ndarray

    @property
    def nnz(self) -> int:
        """How many entries it has."""
        return len(self.indices)


def popularity(n: int, target: float, gamma: float) -> np.ndarray:
    """Zipf-Mandelbrot weights (i+s)^(-1/(gamma-1)) whose squared CV is `target`, largest first."""
    # Moments over a few thousand bins of ranks: the tail is flat, and n may be millions.
    edges = np.unique(np.rint(np.geomspace(1, n + 1, 8192)))
    middle, width = (edges[:-1] + edges[1:] - 1) / 2, np.diff(edges)
    power = -1.0 / (gamma - 1.0)
    low, high = 1e-6, 1e3 * n
    shift = low
    for _ in range(60):
        shift = (low * high) ** 0.5
        binned = (middle + shift) ** power
        mean = np.sum(binned * width) / n
        variance = np.sum(np.square(binned) * width) / n - mean**2
        low, high = (shift, high) if variance / mean**2 > target else (low, shift)
    weights = (np.arange(1, n + 1, dtype=np.float64) + shift) ** power
    return np.asarray(weights / weights.sum())


def degrees(
    n: int, nnz: int, cv: float, *, gamma: float, cols: int, rng: np.random.Generator
) -> np.ndarray:
    """Row lengths that sum to `nnz` with a coefficient of variation near `cv`, at most `cols`."""
    if nnz == 0:
        return np.zeros(n, np.int64)
    mean = nnz / n
    target = cv * cv - 1.0 / mean  # multinomial draws add a Poisson variance of 1/mean
    if target <= 0.01:
        lengths = np.rint(rng.normal(mean, cv * mean, n)).astype(np.int64).clip(0, cols)
    else:
        weights = popularity(n, target, gamma)
        lengths = rng.multinomial(nnz, weights)[rng.permutation(n)].clip(0, cols)
    while (missing := nnz - int(lengths.sum())) != 0:
        chosen = rng.integers(0, n, abs(missing))
        np.add.at(lengths, chosen, 1 if missing > 0 else -1)
        lengths = lengths.clip(0, cols)
    return np.asarray(lengths)


def by_degree(
    n: int,
    nnz: int,
    cv: float,
    *,
    cols: int = 0,
    p_local: float = 0.2,
    window: int = 0,
    gamma: float = 2.2,
    seed: int = 0,
) -> Pattern:
    """A pattern by the law of degrees.

    Args:
        p_local: the share of columns that lie within `window` of the diagonal; the others follow
            a law of popularity as uneven as the row lengths.
        window: half the width of the local band; 0: a hundredth of the columns.
    """
    rng = np.random.default_rng(seed)
    cols = cols or n
    nnz = min(nnz, n * cols)
    lengths = degrees(n, nnz, cv, gamma=gamma, cols=cols, rng=rng)
    columns = _Columns(n, cols, cv, nnz, p_local, window or max(1, cols // 100), gamma, rng)
    row = np.repeat(np.arange(n, dtype=np.int64), lengths)
    keys = _make_distinct(row * cols + columns.draw(row))
    for attempt in range(MAX_REDRAWS):
        missing = lengths - _row_counts(keys, n, cols)
        row = np.repeat(np.arange(n, dtype=np.int64), missing)
        if not len(row):
            return from_keys(n, cols, keys)
        # A full window, or a hub's few popular columns, can never be drawn apart: later rounds
        # look everywhere.
        drawn = columns.draw(row) if attempt < 2 else rng.integers(0, cols, len(row))
        keys = _merge_keys(keys, _make_distinct(row * cols + drawn))
    return from_keys(n, cols, _fill_rows(keys, lengths, cols, rng))


class _Columns:
    """Draws columns for rows: near the diagonal, else by popularity."""

    def __init__(
        self,
        n: int,
        cols: int,
        cv: float,
        nnz: int,
        p_local: float,
        half: int,
        gamma: float,
        rng: np.random.Generator,
    ) -> None:
        self.n, self.cols, self.p_local, self.half, self.rng = n, cols, p_local, half, rng
        uneven = cv * cv - n / max(nnz, 1)
        self.weights = (
            popularity(cols, uneven, gamma)[rng.permutation(cols)] if uneven > 0.01 else None
        )

    def draw(self, rows: np.ndarray) -> np.ndarray:
        """One column for each of `rows`."""
        count = len(rows)
        if self.weights is None:
            column = self.rng.integers(0, self.cols, count)
        else:
            # Counts and a shuffle: the same law as independent draws, and far faster for millions.
            drawn = self.rng.multinomial(count, self.weights)
            column = np.repeat(np.arange(self.cols), drawn)
            self.rng.shuffle(column)
        is_local = np.flatnonzero(self.rng.random(count) < self.p_local)
        offset = self.rng.integers(-self.half, self.half + 1, len(is_local))
        column[is_local] = (rows[is_local] * self.cols // self.n + offset) % self.cols
        return np.asarray(column)


def _make_distinct(keys: np.ndarray) -> np.ndarray:
    keys.sort()
    return keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys


def _row_counts(keys: np.ndarray, n: int, cols: int) -> np.ndarray:
    return np.diff(np.searchsorted(keys, np.arange(n + 1, dtype=np.int64) * cols))


def _merge_keys(keys: np.ndarray, more: np.ndarray) -> np.ndarray:
    """Sorted distinct keys with those of `more` that are not there yet."""
    place = np.searchsorted(keys, more)
    is_new = keys[np.minimum(place, len(keys) - 1)] != more
    return np.insert(keys, place[is_new], more[is_new])


def _fill_rows(
    keys: np.ndarray, lengths: np.ndarray, cols: int, rng: np.random.Generator
) -> np.ndarray:
    """What nearly full rows still lack after the redraws is drawn from their free columns."""
    starts = np.searchsorted(keys, np.arange(len(lengths) + 1, dtype=np.int64) * cols)
    missing = lengths - np.diff(starts)
    added = [keys]
    for row in np.flatnonzero(missing):
        taken = keys[starts[row] : starts[row + 1]] - row * cols
        free = np.setdiff1d(np.arange(cols), taken, assume_unique=True)
        added.append(row * cols + rng.choice(free, int(missing[row]), replace=False))
    return np.sort(np.concatenate(added))


def from_keys(rows: int, cols: int, keys: np.ndarray) -> Pattern:
    """The pattern whose sorted, distinct keys are row * cols + column."""
    indptr = np.searchsorted(keys, np.arange(rows + 1, dtype=np.int64) * cols)
    indices = keys % cols if len(keys) else keys
    return Pattern(rows, cols, indptr.astype(np.int32), indices.astype(np.int32))


def from_lengths(lengths: np.ndarray, cols: int, rng: np.random.Generator) -> Pattern:
    """A small pattern with the given row lengths and uniform columns."""
    parts = [
        row * cols + np.sort(rng.choice(cols, min(int(length), cols), replace=False))
        for row, length in enumerate(lengths)
    ]
    keys = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    return from_keys(len(lengths), cols, keys.astype(np.int64))


def rmat(
    scale: int,
    edge_factor: int = 16,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    seed: int = 0,
) -> Pattern:
    """A recursive-matrix graph with 2^scale rows; repeated edges are dropped."""
    rng = np.random.default_rng(seed)
    n, count = 1 << scale, edge_factor << scale
    row = np.zeros(count, np.int64)
    column = np.zeros(count, np.int64)
    for _ in range(scale):
        side = rng.random(count)
        is_lower = side >= a + b
        is_right = ((side >= a) & (side < a + b)) | (side >= a + b + c)
        row = 2 * row + is_lower
        column = 2 * column + is_right
    return from_keys(n, n, np.unique(row * n + column))


def hub(n: int, nnz: int, *, cols: int = 0, empty: float = 0.4, seed: int = 0) -> Pattern:
    """One full row, a share of empty rows, and `nnz` entries in all, short rows for the rest."""
    rng = np.random.default_rng(seed)
    cols = cols or n
    lengths = np.zeros(n, np.int64)
    lengths[n // 3] = cols
    live = np.flatnonzero(rng.random(n) >= empty)
    live = live[live != n // 3]
    rest = max(min(nnz, n * cols) - cols, 0)
    if len(live):
        lengths[live] = rng.multinomial(rest, np.full(len(live), 1 / len(live))).clip(0, cols)
    return from_lengths(lengths, cols, rng)
