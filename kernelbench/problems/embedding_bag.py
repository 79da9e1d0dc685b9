# SPDX-License-Identifier: Apache-2.0
"""Rows of a table, summed or averaged by bags: the sparse features of a recommendation model."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish, draw, is_thinned
from ..problem import Expected, Family, Prepared, Structure
from ..sparse import multiply, row_terms

PROBLEM = {
    "title": "Sum or mean of the rows of a table by bags",
    "definition": "y[i,n] = sum (mean=0) or mean (mean=1) of table[indices[p], n] over p in "
    "[indptr[i], indptr[i+1]); 0 for an empty bag",
    "source": "DLRM, arXiv 1906.00091; its training on Zion, arXiv 2003.09518",
    "tags": ["sparse", "embedding"],
    "is_row_wise": True,
    "axes": {"M": "bags", "N": "columns", "K": "rows", "nnz": "indices", "mean": "0: sum, 1: mean"},
    "lengths": {"N": "grid y", "mean": [0, 1]},
    "inputs": {"indptr": "csr", "indices": "csr", "table": "float32[K, N]: row-major"},
    "outputs": {"y": "float32[M, N]: row-major"},
    "flops": "nnz * N",
    "workloads": {
        "realistic": {
            "4096-bags-64": {
                "N": 64,
                "mean": 0,
                "note": "32 rows to a bag, popular ones by Zipf's law",
                "pattern": {"law": "degree", "rows": 4096, "nnz": 131072, "cv": 2, "cols": 100000},
            },
            "32000-bags-16": {"N": 16, "mean": 1, "pattern": "uneven 32000", "note": "averaged"},
        },
        "tiny": {"tiny": {"N": 32, "mean": 1, "pattern": "uneven 1000"}},
        "adversarial": {"hub-33": {"N": 33, "mean": 0, "pattern": "hub 2000", "note": "odd"}},
    },
    "families": "denormal large nonfinite",
    "accuracy": "n = the indices of the bag, s = the sum, or the mean, of the magnitudes. {running "
    "sum} NaN and infinities come out where the definition has them.",
}


def values(
    structure: Structure, family: Family, rng: np.random.Generator, N: int, K: int
) -> np.ndarray:
    """The table; of a long one few rows are not zero, so that no sum of one sign is long."""
    table = draw(family, (K, N), rng, varies=1)
    if family is not Family.NORMAL:
        table[is_thinned(np.arange(K), K, (K,), rng)] = 0
    blemish(family, table, rng, places=structure.arrays["indices"])
    return table


def oracle(structure: Structure, table: np.ndarray, mean: int, nnz: int) -> Expected:
    """In float64."""
    terms = row_terms(structure)[:, None]
    value, scale = multiply(structure, np.ones(nnz, np.float32), table, len(table))
    share = 1 / terms if mean else 1.0
    return Expected(value * share, scale * share, terms)


def by_torch(torch: Any, indptr: Any, indices: Any, table: Any, y: Any, mean: int) -> Prepared:
    """torch's own; of halves in float32, which are rounded once."""
    bag, mode = torch.nn.functional.embedding_bag, "mean" if mean else "sum"
    return lambda: y.copy_(bag(indices, table.float(), indptr, mode=mode, include_last_offset=True))


def by_compile(torch: Any, rows: Any, indices: Any, table: Any, y: Any, mean: int) -> Any:
    """Rows gathered, and scattered to their bags."""

    def pool(bags: Any, table: Any, y: Any) -> None:
        total = torch.zeros_like(y).float().index_add(0, bags, table.float()[indices])
        count = torch.bincount(bags, minlength=len(y)).clamp(min=1)[:, None]
        y.copy_(total / count if mean else total)

    return pool, (rows.long(), table, y)
