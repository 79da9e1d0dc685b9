# SPDX-License-Identifier: Apache-2.0
"""C = A B with A sparse in CSR and B dense: the aggregation step of a graph network."""

from __future__ import annotations

import numpy as np

from ..dtypes import FLOAT32
from ..families import LINEAR_FAMILIES
from ..problem import (
    Arrays,
    Axes,
    Baseline,
    BaselineCall,
    Expected,
    Family,
    Handle,
    Prepared,
    Problem,
    Structure,
    Tensor,
    Workload,
)
from ..sizes import ALONG_Y
from ..sparse import (
    INDICES,
    INDPTR,
    bulk_of,
    csr,
    factors,
    row_lengths,
    structure_maker,
    variations_of,
)
from ..standins import STAND_INS
from ..twins import twins

AXES = ("M", "N", "K", "nnz")
DENSE = {"N": ALONG_Y}


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
    """Values of A and the dense B."""
    shape = (structure.axes["K"], structure.axes["N"])
    entries, dense = factors(structure, family, shape, rng)
    return {"values": entries, "B": dense}


def oracle(structure: Structure, inputs: Arrays) -> dict[str, Expected]:
    """The product in float64; the scale is |A||B|, in float32 where its rounding is harmless."""
    columns = structure.axes["K"]
    a, b = inputs["values"], inputs["B"]
    value = csr(structure, a.astype(np.float64), columns) @ b.astype(np.float64)
    scale = csr(structure, np.abs(a), columns) @ np.abs(b)
    terms = np.maximum(row_lengths(structure), 1).astype(np.float64)[:, None]
    return {"C": Expected(value, scale.astype(np.float64), terms)}


def flops(axes: Axes) -> float:
    """Two per entry and column."""
    return 2.0 * axes["nnz"] * axes["N"]


def bytes_moved(axes: Axes) -> float:
    """Indices, values and row pointers once, B once, C once."""
    return 8.0 * axes["nnz"] + 4.0 * (axes["M"] + 1 + (axes["K"] + axes["M"]) * axes["N"])


def _torch(call: BaselineCall) -> Prepared:
    import torch

    from ..torch_calls import csr_view, dense_view

    a = csr_view(call, columns=call.axes["K"], values=call.inputs["values"])
    b, c = dense_view(call.inputs["B"]), dense_view(call.outputs["C"])

    def compute() -> None:
        with torch.inference_mode():
            torch.addmm(c, a, b, beta=0, out=c)

    return compute


def _scipy(call: BaselineCall) -> Prepared:
    structure = Structure(call.axes, call.inputs)
    a = csr(structure, call.inputs["values"], call.axes["K"])
    b, c = call.inputs["B"], call.outputs["C"]

    def compute() -> None:
        np.copyto(c, a @ b)

    return compute


def _cupy(call: BaselineCall) -> Prepared:
    from ..cupy_calls import sparse_product

    return sparse_product(call, "B", "C")


def _mkl(call: BaselineCall) -> Handle:
    from ..mkl_calls import sparse_product

    return sparse_product(call, "B", "C")


PROBLEM = Problem(
    name="spmm_csr",
    title="Sparse matrix times dense matrix (CSR)",
    is_row_wise=True,
    definition="C[i,n] = sum over p in [indptr[i], indptr[i+1]) of values[p] * B[indices[p], n]",
    axes={
        "M": "rows of A and C",
        "N": "columns of B and C",
        "K": "columns of A, rows of B",
        "nnz": "entries of A",
    },
    inputs=(
        INDPTR,
        INDICES,
        Tensor(name="values", dtype=FLOAT32.name, shape=("nnz",), meaning="entries of A"),
        Tensor(name="B", dtype=FLOAT32.name, shape=("K", "N"), meaning="dense, row-major"),
    ),
    outputs=(Tensor(name="C", dtype=FLOAT32.name, shape=("M", "N"), meaning="row-major"),),
    source="GE-SpMM, arXiv 2007.03179; adaptive workload balancing, arXiv 2106.16064",
    workloads=(
        Workload(
            name="pubmed-128",
            kind="realistic",
            axes={"N": 128},
            generator=STAND_INS["pubmed"].generator,
            note="statistics of the pubmed citation graph, 128 features",
        ),
        Workload(
            name="tiny",
            kind="tiny",
            axes={"N": 32},
            generator={"law": "degree", "rows": 1000, "nnz": 6000, "cv": 2.0},
        ),
        Workload(
            name="enron-33",
            kind="realistic",
            axes={"N": 33},
            generator=STAND_INS["email-Enron"].generator,
            note="uneven rows and an odd width",
        ),
        Workload(
            name="caida-64",
            kind="realistic",
            axes={"N": 64},
            generator=STAND_INS["as-caida"].generator,
            note="a few huge hubs",
        ),
        Workload(
            name="hub-33",
            kind="adversarial",
            axes={"N": 33},
            generator={"law": "hub", "n": 2000, "nnz": 8000},
            note="one full row, 40 % empty rows, an odd width",
        ),
        Workload(
            name="rmat-12",
            kind="adversarial",
            axes={"N": 100},
            generator={"law": "rmat", "scale": 12, "edge_factor": 16},
            note="a third of the rows empty, the top hundredth hold a third of the entries",
        ),
    ),
    structure=structure_maker(*AXES),
    values=values,
    oracle=oracle,
    flops=flops,
    bytes_moved=bytes_moved,
    baselines=(
        Baseline("torch eager", _torch),
        Baseline("scipy", _scipy, "scipy"),
        Baseline("MKL prepared", _mkl, "", is_prepared=True),
        Baseline("cupy", _cupy, "cupy"),
    ),
    variations=variations_of(*AXES, dense=DENSE),
    bulk=bulk_of(*AXES, dense=DENSE),
    families=LINEAR_FAMILIES,
    twins=twins,
    accuracy=(
        "n = the entries of the row, s = sum of |values[p] B[indices[p],n]|. One float32 "
        "running sum of more than some 250 terms of one size and sign can miss it: add sums "
        "of blocks, or keep several. An empty row gives 0; zero times infinity is NaN."
    ),
    tags=("sparse", "graph"),
)
