# SPDX-License-Identifier: Apache-2.0
"""Dot products of rows of U and V at the entries of a sparse pattern: attention on a graph."""

from __future__ import annotations

import numpy as np

from ..families import blemish, draw_factors
from ..messages import multiply_at_entries
from ..problem import Expected, Family, Pair, Structure
from ..sparse import live_rows, row_numbers

PROBLEM = {
    "title": "Sampled dense-dense product (CSR)",
    "definition": "E[p] = sum over d of U[i,d] * V[indices[p], d], p in [indptr[i], indptr[i+1])",
    "source": "TC-GNN (AGNN), USENIX ATC 2023; arXiv 2110.09524",
    "tags": ["sparse", "graph", "attention"],
    "is_row_wise": True,
    "axes": {
        "M": "rows of the pattern and of U",
        "K": "columns of the pattern, rows of V",
        "D": "features",
        "nnz": "entries of the pattern",
    },
    "lengths": {"D": "grid y"},
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "U": "float32[M, D]: row-major",
        "V": "float32[K, D]: row-major",
    },
    "outputs": {"E": "float32[nnz]: one per entry"},
    "flops": "2 * nnz * D",  # two per entry and feature
    "workloads": {
        "realistic": {
            "enron-64": {"D": 64, "graph": "email-Enron"},
            "pubmed-128": {"D": 128, "graph": "pubmed", "note": "128 features"},
        },
        "tiny": {"tiny": {"D": 32, "pattern": "uneven 1000"}},
        "adversarial": {"hub-33": {"D": 33, "pattern": "hub 2000", "note": "an odd depth"}},
    },
    "baselines": "sampled product",
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = D, s = sum over d of the magnitudes of the products. {running sum} Zero times "
    "infinity is NaN.",
    "writes_inputs": ["torch eager"],  # the pattern of the result, which is the one it was given
}


def values(
    structure: Structure, family: Family, rng: np.random.Generator, M: int, K: int, D: int
) -> Pair:
    """The two dense factors; one value per row where they are constant."""
    live = live_rows(structure)
    u, v = draw_factors(family, (M, D), (K, D), rng, varies=(0, 0), live=live)
    blemish(family, u, rng, places=row_numbers(structure))
    blemish(family, v, rng, places=structure.arrays["indices"])
    return u, v


def oracle(structure: Structure, U: np.ndarray, V: np.ndarray, D: int) -> Expected:
    """The dot products in float64; the scale is the sum of |terms|."""
    return Expected(*multiply_at_entries(structure, U, V), float(D))
