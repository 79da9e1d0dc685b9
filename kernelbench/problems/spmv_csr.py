# SPDX-License-Identifier: Apache-2.0
"""y = A x with A sparse in CSR: one column of spmm_csr, bound by memory alone."""

from __future__ import annotations

import numpy as np

from ..problem import Expected, Family, Pair, Structure
from ..sparse import csr, factors, row_terms

PROBLEM = {
    "title": "Sparse matrix times vector (CSR)",
    "definition": "y[i] = sum over p in [indptr[i], indptr[i+1]) of values[p] * x[indices[p]]",
    "source": "adaptive workload balancing, arXiv 2106.16064; DA-SpMM with N = 1",
    "tags": ["sparse", "graph"],
    "is_row_wise": True,
    "axes": {"M": "rows of A", "K": "columns of A", "nnz": "entries of A"},
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "values": "float32[nnz]: entries of A",
        "x": "float32[K]",
    },
    "outputs": {"y": "float32[M]"},
    # Two per entry.
    "flops": "2 * nnz",
    "workloads": {
        "realistic": {
            "amazon0302": {"graph": "amazon0302"},
            "Epinions": {"graph": "soc-Epinions1"},
        },
        "tiny": {"tiny": {"pattern": "uneven 2000"}},
        "adversarial": {"hub": {"pattern": "hub 20000"}, "rmat-14": {"pattern": "rmat 14"}},
    },
    "baselines": "sparse product",
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = the entries of the row, s = sum of |values[p] x[indices[p]]|. {running sum} "
    "An empty row gives 0; zero times infinity is NaN.",
}


def values(structure: Structure, family: Family, rng: np.random.Generator, K: int) -> Pair:
    """Values of A and the vector x."""
    return factors(structure, family, (K,), rng)


def oracle(structure: Structure, values: np.ndarray, x: np.ndarray, K: int) -> Expected:
    """The product in float64; the scale is |A||x|."""
    a, vector = values.astype(np.float64), x.astype(np.float64)
    value = csr(structure, a, K) @ vector
    return Expected(value, csr(structure, np.abs(a), K) @ np.abs(vector), row_terms(structure))
