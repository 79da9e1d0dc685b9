# SPDX-License-Identifier: Apache-2.0
"""Graph attention in one kernel: scores, their softmax over a row's neighbours, and the sum."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from .. import graph_attention
from ..families import blemish, draw
from ..problem import Expected, Family, Inputs, Prepared, Structure
from ..sparse import row_terms

PROBLEM = {
    "title": "Graph attention: scores, softmax and sum over neighbours (CSR)",
    "definition": "Y[i,h,f] = sum over p in [indptr[i], indptr[i+1]) of alpha[p,h] * X[j,h,f], "
    "j = indices[p], alpha the row's softmax of leakyrelu(a_row[i,h] + a_col[j,h], slope 0.2)",
    "source": "dgNN, arXiv 2110.09524; GAT, arXiv 1710.10903",
    "headline": "2.75x end to end, 7.73x less memory than DGL and PyG in training, as reported",
    "tags": ["sparse", "graph", "attention"],
    "is_row_wise": True,
    "axes": {"M": "rows", "K": "columns", "H": "heads", "F": "features", "nnz": "entries"},
    "lengths": {"H": [1, 2, 3, 4, 8], "F": "grid y"},
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "a_row": "float32[M, H]: a row's share of its scores",
        "a_col": "float32[K, H]: a column's share of them",
        "X": "float32[K, H, F]: features, row-major",
    },
    "outputs": {"Y": "float32[M, H, F]: row-major"},
    "flops": "8 * nnz * H + 2 * nnz * H * F",  # a score 3, its softmax 5; a feature 2
    "workloads": {
        "realistic": {
            "pubmed-4x16": {"H": 4, "F": 16, "graph": "pubmed", "note": "dgNN's heads"},
            "enron-1x64": {"H": 1, "F": 64, "graph": "email-Enron", "note": "one head"},
        },
        "tiny": {"tiny": {"H": 2, "F": 16, "pattern": "uneven 600"}},
        "adversarial": {"hub-3x33": {"H": 3, "F": 33, "pattern": "hub 2000", "note": "odd"}},
    },
    "families": "large nonfinite",
    "nrmse": 1.5e-4,
    "accuracy": "n = the row's entries, s = sum of |alpha X| (2 + (8 + d + D) / sqrt(n)) with d = "
    "max - e + 3 |e| of a score e and D the mean of d by alpha: a score takes two roundings. An "
    "empty row gives 0. NaN comes out where the definition has it; infinities are never drawn.",
}


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Inputs:
    """Shares of scores, and features with a NaN or two in NONFINITE."""
    M, K, H, F = (structure.axes[axis] for axis in "MKHF")
    shares = graph_attention.draw_scores(structure, family, rng, (M, K, H))
    X = draw(family, (K, H * F), rng, varies=1).reshape(K, H, F)
    blemish(family, X, rng, (np.nan,), places=structure.arrays["indices"])
    return *shares, X


def oracle(structure: Structure, a_row: np.ndarray, a_col: np.ndarray, X: np.ndarray) -> Expected:
    """The definition in float64."""
    alpha, off = graph_attention.weigh(structure, a_row, a_col)
    value = graph_attention.add_neighbours(structure, alpha, X)
    scale = graph_attention.add_neighbours(structure, off, np.abs(X))
    return Expected(value, scale, row_terms(structure)[:, None, None])


def by_torch(
    torch: Any, indptr: Any, indices: Any, rows: Any, a_row: Any, a_col: Any, X: Any, Y: Any
) -> Prepared:
    """Segments reduced, and a sparse product for each head."""
    attend = graph_attention.attend_by_segments(torch, indptr, indices, rows, (len(Y), len(X)))
    return lambda: Y.copy_(attend(a_row, a_col, X))


def by_compile(torch: Any, rows: Any, indices: Any, a_row: Any, a_col: Any, X: Any, Y: Any) -> Any:
    """Segments scattered, and messages."""
    attend = partial(graph_attention.attend_by_messages, torch)
    given = rows.long(), indices.long(), a_row, a_col, X, Y
    return lambda *tensors: tensors[-1].copy_(attend(*tensors[:-1])), given
