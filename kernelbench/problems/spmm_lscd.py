# SPDX-License-Identifier: Apache-2.0
"""Y = W X with weights that were pruned one by one and few columns: a token step of a language
model whose layers keep a fifth of their weights."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Expected, Family, Pair, Structure
from ..sparse import factors, multiply, row_terms

PROBLEM = {
    "title": "Pruned weights in float16 times a few columns (CSR)",
    "definition": "Y[i,n] = sum over p in [indptr[i], indptr[i+1]) of values[p] * X[indices[p], n]",
    "source": "Flash-LLM, arXiv 2309.10285: its Tiled-CSL is this CSR cut into tiles of 128 x 64, "
    "16 bits for a place in the tile beside each weight; a kernel may make tiles as it goes",
    "headline": "2.9 times as fast as Sputnik, 1.5 times as SparTA, at 60 to 90 % zeros (A100, "
    "float16, 8 to 64 columns, layers of OPT), as reported",
    "tags": ["sparse", "pruned", "contraction"],
    "is_row_wise": True,
    "axes": {
        "M": "rows of W and Y",
        "N": "columns of X and Y: tokens of a batch",
        "K": "columns of W, rows of X",
        "nnz": "weights that are kept",
    },
    "lengths": {"N": 4096},
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "values": "float16[nnz]: the kept weights",
        "X": "float16[K, N]: activations, row-major",
    },
    "outputs": {"Y": "float16[M, N]: row-major, rounded once"},
    "flops": "2 * nnz * N",
    "workloads": {
        "realistic": {
            "2048-16": {"N": 16, "pattern": "pruned 2048", "note": "16 tokens, 80 % zeros"},
            "2048-64": {"N": 64, "pattern": "pruned 2048", "note": "64 tokens, 80 % zeros"},
        },
        "tiny": {"tiny": {"N": 12, "pattern": "pruned 64"}},
        "adversarial": {
            "hub-33": {"N": 33, "pattern": "hub 1000", "note": "an odd width"},
            "uneven-1": {"N": 1, "pattern": "uneven 2000", "note": "one token"},
        },
    },
    "baselines": "sparse product",
    "families": "large nonfinite exact probe",
    "accuracy": "n = the weights of the row, s = sum of |values[p] X[indices[p],n]|, of sums in "
    "float32. {running sum} An empty row gives 0; zero times infinity is NaN.",
}


def values(structure: Structure, family: Family, rng: np.random.Generator, K: int, N: int) -> Pair:
    """Kept weights and activations."""
    return factors(structure, family, (K, N), rng)


def oracle(structure: Structure, values: np.ndarray, X: np.ndarray, K: int) -> Expected:
    """The product in float64; the scale is |W||X|."""
    return Expected(*multiply(structure, values, X, K), row_terms(structure)[:, None])


def by_compile(torch: Any, rows: Any, indices: Any, values: Any, X: Any, Y: Any) -> Any:
    """A product for each weight, and sums of rows."""

    def compute(r: Any, c: Any, weights: Any, x: Any, y: Any) -> None:
        products = weights.float()[:, None] * x.float()[c]
        y.copy_(torch.zeros_like(y, dtype=torch.float32).index_add_(0, r, products))

    return compute, (rows, indices, values, X, Y)
