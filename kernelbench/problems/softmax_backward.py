# SPDX-License-Identifier: Apache-2.0
"""The backward of softmax over rows: the gradient of its input from that of its answer.

The sum of y dy has a rounding error of u times the root of N times the sum of |y dy|; the
difference and the product round once each. So the scale of an element is |y| (|dy| + sum |y dy|).
Trials do not promise that a row of y sums to 1.
"""

from __future__ import annotations

import numpy as np

from ..dense import bulk_of, structure_maker, variations_of
from ..dtypes import FLOAT32
from ..families import blemish, draw, full_mantissa, noise, probe_rows, thin_columns
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

AXES = ("M", "N")
RANGES = dict.fromkeys(AXES, Range())
PROBE_SCALE = np.float32(2.0**-6)
"""Keeps the sum far below each dy, so that no cancellation hides or feigns an error."""


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
    """The softmax of normal logits, and a gradient of the family."""
    shape = (structure.axes["M"], structure.axes["N"])
    if family is Family.EXACT:
        # Powers of two of which N sum to at most 1: every honest step is exact.
        power = np.float32(2.0 ** -np.ceil(np.log2(shape[1])))
        y = rng.integers(0, 2, shape).astype(np.float32) * power
        return {"y": y, "dy": draw(family, shape, rng)}
    if family is Family.PROBE:
        return {"y": probe_rows(shape, rng) * PROBE_SCALE, "dy": full_mantissa(shape, rng)}
    risen = np.exp(noise(shape, rng))
    y = risen / risen.sum(1, keepdims=True)
    thin_columns(family, y, rng)
    dy = draw(family, shape, rng)
    if family is Family.NONFINITE:
        blemish(dy, rng)
    return {"y": y, "dy": dy}


@np.errstate(invalid="ignore")
def oracle(_structure: Structure, inputs: Arrays) -> dict[str, Expected]:
    """y (dy - sum y dy) in float64, by blocks of rows that stay in the cache."""
    y, dy = inputs["y"], inputs["dy"]
    rows, columns = y.shape
    value, scale = np.empty(y.shape), np.empty(y.shape)
    block = max(1, (1 << 15) // columns)
    for start in range(0, rows, block):
        part = slice(start, start + block)
        weight, gradient = y[part].astype(np.float64), dy[part].astype(np.float64)
        total = np.einsum("ij,ij->i", weight, gradient)[:, None]
        np.multiply(weight, gradient - total, out=value[part])
        np.abs(gradient, out=gradient)
        np.abs(weight, out=weight)
        size = np.einsum("ij,ij->i", weight, gradient)[:, None]
        np.multiply(weight, gradient + size, out=scale[part])
    return {"dx": Expected(value, scale, float(columns))}


def flops(axes: Axes) -> float:
    """Product and sum, difference and product: four per element."""
    return 4.0 * axes["M"] * axes["N"]


def bytes_moved(axes: Axes) -> float:
    """y and dy once, dx once."""
    return 12.0 * axes["M"] * axes["N"]


def _torch(call: BaselineCall) -> Prepared:
    import torch

    from ..torch_calls import views

    y, dy, dx = views(call)
    backward = torch.ops.aten._softmax_backward_data.out

    def compute() -> None:
        with torch.inference_mode():
            backward(dy, y, 1, torch.float32, grad_input=dx)

    return compute


def _prepare_compiled(call: BaselineCall) -> Prepared:
    from ..compiled_calls import prepare_compiled
    from ..torch_calls import views

    return prepare_compiled(
        lambda y, dy, dx: dx.copy_(y * (dy - (y * dy).sum(1, keepdim=True))), *views(call)
    )


PROBLEM = Problem(
    name="softmax_backward",
    title="Backward of softmax over rows",
    is_row_wise=True,
    definition="dx[i,j] = y[i,j] * (dy[i,j] - sum_k y[i,k] dy[i,k])",
    axes={"M": "rows", "N": "elements of a row"},
    inputs=(
        Tensor(name="y", dtype=FLOAT32.name, shape=("M", "N"), meaning="the forward's answer"),
        Tensor(name="dy", dtype=FLOAT32.name, shape=("M", "N"), meaning="gradient of y"),
    ),
    outputs=(Tensor(name="dx", dtype=FLOAT32.name, shape=("M", "N"), meaning="gradient of x"),),
    source="the derivative of softmax, as in KernelBench level 1",
    workloads=(
        Workload(
            name="4096x1024",
            kind="realistic",
            axes={"M": 4096, "N": 1024},
            note="attention scores of 4096 queries over 1024 keys",
        ),
        Workload(name="tiny", kind="tiny", axes={"M": 64, "N": 200}),
        Workload(
            name="512x16384",
            kind="realistic",
            axes={"M": 512, "N": 16384},
            note="long rows, as over a vocabulary",
        ),
        Workload(
            name="4099x33",
            kind="adversarial",
            axes={"M": 4099, "N": 33},
            note="short rows with an odd tail",
        ),
        Workload(
            name="3x16381",
            kind="adversarial",
            axes={"M": 3, "N": 16381},
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
    # Without CONSTANT: of a constant gradient nothing is left but rounding errors.
    families=(
        Family.NORMAL,
        Family.UNIFORM,
        Family.LAPLACE,
        Family.LOGNORMAL,
        Family.EXPONENTIAL,
        Family.OUTLIERS,
        Family.ALTERNATING,
        Family.SORTED,
        Family.LARGE,
        Family.NONFINITE,
        Family.EXACT,
        Family.PROBE,
    ),
    precision=Precision(nrmse=5e-5),
    backward_of="softmax",
    accuracy=(
        "n = N, s = |y| (|dy| + sum of |y dy| over the row). Rows of y need not sum to 1. NaN "
        "and infinities in dy come out where the definition has them."
    ),
    tags=("dense", "normalisation", "backward"),
)
