# SPDX-License-Identifier: Apache-2.0
"""The backward of a sparse matrix times a dense one: gradients of the entries and of the factor."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import messages
from ..families import blemish, draw_factors, full_mantissa, probe_rows, thin_columns
from ..problem import BaselineCall, Expected, Family, Inputs, Prepared, Structure
from ..sparse import live_rows, multiply, row_numbers, row_terms
from ..torch_calls import views_beside_pattern

PROBLEM = {
    "title": "Backward of a sparse matrix times a dense one (CSR)",
    "definition": "d_values[p] = sum over n of G[i,n] * B[indices[p],n], p in [indptr[i], "
    "indptr[i+1]); d_B[j,n] = sum over all p with indices[p] = j of values[p] * G[i,n]",
    "source": "GE-SpMM, arXiv 2007.03179; training by both products in dgNN, arXiv 2110.09524",
    "tags": ["sparse", "graph", "backward", "training"],
    "axes": {"M": "rows of A", "N": "columns of B", "K": "columns of A", "nnz": "entries of A"},
    "lengths": {"N": "grid y"},
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "values": "float32[nnz]: entries of A",
        "B": "float32[K, N]: the forward's dense factor, row-major",
        "G": "float32[M, N]: gradient of the forward's C = A B, row-major",
    },
    "outputs": {"d_values": "float32[nnz]: gradients of A's entries", "d_B": "float32[K, N]: of B"},
    "flops": "4 * nnz * N",  # of each entry and column a product and a sum for either gradient
    "workloads": {
        "realistic": {
            "pubmed-128": {"N": 128, "graph": "pubmed", "note": "128 features"},
            "enron-33": {"N": 33, "graph": "email-Enron", "note": "an odd width"},
        },
        "tiny": {"tiny": {"N": 32, "pattern": "uneven 500"}},
        "adversarial": {
            "hub-33": {"N": 33, "pattern": "hub 2000"},
            "rmat-10": {"N": 100, "pattern": "rmat 10"},
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "d_values: n = N, s = sum of |G[i,n] B[indices[p],n]|. d_B: n = the entries of the "
    "column, s = sum of |values[p] G[i,n]|. {running sum} Zero times infinity is NaN.",
}


def values(
    structure: Structure, family: Family, rng: np.random.Generator, M: int, N: int, K: int
) -> Inputs:
    """Sums go along the columns of A, and along N."""
    entries = messages.draw_summed_by_columns(structure, family, rng)
    if family is Family.PROBE:
        return entries, probe_rows((K, N), rng), full_mantissa((M, N), rng)
    G, B = draw_factors(family, (M, N), (K, N), rng, varies=(0, 0), live=live_rows(structure))
    thin_columns(family, G, rng)
    blemish(family, G, rng, places=row_numbers(structure))
    blemish(family, B, rng, places=structure.arrays["indices"])
    is_lost: np.ndarray = ~np.all(np.isfinite(G), axis=1)
    entries[np.flatnonzero(is_lost[row_numbers(structure)])[::2]] = 0
    return entries, B, G


def oracle(
    structure: Structure, values: np.ndarray, B: np.ndarray, G: np.ndarray, M: int, N: int
) -> tuple[Expected, ...]:
    """Both in float64; the second is a product with the transposed pattern."""
    turned, order = messages.turn(structure)
    return (
        Expected(*messages.multiply_at_entries(structure, G, B), float(N)),
        Expected(*multiply(turned, values[order], G, M), row_terms(turned)[:, None]),
    )


def by_torch(torch: Any, structure: Structure, call: BaselineCall) -> Prepared:
    """A sampled product, and one with the transposed matrix."""
    return messages.multiply_both_ways(torch, structure, call)


def by_compile(torch: Any, call: BaselineCall, rows: Any, indices: Any) -> Any:
    """Rows gathered, and messages scattered."""
    given = rows.long(), indices.long(), *views_beside_pattern(call)
    return lambda *tensors: messages.push(torch, *tensors), given
