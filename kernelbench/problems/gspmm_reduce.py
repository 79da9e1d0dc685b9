# SPDX-License-Identifier: Apache-2.0
"""The maximum or the mean of weighted neighbours: the pooling step of GraphSAGE.

An empty row gives 0 in both. The maximum is exact: the product of two float32 numbers rounds
once, and rounding keeps order. The reciprocal of a row's length may be multiplied or divided by.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..dtypes import FLOAT32
from ..families import LINEAR_FAMILIES, NOT_FINITE
from ..problem import (
    Arrays,
    Axes,
    Baseline,
    BaselineCall,
    Expected,
    Family,
    Prepared,
    Problem,
    Structure,
    Tensor,
    Workload,
)
from ..sizes import ALONG_Y, Range
from ..sparse import (
    INDICES,
    INDPTR,
    bulk_of,
    csr,
    factors,
    row_lengths,
    row_numbers,
    structure_maker,
    variations_of,
)
from ..standins import STAND_INS
from ..twins import twins

AXES = ("M", "N", "K", "nnz", "reduce")
MAX, MEAN = 0, 1
DENSE = {"N": ALONG_Y, "reduce": Range(choices=(MAX, MEAN))}
PROBE_NONZEROS = 2
"""One product, one sum, one reciprocal and its product: four roundings, the probe's limit."""


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
    """Weights of the entries and the dense B.

    EXACT leaves rows at zero whose length is no power of two: their mean would be rounded. The
    definition does not say what the maximum of NaN and a number is: a maximum gets infinities only.
    """
    axes, lengths = structure.axes, row_lengths(structure)
    kinds = NOT_FINITE if axes["reduce"] == MEAN else (np.inf, -np.inf)
    entries, dense = factors(
        structure, family, (axes["K"], axes["N"]), rng, nonzeros=PROBE_NONZEROS, kinds=kinds
    )
    if family is Family.EXACT and axes["reduce"] == MEAN:
        entries[((lengths & (lengths - 1)) != 0)[row_numbers(structure)]] = 0
    return {"values": entries, "B": dense}


def oracle(structure: Structure, inputs: Arrays) -> dict[str, Expected]:
    """The maximum of the rounded products, or the mean in float64 with scale |A||B| / length."""
    a, b = inputs["values"], inputs["B"]
    if structure.axes["reduce"] == MAX:
        value = _row_maxima(structure.arrays, a, b).astype(np.float64)
        return {"C": Expected(value, np.abs(value), 1.0, is_exact=True)}
    columns = structure.axes["K"]
    terms = np.maximum(row_lengths(structure), 1).astype(np.float64)[:, None]
    value = csr(structure, a.astype(np.float64), columns) @ b.astype(np.float64)
    scale = (csr(structure, np.abs(a), columns) @ np.abs(b)).astype(np.float64)
    return {"C": Expected(value / terms, scale / terms, terms)}


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


def flops(axes: Axes) -> float:
    """A product and a comparison or a sum per entry and column."""
    return 2.0 * axes["nnz"] * axes["N"]


def bytes_moved(axes: Axes) -> float:
    """Indices, values and row pointers once, B once, C once."""
    return 8.0 * axes["nnz"] + 4.0 * (axes["M"] + 1 + (axes["K"] + axes["M"]) * axes["N"])


def _torch(call: BaselineCall) -> Prepared:
    import torch

    from ..torch_calls import csr_view, dense_view

    a = csr_view(call, columns=call.axes["K"], values=call.inputs["values"])
    b, c = dense_view(call.inputs["B"]), dense_view(call.outputs["C"])
    reduce = "amax" if call.axes["reduce"] == MAX else "mean"
    if b.is_cuda:
        return prepare_scattered(call, a.values(), b, c, reduce)

    def compute() -> None:
        with torch.inference_mode():
            c.copy_(torch.sparse.mm(a, b, reduce=reduce))

    return compute


def prepare_scattered(call: BaselineCall, values: Any, b: Any, c: Any, reduce: str) -> Prepared:
    """Gathered rows, scattered: torch has no sparse product with a reduction on GPUs."""
    import torch

    from ..torch_calls import dense_view

    columns = dense_view(call.inputs["indices"])
    rows = dense_view(row_numbers(Structure(call.axes, call.inputs))).long()
    wide = rows[:, None].expand(-1, b.shape[1])

    def compute() -> None:
        with torch.inference_mode():
            terms = values[:, None] * torch.index_select(b, 0, columns)
            c.zero_().scatter_reduce_(0, wide, terms, reduce, include_self=False)

    return compute


def _scipy(call: BaselineCall) -> Prepared:
    a = csr(Structure(call.axes, call.inputs), call.inputs["values"], call.axes["K"])
    b, c = call.inputs["B"], call.outputs["C"]
    if call.axes["reduce"] == MAX:
        # scipy has no product with a maximum: numpy's segmented one, by blocks.
        return lambda: np.copyto(c, _row_maxima(call.inputs, call.inputs["values"], b))
    lengths = np.maximum(np.diff(call.inputs["indptr"]), 1).astype(np.float32)[:, None]
    return lambda: np.copyto(c, np.divide(a @ b, lengths))


PROBLEM = Problem(
    name="gspmm_reduce",
    title="Maximum or mean over weighted neighbours (CSR)",
    is_row_wise=True,
    definition="C[i,n] = max (reduce=0) or mean (reduce=1) over p in row i of "
    "values[p] * B[indices[p], n]; 0 for an empty row",
    axes={
        "M": "rows of A and C",
        "N": "columns of B and C",
        "K": "columns of A, rows of B",
        "nnz": "entries of A",
        "reduce": "0: maximum, 1: mean",
    },
    inputs=(
        INDPTR,
        INDICES,
        Tensor(name="values", dtype=FLOAT32.name, shape=("nnz",), meaning="weights of the entries"),
        Tensor(name="B", dtype=FLOAT32.name, shape=("K", "N"), meaning="dense, row-major"),
    ),
    outputs=(Tensor(name="C", dtype=FLOAT32.name, shape=("M", "N"), meaning="row-major"),),
    source="GE-SpMM, arXiv 2007.03179 (SpMM-like); dgSPARSE",
    workloads=(
        Workload(
            name="pubmed-max",
            kind="realistic",
            axes={"N": 64, "reduce": MAX},
            generator=STAND_INS["pubmed"].generator,
            note="statistics of the pubmed citation graph, pooled by the maximum",
        ),
        Workload(
            name="tiny",
            kind="tiny",
            axes={"N": 32, "reduce": MAX},
            generator={"law": "degree", "rows": 1000, "nnz": 6000, "cv": 2.0},
        ),
        Workload(
            name="pubmed-mean",
            kind="realistic",
            axes={"N": 64, "reduce": MEAN},
            generator=STAND_INS["pubmed"].generator,
            note="the same, pooled by the mean",
        ),
        Workload(
            name="hub-max-33",
            kind="adversarial",
            axes={"N": 33, "reduce": MAX},
            generator={"law": "hub", "n": 2000, "nnz": 8000},
            note="one full row, 40 % empty rows, an odd width",
        ),
        Workload(
            name="hub-mean-33",
            kind="adversarial",
            axes={"N": 33, "reduce": MEAN},
            generator={"law": "hub", "n": 2000, "nnz": 8000},
            note="the same, by the mean",
        ),
    ),
    structure=structure_maker(*AXES),
    values=values,
    oracle=oracle,
    flops=flops,
    bytes_moved=bytes_moved,
    # torch.compile hands a sparse CSR product to the same library call as eager: left out.
    baselines=(Baseline("torch eager", _torch), Baseline("scipy", _scipy, "scipy")),
    variations=variations_of(*AXES, dense=DENSE),
    bulk=bulk_of(*AXES, dense=DENSE),
    families=LINEAR_FAMILIES,
    twins=twins,
    accuracy=(
        "Maximum: bit for bit, each product rounded once. Mean: n = the entries of the row, s "
        "= the mean of the magnitudes of the products. One float32 running sum of more than "
        "some 250 terms of one size and sign can miss it: add sums of blocks, or keep "
        "several. An empty row gives 0. NaN is never drawn into a maximum."
    ),
    tags=("sparse", "graph"),
)
