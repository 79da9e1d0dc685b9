# SPDX-License-Identifier: Apache-2.0
"""The backward of attention on a graph: its weights are made again, and never stored."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import graph_attention
from ..problem import BaselineCall, Expected, Family, Inputs, Prepared, Structure
from ..torch_calls import views_beside_pattern

PROBLEM = {
    "title": "Backward of graph attention: of scores, softmax and sum over neighbours (CSR)",
    "definition": "of each entry p of row i, j = indices[p], with s = a_row[i,h] + a_col[j,h]: "
    "alpha[p,h] = the softmax over row i of leakyrelu(s, slope 0.2)\n"
    "t[p,h] = sum over f of dY[i,h,f] X[j,h,f]; ds[p,h] = (1 where s > 0, else 0.2) alpha[p,h] "
    "(t[p,h] - sum over q in row i of alpha[q,h] t[q,h])\n"
    "d_row[i,h] = sum of ds over row i; d_col[j,h] = sum of ds over column j; "
    "dX[j,h,f] = sum over the entries of column j of alpha[p,h] dY[i,h,f]",
    "source": "dgNN, arXiv 2110.09524; GAT, arXiv 1710.10903",
    "headline": "dgNN makes weights again in place of keeping them: 7.73x less memory in training "
    "than DGL and PyG, as reported",
    "tags": ["sparse", "graph", "attention", "backward", "training"],
    "axes": {"M": "rows", "K": "columns", "H": "heads", "F": "features", "nnz": "entries"},
    "lengths": {"H": [1, 2, 3, 4, 8], "F": "grid y"},
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "a_row": "float32[M, H]: a row's share of its scores",
        "a_col": "float32[K, H]: a column's share of them",
        "X": "float32[K, H, F]: features, row-major",
        "dY": "float32[M, H, F]: gradient of the forward's answer",
    },
    "outputs": {
        "d_row": "float32[M, H]: gradient of a_row",
        "d_col": "float32[K, H]: gradient of a_col",
        "dX": "float32[K, H, F]: gradient of X",
    },
    "flops": "4 * nnz * H * F + 14 * nnz * H",  # of a score 3, a weight 5, its gradient and sums 6
    "workloads": {
        "realistic": {
            "pubmed-4x16": {"H": 4, "F": 16, "graph": "pubmed", "note": "dgNN's heads"},
            "enron-1x64": {"H": 1, "F": 64, "graph": "email-Enron", "note": "one head"},
        },
        "tiny": {"tiny": {"H": 2, "F": 16, "pattern": "uneven 500"}},
        "adversarial": {"hub-3x33": {"H": 3, "F": 33, "pattern": "hub 2000", "note": "odd"}},
    },
    "families": "-constant large nonfinite",  # of scores of one sign no row has a gradient
    "nrmse": 1.5e-4,
    "accuracy": "dX: n = the column's entries, s = sum of v |dY|, v = alpha (2 + (8 + d + D) / "
    "sqrt(n)) as in gat_fused. ds: n = the row's entries + F, s = v (S + T) + alpha V, S = sum of "
    "|dY X|, T and V the sums of alpha S and v S over the row; d_row and d_col sum that. Where all "
    "scores of a row have one sign its d_row is 0 but for roundings. Only NaN are drawn.",
}


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Inputs:
    """What the forward had, and a gradient."""
    return graph_attention.draw_backward(structure, family, rng)


def oracle(
    structure: Structure, a_row: np.ndarray, a_col: np.ndarray, X: np.ndarray, dY: np.ndarray
) -> tuple[Expected, ...]:
    """The definition in float64."""
    return graph_attention.expect_backward(structure, (a_row, a_col), X, dY)


def by_torch(
    torch: Any, structure: Structure, call: BaselineCall, rows: Any, indices: Any
) -> Prepared:
    """Segments reduced, and two products for each head."""
    return graph_attention.go_back_by_segments(torch, structure, call, rows, indices)


def by_compile(torch: Any, call: BaselineCall, rows: Any, indices: Any) -> Any:
    """Messages scattered."""
    given = rows.long(), indices.long(), *views_beside_pattern(call)
    return lambda *tensors: graph_attention.go_back_by_messages(torch, *tensors), given
