# SPDX-License-Identifier: Apache-2.0
"""A sparse matrix times a sparse one, in the second of two passes: the first has counted the rows
of the product, as cuSPARSE's and MKL's do, so that there is memory for what this one finds."""

from __future__ import annotations

import numpy as np

from ..problem import Expected, Structure
from ..selecting import expect_copies
from ..spgemm import by_scipy, by_torch, follow, multiply, other_patterns, pattern_of, scale_of
from ..spgemm import draw_factors as values

__all__ = ["by_scipy", "by_torch", "follow", "oracle", "other_patterns", "values"]

PROBLEM = {
    "title": "Sparse matrix times sparse matrix (SpGEMM, CSR), its rows counted",
    "definition": "C = A B: c_indices[q], q in [c_indptr[i], c_indptr[i+1]), are the columns j, "
    "ascending, for which some k has entries A[i,k] and B[k,j], also where they add up to zero; "
    "c_values[q] = sum over these k of A[i,k] * B[k,j]",
    "source": "SMASH, arXiv 2105.14156: row-wise products with R-MAT inputs",
    "headline": "9.4 times other dataflows on PIUMA, which is no GPU, as reported",
    "tags": ["sparse", "graph", "sparse-product"],
    "axes": {
        "M": "rows of A and C",
        "K": "columns of A, rows and columns of B, columns of C",
        "nnz": "entries of A",
        "nnz_b": "entries of B",
        "nnz_c": "entries of C",
        "P": "products A[i,k] B[k,j] in all",
    },
    "follows": ["nnz_b", "nnz_c", "P"],
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "values": "float32[nnz]: entries of A",
        "b_indptr": "index int32[K+1]: as indptr, of B",
        "b_indices": "index int32[nnz_b]: columns of B; ascending and distinct within a row",
        "b_values": "float32[nnz_b]: entries of B",
        "c_indptr": "index int32[M+1]: as indptr, of C",
    },
    "outputs": {
        "c_indices": "int32[nnz_c]: columns of C, ascending within a row",
        "c_values": "float32[nnz_c]: entries of C",
    },
    "flops": "2 * P",
    "workloads": {
        "realistic": {
            "pubmed": {"graph": "pubmed", "note": "squared: the neighbours of neighbours"},
            "rmat-12": {
                "pattern": {"law": "rmat", "scale": 12, "edge_factor": 8},
                "note": "squared, as the paper has it",
            },
        },
        "tiny": {"tiny": {"pattern": "uneven 300"}},
        "adversarial": {"hub": {"pattern": "hub 600"}, "rmat-9": {"pattern": "rmat 9"}},
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = the products of the entry, s = the sum of |A[i,k] B[k,j]|. Zero times "
    "infinity is NaN. Columns are exact.",
}


def oracle(structure: Structure, values: np.ndarray, b_values: np.ndarray) -> tuple[Expected, ...]:
    """scipy's product in float64."""
    product = multiply(structure, values.astype(np.float64), b_values.astype(np.float64))
    columns = expect_copies(pattern_of(structure).indices)
    return columns, Expected(product, *scale_of(structure, values, b_values))
