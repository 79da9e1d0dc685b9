# SPDX-License-Identifier: Apache-2.0
"""C = A B, all dense: the yardstick, since a library is already near the machine's peak."""

from __future__ import annotations

import numpy as np

from ..dense import bulk_of, structure_maker, variations_of
from ..dtypes import FLOAT32
from ..families import (
    LINEAR_FAMILIES,
    below_one,
    blemish,
    denormal_rows,
    draw,
    full_mantissa,
    make_denormal,
    probe_rows,
    thin_columns,
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
from ..sizes import Range
from ..torch_calls import dense_view

AXES = ("M", "N", "K")
RANGES = dict.fromkeys(AXES, Range())


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
    """The two factors; constant along the reduction where they are constant."""
    axes = structure.axes
    left, right = (axes["M"], axes["K"]), (axes["K"], axes["N"])
    if family is Family.PROBE:
        return {"A": probe_rows(left, rng), "B": full_mantissa(right, rng)}
    if family is Family.DENORMAL:
        a = draw(Family.NORMAL, left, rng)
        make_denormal(a, denormal_rows(left[0], rng), rng)
        return {"A": a, "B": below_one(right, rng)}
    a, b = draw(family, left, rng, varies=0), draw(family, right, rng, varies=1)
    thin_columns(family, a, rng)
    if family is Family.NONFINITE:
        blemish(a, rng)
        blemish(b, rng)
    return {"A": a, "B": b}


@np.errstate(invalid="ignore")
def oracle(structure: Structure, inputs: Arrays) -> dict[str, Expected]:
    """The product in float64; the scale is |A||B|, in float32 where its rounding is harmless."""
    a, b = inputs["A"], inputs["B"]
    value = a.astype(np.float64) @ b.astype(np.float64)
    scale = (np.abs(a) @ np.abs(b)).astype(np.float64)
    return {"C": Expected(value, scale, float(structure.axes["K"]))}


def flops(axes: Axes) -> float:
    """Two per element and term."""
    return 2.0 * axes["M"] * axes["N"] * axes["K"]


def bytes_moved(axes: Axes) -> float:
    """A, B and C once."""
    m, n, k = axes["M"], axes["N"], axes["K"]
    return 4.0 * (m * k + k * n + m * n)


def _torch(call: BaselineCall) -> Prepared:
    import torch

    from ..torch_calls import views

    a, b, c = views(call)

    def compute() -> None:
        with torch.inference_mode():
            torch.mm(a, b, out=c)

    return compute


def _numpy(call: BaselineCall) -> Prepared:
    a, b, c = call.inputs["A"], call.inputs["B"], call.outputs["C"]

    def compute() -> None:
        np.dot(a, b, out=c)

    return compute


def _onednn(call: BaselineCall) -> Prepared:
    """The library that torch leaves a few rows by many columns to MKL for: it is faster there."""
    import torch

    if not torch.backends.mkldnn.is_available():
        raise ImportError("this torch was built without oneDNN")
    a, b = dense_view(call.inputs["A"]), dense_view(call.inputs["B"]).t()
    c = dense_view(call.outputs["C"])
    multiply = torch.ops.mkldnn._linear_pointwise

    def compute() -> None:
        with torch.inference_mode():
            c.copy_(multiply(a, b, None, "none", [], ""))

    return compute


def _cupy(call: BaselineCall) -> Prepared:
    from ..cupy_calls import product

    return product(call)


PROBLEM = Problem(
    name="gemm",
    title="Dense matrix product",
    is_row_wise=True,
    definition="C[i,j] = sum over k of A[i,k] * B[k,j]",
    axes={"M": "rows of A and C", "N": "columns of B and C", "K": "columns of A, rows of B"},
    inputs=(
        Tensor(name="A", dtype=FLOAT32.name, shape=("M", "K"), meaning="row-major"),
        Tensor(name="B", dtype=FLOAT32.name, shape=("K", "N"), meaning="row-major"),
    ),
    outputs=(Tensor(name="C", dtype=FLOAT32.name, shape=("M", "N"), meaning="row-major"),),
    source="CUDA-L2 (shape grid); KernelBench level 1",
    workloads=(
        Workload(name="512", kind="realistic", axes={"M": 512, "N": 512, "K": 512}),
        Workload(name="tiny", kind="tiny", axes={"M": 64, "N": 64, "K": 64}),
        Workload(
            name="1024x256x768",
            kind="realistic",
            axes={"M": 1024, "N": 256, "K": 768},
            note="a projection of a small transformer",
        ),
        Workload(
            name="129x65x257",
            kind="adversarial",
            axes={"M": 129, "N": 65, "K": 257},
            note="one more than tile sizes, a prime depth",
        ),
        Workload(
            name="1x1000x2048",
            kind="adversarial",
            axes={"M": 1, "N": 1000, "K": 2048},
            note="a single row: bound by memory",
        ),
    ),
    structure=structure_maker(*AXES),
    values=values,
    oracle=oracle,
    flops=flops,
    bytes_moved=bytes_moved,
    # torch.compile hands a lone product to the same library call as eager: left out.
    baselines=(
        Baseline("torch eager", _torch),
        Baseline("numpy", _numpy, "numpy"),
        Baseline("oneDNN", _onednn, "torch.backends.mkldnn"),
        Baseline("cupy", _cupy, "cupy"),
    ),
    variations=variations_of(RANGES),
    bulk=bulk_of(RANGES),
    families=LINEAR_FAMILIES,
    accuracy=(
        "n = K, s = sum over k of |A[i,k] B[k,j]|. One float32 running sum of more than some "
        "250 terms of one size and sign can miss it: add sums of blocks, or keep several. "
        "Zero times infinity is NaN."
    ),
    tags=("dense", "contraction"),
)
