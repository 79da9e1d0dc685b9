# SPDX-License-Identifier: Apache-2.0
"""Root-mean-square normalisation over rows, eps 1e-6, then gamma.

A sum of squares has no cancellation: the relative error is u times the root of the number of
terms, so the scale is |answer|.
"""

from __future__ import annotations

import numpy as np

from ..dense import bulk_of, structure_maker, variations_of
from ..dtypes import FLOAT32
from ..families import blemish, draw, thin_columns
from ..problem import (
    Arrays,
    Axes,
    Baseline,
    BaselineCall,
    Expected,
    Family,
    Precision,
    Prepared,
    Problem,
    Structure,
    Tensor,
    Workload,
)
from ..sizes import Range
from .layernorm import gains

AXES = ("M", "N")
RANGES = dict.fromkeys(AXES, Range())
EPS = 1e-6
OVERHEAD = 16.0
"""Terms beside the N squares: root, reciprocal and the products take a few roundings each."""


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
    """Rows and a signed gain per column; CONSTANT has one element per row that differs.

    NONFINITE has NaN only: of a row with an infinity honest kernels make NaN or zeros.
    """
    shape = (structure.axes["M"], structure.axes["N"])
    gamma = gains(shape[1], rng)
    x = draw(family, shape, rng, varies=0)
    thin_columns(family, x, rng)
    if family is Family.CONSTANT:
        place = rng.integers(0, shape[1], (shape[0], 1))
        np.put_along_axis(x, place, np.take_along_axis(x, place, 1) * 2, 1)
    if family is Family.NONFINITE:
        blemish(x, rng, (np.nan,))
    return {"x": x, "gamma": gamma}


def oracle(_structure: Structure, inputs: Arrays) -> dict[str, Expected]:
    """The definition in float64."""
    x, gamma = inputs["x"], inputs["gamma"].astype(np.float64)
    rows, columns = x.shape
    value, scale = np.empty(x.shape), np.empty(x.shape)
    block = max(1, (1 << 15) // columns)
    for start in range(0, rows, block):
        part = slice(start, start + block)
        squares = x[part].astype(np.float64)
        factor = np.einsum("ij,ij->i", squares, squares)[:, None] / columns + EPS
        np.divide(squares, np.sqrt(factor), out=value[part])
        value[part] *= gamma
        np.abs(value[part], out=scale[part])
    return {"y": Expected(value, scale, columns + OVERHEAD)}


def flops(axes: Axes) -> float:
    """Square and sum 2, scaling 1, gain 1: four per element."""
    return 4.0 * axes["M"] * axes["N"]


def bytes_moved(axes: Axes) -> float:
    """x once, y once, gamma once."""
    return 8.0 * axes["M"] * axes["N"] + 4.0 * axes["N"]


def _torch(call: BaselineCall) -> Prepared:
    import torch

    from ..torch_calls import views

    x, gamma, y = views(call)
    factor = torch.empty(call.axes["M"], 1)

    def compute() -> None:
        # Twice as fast as torch's own rms_norm, which allocates and copies.
        with torch.inference_mode():
            torch.linalg.vector_norm(x, dim=1, keepdim=True, out=factor)
            factor.square_().div_(call.axes["N"]).add_(EPS).rsqrt_()
            torch.mul(x, factor, out=y)
            y.mul_(gamma)

    return compute


def _prepare_compiled(call: BaselineCall) -> Prepared:
    from torch.nn.functional import rms_norm

    from ..compiled_calls import prepare_compiled
    from ..torch_calls import views

    shape = (call.axes["N"],)
    return prepare_compiled(
        lambda x, gamma, y: y.copy_(rms_norm(x, shape, gamma, EPS)), *views(call)
    )


PROBLEM = Problem(
    name="rmsnorm",
    title="Root-mean-square normalisation over rows",
    is_row_wise=True,
    definition="y[i,j] = x[i,j] / sqrt(mean_k x[i,k]^2 + 1e-6) * gamma[j]",
    axes={"M": "rows", "N": "elements of a row"},
    inputs=(
        Tensor(name="x", dtype=FLOAT32.name, shape=("M", "N"), meaning="row-major"),
        Tensor(name="gamma", dtype=FLOAT32.name, shape=("N",), meaning="gain"),
    ),
    outputs=(Tensor(name="y", dtype=FLOAT32.name, shape=("M", "N"), meaning="row-major"),),
    source="Root mean square layer normalization, arXiv 1910.07467",
    workloads=(
        Workload(
            name="1024x4096",
            kind="realistic",
            axes={"M": 1024, "N": 4096},
            note="1024 tokens of a model 4096 wide",
        ),
        Workload(name="tiny", kind="tiny", axes={"M": 64, "N": 200}),
        Workload(
            name="8192x768", kind="realistic", axes={"M": 8192, "N": 768}, note="many short rows"
        ),
        Workload(
            name="4099x33",
            kind="adversarial",
            axes={"M": 4099, "N": 33},
            note="short rows with an odd tail",
        ),
        Workload(
            name="3x16383",
            kind="adversarial",
            axes={"M": 3, "N": 16383},
            note="fewer rows than most machines have cores",
        ),
    ),
    structure=structure_maker(*AXES),
    values=values,
    oracle=oracle,
    flops=flops,
    bytes_moved=bytes_moved,
    baselines=(Baseline("torch eager", _torch), Baseline("torch.compile", _prepare_compiled)),
    variations=variations_of(RANGES),
    bulk=bulk_of(RANGES),
    families=(
        Family.NORMAL,
        Family.UNIFORM,
        Family.LAPLACE,
        Family.LOGNORMAL,
        Family.EXPONENTIAL,
        Family.OUTLIERS,
        Family.ALTERNATING,
        Family.CONSTANT,
        Family.SORTED,
        Family.LARGE,
        Family.NONFINITE,
    ),
    precision=Precision(nrmse=5e-5),
    accuracy=("n = N + 16, s = |r|. A NaN makes its whole row NaN; infinities are never drawn."),
    tags=("dense", "normalisation"),
)
