# SPDX-License-Identifier: Apache-2.0
"""A bias per column, then GELU in its tanh form: what follows a matrix product in a transformer.

With s = x + bias and z = sqrt(2/pi) (s + 0.044715 s^3) the answer is s (1 + tanh z) / 2. For
negative s the sum 1 + tanh z cancels, so an honest kernel is off by a few u |s|, and by
(1 - tanh^2 z) |z| |s| for the roundings of z: the scale. Sixteen terms stand for the fixed number
of operations.
"""

from __future__ import annotations

import numpy as np

from ..dense import bulk_of, structure_maker, variations_of
from ..dtypes import FLOAT32
from ..families import blemish, draw
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

AXES = ("M", "N")
RANGES = dict.fromkeys(AXES, Range())
OPERATIONS = 16.0
LARGE_BIAS = np.float32(2.0**-4)
"""Of the size of x: their sum has a cube that float32 holds."""


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
    """x and the bias of each column, at scales where the curve bends and where it does not.

    One element of each row is positive: where all are far below zero the answer is nothing but
    what cancellation left, and no honest kernel has a small error relative to it. NONFINITE has no
    -inf: the definition gives NaN for it, other forms of the same curve its limit. Beside LARGE
    values the bias is large, too, or its loss would show nowhere.
    """
    shape = (structure.axes["M"], structure.axes["N"])
    x = draw(family, shape, rng, varies=0, max_decades=1.0)
    bias = draw(Family.NORMAL, (shape[1],), rng, max_decades=0.5)
    if family is Family.LARGE:
        bias *= np.abs(x).mean() * LARGE_BIAS
    place = rng.integers(0, shape[1], (shape[0], 1))
    size = np.abs(np.take_along_axis(x, place, 1)) + np.abs(bias[place])
    np.put_along_axis(x, place, size, 1)
    if family is Family.NONFINITE:
        blemish(x, rng, (np.nan, np.inf))
    return {"x": x, "bias": bias}


@np.errstate(invalid="ignore")
def oracle(_structure: Structure, inputs: Arrays) -> dict[str, Expected]:
    """The definition in float64, by blocks of rows that stay in the cache."""
    x, bias = inputs["x"], inputs["bias"].astype(np.float64)
    rows, columns = x.shape
    value, scale = np.empty(x.shape), np.empty(x.shape)
    block = max(1, (1 << 15) // columns)
    for start in range(0, rows, block):
        part = slice(start, start + block)
        s = x[part] + bias
        z = s * s
        z *= 0.044715
        z += 1.0
        z *= s
        z *= np.sqrt(2.0 / np.pi)
        t = np.tanh(z)
        np.multiply(0.5 * s, 1.0 + t, out=value[part])
        # (1 - t^2) |z| is at most 0.45: how much tanh passes on of a relative error of z.
        np.abs(z, out=z)
        z *= 1.0 - t * t
        z += 1.0
        np.multiply(np.abs(s), z, out=scale[part])
    return {"y": Expected(value, scale, OPERATIONS)}


def flops(axes: Axes) -> float:
    """Sum 1, polynomial 4, tanh counted as 6, the product with 1 + tanh 3: fourteen."""
    return 14.0 * axes["M"] * axes["N"]


def bytes_moved(axes: Axes) -> float:
    """x once, y once, the bias once."""
    return 8.0 * axes["M"] * axes["N"] + 4.0 * axes["N"]


def _torch(call: BaselineCall) -> Prepared:
    import torch

    from ..torch_calls import views

    x, bias, y = views(call)

    def compute() -> None:
        with torch.inference_mode():
            torch.add(x, bias, out=y)
            torch.ops.aten.gelu_(y, approximate="tanh")

    return compute


def _prepare_compiled(call: BaselineCall) -> Prepared:
    from torch.nn.functional import gelu

    from ..compiled_calls import prepare_compiled
    from ..torch_calls import views

    return prepare_compiled(
        lambda x, bias, y: y.copy_(gelu(x + bias, approximate="tanh")), *views(call)
    )


PROBLEM = Problem(
    name="bias_gelu",
    title="Bias and GELU (tanh form)",
    is_row_wise=True,
    definition="s = x[i,j] + bias[j]; y[i,j] = 0.5 s (1 + tanh(sqrt(2/pi) (s + 0.044715 s^3)))",
    axes={"M": "rows", "N": "columns"},
    inputs=(
        Tensor(name="x", dtype=FLOAT32.name, shape=("M", "N"), meaning="row-major"),
        Tensor(name="bias", dtype=FLOAT32.name, shape=("N",), meaning="added to every row"),
    ),
    outputs=(Tensor(name="y", dtype=FLOAT32.name, shape=("M", "N"), meaning="row-major"),),
    source="GELU, arXiv 1606.08415; fused in LightSeq2, arXiv 2110.05722",
    workloads=(
        Workload(
            name="1024x3072",
            kind="realistic",
            axes={"M": 1024, "N": 3072},
            note="the inner layer of a small transformer, 1024 tokens",
        ),
        Workload(name="tiny", kind="tiny", axes={"M": 64, "N": 200}),
        Workload(
            name="512x8192",
            kind="realistic",
            axes={"M": 512, "N": 8192},
            note="a wider inner layer",
        ),
        Workload(
            name="4099x33",
            kind="adversarial",
            axes={"M": 4099, "N": 33},
            note="short rows with an odd tail",
        ),
        Workload(
            name="1x100003",
            kind="adversarial",
            axes={"M": 1, "N": 100_003},
            note="one row of prime length",
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
    accuracy=(
        "n = 16; with v = x + bias and z the argument of tanh, s = |v| (1 + |z| (1 - "
        "tanh(z)^2)). NaN and +inf come out as the definition has them; -inf is never drawn."
    ),
    tags=("dense", "elementwise"),
)
