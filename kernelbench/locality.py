# SPDX-License-Identifier: Apache-2.0
"""What a sparse pattern asks of a memory: how long rows are, and where the columns lead.

Quantiles of row lengths say what mean and deviation do not: whether a few rows hold the work.
Distance from the diagonal and reuse say whether a cache near a core can answer gathers. Of large
patterns reuse is taken on blocks of rows spread over them; figures are the same each time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from .dtypes import dtype_of
from .problem import Problem, Structure, Tensor
from .sparse import INDICES

LOCALITY_FEATURES = (
    "row_p50",
    "row_p90",
    "row_p99",
    "column_reach",
    "column_uses",
    "near_reuse",
)
WINDOW_USES = "window_uses"
WINDOW_ROWS = 16
"""Rows whose columns are condensed together by sparse graph translation (TC-GNN): as many as a tile
of tensor cores has."""
NEAR_ROWS = 64
"""Rows whose gathers may meet in a cache near a core, such as those of a few blocks of threads."""
_MOST_BLOCKS = 512
_COLUMNS = "K"
"""The axis that columns count, and that the rows of what is gathered have."""


def locality(structure: Structure) -> dict[str, float]:
    """The shape of a CSR pattern beside `features`; nothing of one without columns or entries.

    `row_p50`, `row_p90` and `row_p99` are quantiles of the entries per row. `column_reach` is the
    median distance of an entry from the diagonal, as a share of the columns: about 0.3 where they
    are drawn at random. `column_uses` is how many entries name a column, in the mean of those that
    are named. `near_reuse` is the share of entries whose column another entry of the same 64 rows
    has named before. `window_uses` is how many of 16 rows name a column, in the mean of those that
    are named: a tile of condensed columns has so many entries of 16.
    """
    indptr, indices = structure.arrays.get("indptr"), structure.arrays.get("indices")
    if indptr is None or indices is None or not len(indices):
        return {}
    lengths = np.diff(indptr)
    rows, columns = len(lengths), structure.axes[_COLUMNS]
    p50, p90, p99 = np.quantile(lengths, (0.5, 0.9, 0.99))
    return {
        "row_p50": float(p50),
        "row_p90": float(p90),
        "row_p99": float(p99),
        "column_reach": _reach(indptr, indices, rows, columns),
        "column_uses": len(indices) / int(np.count_nonzero(np.bincount(indices))),
        "near_reuse": 1 - _distinct_share(indptr, indices, NEAR_ROWS),
        WINDOW_USES: 1 / _distinct_share(indptr, indices, WINDOW_ROWS),
    }


def list_gathered(problem: Problem) -> tuple[Tensor, ...]:
    """The inputs of which a sparse problem fetches one row for each entry, by its column."""
    names = {tensor.name for tensor in problem.inputs if tensor.is_index}
    if INDICES.name not in names or _COLUMNS not in problem.axes:
        return ()
    return tuple(t for t in problem.inputs if not t.is_index and t.shape[:1] == (_COLUMNS,))


def gathered_bytes(problem: Problem, axes: Mapping[str, int], *, granule: int) -> float:
    """Bytes that the entries fetch in all where none of them finds a row that is there already.

    Args:
        granule: Bytes that a memory hands out at once; a row takes whole ones.
    """
    found = 0.0
    for tensor in list_gathered(problem):
        row = math.prod(tensor.extent(axes)[1:]) * dtype_of(tensor.dtype).bytes
        found += axes["nnz"] * math.ceil(row / granule) * granule
    return found


def _reach(indptr: np.ndarray, indices: np.ndarray, rows: int, columns: int) -> float:
    taken = np.unique(np.linspace(0, len(indices) - 1, 1 << 20).astype(np.int64))
    row = np.searchsorted(indptr, taken, side="right") - 1
    apart = np.abs(indices[taken] - row * (columns / rows))
    return float(np.median(apart) / columns)


def _distinct_share(indptr: np.ndarray, indices: np.ndarray, near: int) -> float:
    """Of the entries of `near` rows those whose column no other one of these has named before."""
    rows = len(indptr) - 1
    starts = np.arange(0, rows, near)
    if len(starts) > _MOST_BLOCKS:
        starts = starts[np.linspace(0, len(starts) - 1, _MOST_BLOCKS).astype(np.int64)]
    entries = distinct = 0
    ends = np.minimum(starts + near, rows)
    for first, last in zip(indptr[starts], indptr[ends], strict=True):
        named = indices[first:last]
        entries += len(named)
        distinct += len(np.unique(named))
    return distinct / entries if entries else 1.0
