# SPDX-License-Identifier: Apache-2.0
"""y = A x with A sparse in CSR: one column of spmm_csr, bound by memory alone."""

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

AXES = ("M", "K", "nnz")


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
    """Values of A and the vector x."""
    entries, dense = factors(structure, family, (structure.axes["K"],), rng)
    return {"values": entries, "x": dense}


def oracle(structure: Structure, inputs: Arrays) -> dict[str, Expected]:
    """The product in float64; the scale is |A||x|."""
    columns = structure.axes["K"]
    a, x = inputs["values"].astype(np.float64), inputs["x"].astype(np.float64)
    value = csr(structure, a, columns) @ x
    scale = csr(structure, np.abs(a), columns) @ np.abs(x)
    return {"y": Expected(value, scale, np.maximum(row_lengths(structure), 1).astype(np.float64))}


def flops(axes: Axes) -> float:
    """Two per entry."""
    return 2.0 * axes["nnz"]


def bytes_moved(axes: Axes) -> float:
    """Indices, values and row pointers once, x once, y once."""
    return 8.0 * axes["nnz"] + 4.0 * (axes["M"] + 1 + axes["K"] + axes["M"])


def _torch(call: BaselineCall) -> Prepared:
    import torch

    from ..torch_calls import csr_view, dense_view

    a = csr_view(call, columns=call.axes["K"], values=call.inputs["values"])
    x, y = dense_view(call.inputs["x"]), dense_view(call.outputs["y"])

    def compute() -> None:
        with torch.inference_mode():
            torch.mv(a, x, out=y)

    return compute


def _scipy(call: BaselineCall) -> Prepared:
    a = csr(Structure(call.axes, call.inputs), call.inputs["values"], call.axes["K"])
    x, y = call.inputs["x"], call.outputs["y"]

    def compute() -> None:
        np.copyto(y, a @ x)

    return compute


def _cupy(call: BaselineCall) -> Prepared:
    from ..cupy_calls import sparse_product

    return sparse_product(call, "x", "y")


def _mkl(call: BaselineCall) -> Handle:
    from ..mkl_calls import sparse_product

    return sparse_product(call, "x", "y")


PROBLEM = Problem(
    name="spmv_csr",
    title="Sparse matrix times vector (CSR)",
    is_row_wise=True,
    definition="y[i] = sum over p in [indptr[i], indptr[i+1]) of values[p] * x[indices[p]]",
    axes={"M": "rows of A", "K": "columns of A", "nnz": "entries of A"},
    inputs=(
        INDPTR,
        INDICES,
        Tensor(name="values", dtype=FLOAT32.name, shape=("nnz",), meaning="entries of A"),
        Tensor(name="x", dtype=FLOAT32.name, shape=("K",)),
    ),
    outputs=(Tensor(name="y", dtype=FLOAT32.name, shape=("M",)),),
    source="adaptive workload balancing, arXiv 2106.16064; DA-SpMM with N = 1",
    workloads=(
        Workload(
            name="amazon0302",
            kind="realistic",
            generator=STAND_INS["amazon0302"].generator,
            note="1.2 M entries in near-regular rows",
        ),
        Workload(
            name="tiny",
            kind="tiny",
            generator={"law": "degree", "rows": 2000, "nnz": 12_000, "cv": 2.0},
        ),
        Workload(
            name="Epinions",
            kind="realistic",
            generator=STAND_INS["soc-Epinions1"].generator,
            note="uneven rows: half a million entries, coefficient of variation 3.9",
        ),
        Workload(
            name="hub",
            kind="adversarial",
            generator={"law": "hub", "n": 20_000, "nnz": 80_000},
            note="one full row, 40 % empty rows",
        ),
        Workload(
            name="rmat-14",
            kind="adversarial",
            generator={"law": "rmat", "scale": 14, "edge_factor": 16},
            note="a third of the rows empty, the top hundredth hold a third of the entries",
        ),
    ),
    structure=structure_maker(*AXES),
    values=values,
    oracle=oracle,
    flops=flops,
    bytes_moved=bytes_moved,
    # torch.compile hands a sparse CSR product to the same library call as eager: left out.
    baselines=(
        Baseline("torch eager", _torch),
        Baseline("scipy", _scipy, "scipy"),
        Baseline("MKL prepared", _mkl, "", is_prepared=True),
        Baseline("cupy", _cupy, "cupy"),
    ),
    variations=variations_of(*AXES),
    bulk=bulk_of(*AXES),
    families=LINEAR_FAMILIES,
    twins=twins,
    accuracy=(
        "n = the entries of the row, s = sum of |values[p] x[indices[p]]|. One float32 "
        "running sum of more than some 250 terms of one size and sign can miss it: add sums "
        "of blocks, or keep several. An empty row gives 0; zero times infinity is NaN."
    ),
    tags=("sparse", "graph"),
)
