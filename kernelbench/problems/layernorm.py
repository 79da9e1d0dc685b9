# SPDX-License-Identifier: Apache-2.0
"""Layer normalisation over rows: mean and biased variance, eps 1e-5, then gamma and beta.

How far an honest float32 kernel may be off: the mean of N terms is off by u sqrt(N) E|x|, which
every element inherits, so the scale is |gamma| / sigma * (|x - mean| + E|x|) + |beta|. With a mean
a hundred times the deviation a kernel that subtracts the mean first stays inside; one that takes
E x^2 - mean^2 loses the variance altogether, and LARGE shows it.
"""

from __future__ import annotations

import numpy as np

from ..dense import bulk_of, structure_maker, variations_of
from ..dtypes import FLOAT32
from ..families import LONG, blemish, draw, noise, thin_columns
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
EPS = 1e-5
OVERHEAD = 16.0
"""Terms beside the N of the sums: a fixed number of roundings of each element."""


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
    """Rows, and a signed gain and shift per column.

    LARGE has integers near 1000, so that every honest sum is exact (up to 16,777 elements; rows of
    more than 16,384 are thinned) and only a cancelling variance suffers. CONSTANT is not legal: a
    row of equal elements gives beta, whatever the kernel does. NONFINITE has NaN only: of a row
    with an infinity honest kernels make NaN or infinities.
    """
    shape = (structure.axes["M"], structure.axes["N"])
    gamma, beta = gains(shape[1], rng), gains(shape[1], rng)
    if family is Family.LARGE:
        x = np.rint(1000 + 8 * noise(shape, rng))
    else:
        x = draw(family, shape, rng)
    thin_columns(family, x, rng)
    if shape[1] > LONG and family is not Family.NORMAL:
        mirror(x, rng)
    if family is Family.NONFINITE:
        blemish(x, rng, (np.nan,))
    return {"x": x, "gamma": gamma, "beta": beta}


def mirror(x: np.ndarray, rng: np.random.Generator) -> None:
    """Gives half of the columns that are left the opposite of the other half: the mean is 0.

    The squares of all that are 0 would else be thousands of equal terms that round alike, and a
    plain float32 sum of them drifts beyond any law of square roots.
    """
    left = rng.permutation(np.flatnonzero(x.any(0)))
    half = len(left) // 2
    x[:, left[half : 2 * half]] = -x[:, left[:half]]
    x[:, left[2 * half :]] = 0


def gains(count: int, rng: np.random.Generator) -> np.ndarray:
    """Signed gains away from zero."""
    drawn = rng.random(count, dtype=np.float32) + np.float32(0.5)
    return np.where(rng.random(count) < 0.25, -drawn, drawn)


def oracle(_structure: Structure, inputs: Arrays) -> dict[str, Expected]:
    """Two passes in float64, by blocks of rows that stay in the cache."""
    x, (rows, columns) = inputs["x"], inputs["x"].shape
    gamma, beta = inputs["gamma"].astype(np.float64), inputs["beta"].astype(np.float64)
    value, scale = np.empty(x.shape), np.empty(x.shape)
    block = max(1, (1 << 15) // columns)
    for start in range(0, rows, block):
        part = slice(start, start + block)
        centred = x[part].astype(np.float64)
        size = np.abs(centred).mean(1, keepdims=True)
        centred -= centred.mean(1, keepdims=True)
        variance = np.einsum("ij,ij->i", centred, centred)[:, None] / columns
        rstd = 1.0 / np.sqrt(variance + EPS)
        np.multiply(centred, rstd, out=value[part])
        value[part] *= gamma
        value[part] += beta
        np.abs(centred, out=centred)
        centred += size
        centred *= rstd
        np.multiply(centred, np.abs(gamma), out=scale[part])
        scale[part] += np.abs(beta)
    return {"y": Expected(value, scale, columns + OVERHEAD)}


def flops(axes: Axes) -> float:
    """Mean 1, centring 1, variance 2, scaling 2, gain and shift 2: eight per element."""
    return 8.0 * axes["M"] * axes["N"]


def bytes_moved(axes: Axes) -> float:
    """x once, y once, gamma and beta once."""
    return 8.0 * axes["M"] * axes["N"] + 8.0 * axes["N"]


def _torch(call: BaselineCall) -> Prepared:
    import torch

    from ..torch_calls import views

    x, gamma, beta, y = views(call)
    mean, rstd = torch.empty(call.axes["M"], 1), torch.empty(call.axes["M"], 1)

    def compute() -> None:
        with torch.inference_mode():
            torch.ops.aten.native_layer_norm.out(
                x, [call.axes["N"]], gamma, beta, EPS, out0=y, out1=mean, out2=rstd
            )

    return compute


def _prepare_compiled(call: BaselineCall) -> Prepared:
    from torch.nn.functional import layer_norm

    from ..compiled_calls import prepare_compiled
    from ..torch_calls import views

    shape = (call.axes["N"],)
    return prepare_compiled(
        lambda x, gamma, beta, y: y.copy_(layer_norm(x, shape, gamma, beta, EPS)), *views(call)
    )


PROBLEM = Problem(
    name="layernorm",
    title="Layer normalisation over rows",
    is_row_wise=True,
    definition="y[i,j] = (x[i,j] - mean_i) / sqrt(var_i + 1e-5) * gamma[j] + beta[j], "
    "var_i the biased variance of row i",
    axes={"M": "rows", "N": "elements of a row"},
    inputs=(
        Tensor(name="x", dtype=FLOAT32.name, shape=("M", "N"), meaning="row-major"),
        Tensor(name="gamma", dtype=FLOAT32.name, shape=("N",), meaning="gain"),
        Tensor(name="beta", dtype=FLOAT32.name, shape=("N",), meaning="shift"),
    ),
    outputs=(Tensor(name="y", dtype=FLOAT32.name, shape=("M", "N"), meaning="row-major"),),
    source="Layer normalization, arXiv 1607.06450; LightSeq2, arXiv 2110.05722",
    workloads=(
        Workload(
            name="4096x1024",
            kind="realistic",
            axes={"M": 4096, "N": 1024},
            note="4096 tokens of a model 1024 wide",
        ),
        Workload(name="tiny", kind="tiny", axes={"M": 64, "N": 200}),
        Workload(name="1024x8192", kind="realistic", axes={"M": 1024, "N": 8192}, note="long rows"),
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
        Family.SORTED,
        Family.LARGE,
        Family.NONFINITE,
    ),
    # The error of one mean moves a whole row; half-precision inputs still miss this by far.
    precision=Precision(nrmse=5e-5),
    accuracy=(
        "n = N + 16, s = |gamma| (|x - mean| + mean of |x|) / sigma + |beta|. The mean may be "
        "a hundred times the deviation: E[x^2] - mean^2 loses the variance there. A NaN makes "
        "its whole row NaN; infinities are never drawn."
    ),
    tags=("dense", "normalisation"),
)
