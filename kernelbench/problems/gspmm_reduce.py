# SPDX-License-Identifier: Apache-2.0
"""The maximum or the mean of weighted neighbours: the pooling step of GraphSAGE.

An empty row gives 0 in both. The maximum is exact: the product of two float32 numbers rounds
once, and rounding keeps order. The reciprocal of a row's length may be multiplied or divided by.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..families import NOT_FINITE
from ..problem import Arrays, Expected, Family, Pair, Prepared, Structure
from ..sparse import csr, factors, row_lengths, row_numbers, row_terms

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
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "values": "float32[nnz]: weights of the entries",
        "B": "float32[K, N]: dense, row-major",
    },
    "outputs": {"C": "float32[M, N]: row-major"},
    # A product and a comparison or a sum per entry and column.
    "flops": "2 * nnz * N",
    "workloads": {
        "realistic": {
            "pubmed-max": {
                "N": 64,
                "reduce": 0,
                "graph": "pubmed",
                "note": "pooled by the maximum",
            },
            "pubmed-mean": {"N": 64, "reduce": 1, "graph": "pubmed", "note": "pooled by the mean"},
        },
        "tiny": {"tiny": {"N": 32, "reduce": 0, "pattern": "uneven 1000"}},
        "adversarial": {
            "hub-max-33": {"N": 33, "reduce": 0, "pattern": "hub 2000", "note": "an odd width"},
            "hub-mean-33": {"N": 33, "reduce": 1, "pattern": "hub 2000", "note": "by the mean"},
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "Maximum: bit for bit, each product rounded once. Mean: n = the entries of the "
    "row, s = the mean of the magnitudes of the products. {running sum} An empty row gives 0. NaN "
    "is never drawn into a maximum.",
}
MAX, MEAN = 0, 1
PROBE_NONZEROS = 2
"""One product, one sum, one reciprocal and its product: four roundings, the probe's limit."""


def values(
    structure: Structure, family: Family, rng: np.random.Generator, K: int, N: int, reduce: int
) -> Pair:
    """Weights of the entries and the dense B.

    EXACT leaves rows at zero whose length is no power of two: their mean would be rounded. The
    definition does not say what the maximum of NaN and a number is: a maximum gets infinities only.
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
        value = _row_maxima(structure.arrays, values, B).astype(np.float64)
        return Expected(value, np.abs(value), 1.0, is_exact=True)
    terms = row_terms(structure)[:, None]
    value = csr(structure, values.astype(np.float64), K) @ B.astype(np.float64)
    scale = (csr(structure, np.abs(values), K) @ np.abs(B)).astype(np.float64)
    return Expected(value / terms, scale / terms, terms)


def _row_maxima(arrays: Arrays, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Per row the maximum of a[p] * b[column p] in float32; 0 for an empty row."""
    indptr, indices = arrays["indptr"], arrays["indices"]
    result = np.zeros((len(indptr) - 1, b.shape[1]), np.float32)
    rows = np.flatnonzero(np.diff(indptr))
    block = max(1, (1 << 17) // max(b.shape[1], 1))
    # Blocks of whole rows with about `block` entries: their products stay in the cache.
    cuts = np.searchsorted(indptr[rows], np.arange(0, len(a) + block, block))
    for first, last in itertools.pairwise(cuts):
        part = rows[first:last]
        if len(part):
            start, end = indptr[part[0]], indptr[part[-1] + 1]
            products = b[indices[start:end]]
            products *= a[start:end, None]
            result[part] = np.maximum.reduceat(products, indptr[part] - start, axis=0)
    return result


# torch.compile hands a sparse CSR product to the same library call as eager: left out.
def by_torch(
    torch: Any, matrix: Any, rows: Any, indices: Any, values: Any, B: Any, C: Any, reduce: int
) -> Prepared:
    """torch's sparse product with a reduction, or what stands for it on a GPU."""
    word = "amax" if reduce == MAX else "mean"
    if B.is_cuda:
        return prepare_scattered(torch, rows, indices, values, B, C, word)
    return lambda: C.copy_(torch.sparse.mm(matrix, B, reduce=word))


def prepare_scattered(
    torch: Any, rows: Any, columns: Any, values: Any, b: Any, c: Any, reduce: str
) -> Prepared:
    """Gathered rows, scattered: torch has no sparse product with a reduction on GPUs."""
    wide = rows.long()[:, None].expand(-1, b.shape[1])

    def compute() -> None:
        terms = values[:, None] * torch.index_select(b, 0, columns)
        c.zero_().scatter_reduce_(0, wide, terms, reduce, include_self=False)

    return compute


def by_scipy(
    structure: Structure, matrix: Any, values: np.ndarray, B: np.ndarray, C: np.ndarray, reduce: int
) -> Prepared:
    """scipy's product and numpy's division; it has none with a maximum: numpy's segmented one."""
    if reduce == MAX:
        return lambda: np.copyto(C, _row_maxima(structure.arrays, values, B))
    lengths = row_terms(structure).astype(np.float32)[:, None]
    return lambda: np.copyto(C, np.divide(matrix @ B, lengths))
