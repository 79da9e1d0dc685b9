# SPDX-License-Identifier: Apache-2.0
"""Dot products of rows of U and V at the entries of a sparse pattern: attention on a graph."""

from __future__ import annotations

import numpy as np

from ..dtypes import FLOAT32
from ..families import (
    LINEAR_FAMILIES,
    below_one,
    blemish,
    draw,
    full_mantissa,
    make_denormal,
    probe_rows,
)
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
from ..sizes import ALONG_Y
from ..sparse import (
    INDICES,
    INDPTR,
    bulk_of,
    denormal_live_rows,
    row_numbers,
    structure_maker,
    variations_of,
)
from ..standins import STAND_INS
from ..twins import twins

AXES = ("M", "K", "D", "nnz")
DENSE = {"D": ALONG_Y}
BLOCK_ELEMENTS = 1 << 15
"""Gathered elements of a block of the oracle: float64 temporaries that fit in the cache."""


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
    """The two dense factors; one value per row where they are constant."""
    axes = structure.axes
    left, right = (axes["M"], axes["D"]), (axes["K"], axes["D"])
    if family is Family.PROBE:
        return {"U": probe_rows(left, rng), "V": full_mantissa(right, rng)}
    if family is Family.DENORMAL:
        u = draw(Family.NORMAL, left, rng)
        make_denormal(u, denormal_live_rows(structure, rng), rng)
        return {"U": u, "V": below_one(right, rng)}
    u, v = draw(family, left, rng, varies=0), draw(family, right, rng, varies=0)
    if family is Family.NONFINITE and axes["nnz"]:
        blemish(u, rng, places=row_numbers(structure))
        blemish(v, rng, places=structure.arrays["indices"])
    return {"U": u, "V": v}


@np.errstate(invalid="ignore")
def oracle(structure: Structure, inputs: Arrays) -> dict[str, Expected]:
    """The dot products in float64; the scale is the sum of |terms|."""
    rows, columns = row_numbers(structure), structure.arrays["indices"]
    u, v = inputs["U"].astype(np.float64), inputs["V"].astype(np.float64)
    value, scale = np.empty(len(rows)), np.empty(len(rows))
    block = max(1, BLOCK_ELEMENTS // structure.axes["D"])
    for start in range(0, len(rows), block):
        part = slice(start, start + block)
        products = u[rows[part]]
        products *= v[columns[part]]
        products.sum(1, out=value[part])
        np.abs(products, out=products).sum(1, out=scale[part])
    return {"E": Expected(value, scale, float(structure.axes["D"]))}


def flops(axes: Axes) -> float:
    """Two per entry and feature."""
    return 2.0 * axes["nnz"] * axes["D"]


def bytes_moved(axes: Axes) -> float:
    """Indices and row pointers once, U and V once, E once."""
    return 8.0 * axes["nnz"] + 4.0 * (axes["M"] + 1 + (axes["M"] + axes["K"]) * axes["D"])


def _torch(call: BaselineCall) -> Prepared:
    import torch

    from ..torch_calls import csr_view, dense_view

    # The zeros are what beta multiplies: torch multiplies, so poison in E would survive beta = 0.
    nothing = csr_view(call, columns=call.axes["K"], values=np.zeros(call.axes["nnz"], np.float32))
    e = csr_view(call, columns=call.axes["K"], values=call.outputs["E"])
    u, v = dense_view(call.inputs["U"]), dense_view(call.inputs["V"]).t()

    def compute() -> None:
        with torch.inference_mode():
            torch.sparse.sampled_addmm(nothing, u, v, beta=0.0, out=e)

    return compute


def _prepare_compiled(call: BaselineCall) -> Prepared:
    from ..compiled_calls import prepare_compiled
    from ..torch_calls import dense_view

    rows = dense_view(row_numbers(Structure(call.axes, call.inputs)))
    columns = dense_view(call.inputs["indices"])
    u, v, e = (dense_view(a) for a in (call.inputs["U"], call.inputs["V"], call.outputs["E"]))
    return prepare_compiled(
        lambda r, c, u, v, e: e.copy_((u[r] * v[c]).sum(1)), rows, columns, u, v, e
    )


PROBLEM = Problem(
    name="sddmm_csr",
    title="Sampled dense-dense product (CSR)",
    is_row_wise=True,
    definition="E[p] = sum over d of U[i,d] * V[indices[p], d] for p in [indptr[i], indptr[i+1])",
    axes={
        "M": "rows of the pattern and of U",
        "K": "columns of the pattern, rows of V",
        "D": "features",
        "nnz": "entries of the pattern",
    },
    inputs=(
        INDPTR,
        INDICES,
        Tensor(name="U", dtype=FLOAT32.name, shape=("M", "D"), meaning="row-major"),
        Tensor(name="V", dtype=FLOAT32.name, shape=("K", "D"), meaning="row-major"),
    ),
    outputs=(Tensor(name="E", dtype=FLOAT32.name, shape=("nnz",), meaning="one per entry"),),
    source="TC-GNN (AGNN), USENIX ATC 2023; arXiv 2110.09524",
    workloads=(
        Workload(
            name="enron-64",
            kind="realistic",
            axes={"D": 64},
            generator=STAND_INS["email-Enron"].generator,
            note="statistics of email-Enron: uneven rows",
        ),
        Workload(
            name="tiny",
            kind="tiny",
            axes={"D": 32},
            generator={"law": "degree", "rows": 1000, "nnz": 6000, "cv": 2.0},
        ),
        Workload(
            name="pubmed-128",
            kind="realistic",
            axes={"D": 128},
            generator=STAND_INS["pubmed"].generator,
            note="statistics of the pubmed citation graph, 128 features",
        ),
        Workload(
            name="hub-33",
            kind="adversarial",
            axes={"D": 33},
            generator={"law": "hub", "n": 2000, "nnz": 8000},
            note="one full row, 40 % empty rows, an odd depth",
        ),
    ),
    structure=structure_maker(*AXES),
    values=values,
    oracle=oracle,
    flops=flops,
    bytes_moved=bytes_moved,
    # scipy has no sampled product; gathering with numpy would only be a slower torch.
    baselines=(
        # torch writes the pattern of the result, which is the one it was given.
        Baseline("torch eager", _torch, writes_inputs=True),
        Baseline("torch.compile", _prepare_compiled),
    ),
    variations=variations_of(*AXES, dense=DENSE),
    bulk=bulk_of(*AXES, dense=DENSE),
    families=LINEAR_FAMILIES,
    twins=twins,
    accuracy=(
        "n = D, s = sum over d of the magnitudes of the products. One float32 running sum of "
        "more than some 250 terms of one size and sign can miss it: add sums of blocks, or "
        "keep several. Zero times infinity is NaN."
    ),
    tags=("sparse", "graph", "attention"),
)
