# SPDX-License-Identifier: Apache-2.0
"""C = A B with A sparse in CSR and B dense: the aggregation step of a graph network."""

from __future__ import annotations

import numpy as np

from ..problem import Expected, Family, Pair, Structure
from ..sparse import factors, multiply, row_terms

PROBLEM = {
    "title": "Sparse matrix times dense matrix (CSR)",
    "definition": "C[i,n] = sum over p in [indptr[i], indptr[i+1]) of values[p] * B[indices[p], n]",
    "source": "GE-SpMM, arXiv 2007.03179; adaptive workload balancing, arXiv 2106.16064; in TF32 "
    "TC-GNN, arXiv 2112.02052",
    "tags": ["sparse", "graph"],
    "is_row_wise": True,
    "axes": {
        "M": "rows of A and C",
        "N": "columns of B and C",
        "K": "columns of A, rows of B",
        "nnz": "entries of A",
    },
    "lengths": {"N": "grid y"},
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "values": "float32[nnz]: entries of A",
        "B": "float32[K, N]: dense, row-major",
    },
    "outputs": {"C": "float32[M, N]: row-major"},
    # Two per entry and column.
    "flops": "2 * nnz * N",
    "policies": ["tf32"],
    "workloads": {
        "realistic": {
            "pubmed-128": {"N": 128, "graph": "pubmed", "note": "128 features"},
            "enron-33": {"N": 33, "graph": "email-Enron", "note": "an odd width"},
            "caida-64": {"N": 64, "graph": "as-caida"},
        },
        "tiny": {"tiny": {"N": 32, "pattern": "uneven 1000"}},
        "adversarial": {
            "hub-33": {"N": 33, "pattern": "hub 2000", "note": "an odd width"},
            "rmat-12": {"N": 100, "pattern": "rmat 12"},
        },
    },
    "baselines": "sparse product",
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = the entries of the row, s = sum of |values[p] B[indices[p],n]|. {running sum} "
    "An empty row gives 0; zero times infinity is NaN.",
}


def values(structure: Structure, family: Family, rng: np.random.Generator, K: int, N: int) -> Pair:
    """Values of A and the dense B."""
    return factors(structure, family, (K, N), rng)


def oracle(structure: Structure, values: np.ndarray, B: np.ndarray, K: int) -> Expected:
    """The product in float64; the scale is |A||B|."""
    return Expected(*multiply(structure, values, B, K), row_terms(structure)[:, None])
