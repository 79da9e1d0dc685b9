# SPDX-License-Identifier: Apache-2.0
"""The maximum or the mean of weighted neighbours: the pooling step of GraphSAGE.

The maximum is exact: a product rounds once, and rounding keeps order.
"""

from __future__ import annotations

import numpy as np

from ..families import NOT_FINITE
from ..problem import Expected, Family, Pair, Structure
from ..reduced_calls import MAX, MEAN
from ..sparse import factors, multiply, row_lengths, row_maxima, row_numbers, row_terms

PROBLEM = {
    "title": "Maximum or mean over weighted neighbours (CSR)",
    "definition": "C[i,n] = max (reduce=0) or mean (reduce=1) over p in row i of "
    "values[p] * B[indices[p], n]; 0 for an empty row",
    "source": "GE-SpMM, arXiv 2007.03179 (SpMM-like); dgSPARSE",
    "tags": ["sparse", "graph"],
    "is_row_wise": True,
    "axes": {
        "M": "rows of A and C",
        "N": "columns of B and C",
        "K": "columns of A, rows of B",
        "nnz": "entries of A",
        "reduce": "0: maximum, 1: mean",
    },
    "lengths": {"N": "grid y", "reduce": [0, 1]},
    "inputs": {"indptr": "csr", "indices": "csr", "values": "float32[nnz]", "B": "float32[K, N]"},
    "outputs": {"C": "float32[M, N]: row-major"},
    "flops": "2 * nnz * N",  # a product, and a comparison or a sum
    "workloads": {
        "realistic": {
            "pubmed-max": {"N": 64, "reduce": 0, "graph": "pubmed", "note": "by the maximum"},
            "pubmed-mean": {"N": 64, "reduce": 1, "graph": "pubmed", "note": "by the mean"},
        },
        "tiny": {"tiny": {"N": 32, "reduce": 0, "pattern": "uneven 1000"}},
        "adversarial": {
            "hub-max-33": {"N": 33, "reduce": 0, "pattern": "hub 2000", "note": "an odd width"},
            "hub-mean-33": {"N": 33, "reduce": 1, "pattern": "hub 2000", "note": "by the mean"},
        },
    },
    "baselines": "sparse reduction",
    "families": "denormal large nonfinite exact probe",
    "accuracy": "Maximum: bit for bit, each product rounded once. Mean: n = the entries of the "
    "row, s = the mean of the magnitudes of the products. {running sum} An empty row gives 0. NaN "
    "is never drawn into a maximum.",
}
PROBE_NONZEROS = 2  # product, sum, reciprocal and its product: four roundings, the probe's limit


def values(
    structure: Structure, family: Family, rng: np.random.Generator, K: int, N: int, reduce: int
) -> Pair:
    """Weights of the entries and the dense B; what the maximum of NaN and a number is, nobody says.

    EXACT leaves rows at zero whose length is no power of two: their mean would be rounded.
    """
    kinds = NOT_FINITE if reduce == MEAN else (np.inf, -np.inf)
    entries, dense = factors(structure, family, (K, N), rng, nonzeros=PROBE_NONZEROS, kinds=kinds)
    if family is Family.EXACT and reduce == MEAN:
        lengths = row_lengths(structure)
        entries[((lengths & (lengths - 1)) != 0)[row_numbers(structure)]] = 0
    return entries, dense


def oracle(
    structure: Structure, values: np.ndarray, B: np.ndarray, K: int, reduce: int
) -> Expected:
    """The maximum of the rounded products, or the mean in float64 with scale |A||B| / length."""
    if reduce == MAX:
        value = row_maxima(structure, values, B).astype(np.float64)
        return Expected(value, np.abs(value), 1.0, is_exact=True)
    terms = row_terms(structure)[:, None]
    value, scale = multiply(structure, values, B, K)
    return Expected(value / terms, scale / terms, terms)
