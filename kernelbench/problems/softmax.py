# SPDX-License-Identifier: Apache-2.0
"""Softmax over the rows of a dense matrix.

How far an honest float32 kernel may be off: exp(x - max) takes the rounding of its argument,
u |x - max|, and a few units of its own; where the exponential is one to the base 2, as in most
published kernels and in a GPU's own instruction, x log2(e) and its difference to max log2(e) are
rounded too, another u |x| and u |x - max|. The row's sum adds the weighted mean of the same and a
random walk of N roundings (rescaling online adds as much again). So the scale of an element is
value * (2 + (8 + d + E(d) + L/2u) / sqrt(N)) with N terms and d = |x - max| + |x|, E being the
mean weighted by the answer and L what the sum may lose of terms near its last place. Below the
smallest normal float32 a kernel may flush to zero.
"""

from __future__ import annotations

import numpy as np

from ..dense import bulk_of, structure_maker, variations_of
from ..dtypes import FLOAT32
from ..families import blemish, draw, noise, raise_peaks, sink
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
EXP_ULPS = 8.0
"""Relative error allowed to one exponential, in u: about four units in the last place."""
TINY = 4 * 2.0**-126
"""Answers below the normal range may be flushed; exponentials clamped there end just above it."""
FARTHEST = 1e4
"""A logit that is further below its row's maximum, -inf too, has the answer 0 and no scale."""


BLOCK_ELEMENTS = 1 << 15
"""Elements of a block of the oracle: its float64 temporaries fit in a second-level cache."""


def drift(value: np.ndarray) -> np.ndarray:
    """How much of each term a plain sum may lose, always to the same side.

    A term of less than a few units of the sum's last place is rounded away, or up, like the
    thousands that are as small; these errors add up instead of walking at random.
    """
    return np.where(value < 2.0**-20, np.minimum(value, 2.0**-24), 0.0)


def softmax_scale(
    value: np.ndarray,
    reached: np.ndarray,
    spread: np.ndarray,
    terms: np.ndarray | float,
    lost: np.ndarray,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """The scale from the answer, `reach`, its weighted mean, N, and the row's sum of `drift`."""
    root = np.sqrt(terms)
    scale: np.ndarray = np.add(reached, spread + EXP_ULPS + lost * 2.0**23, out=out)
    scale /= root
    scale += 2.0
    scale *= value
    scale += TINY * 2.0**23 / root
    return scale


def reach(distance: np.ndarray, x: np.ndarray) -> np.ndarray:
    """|x - max| + |x|, in the first array: what the roundings of an exponent are shares of."""
    size = np.abs(x, dtype=distance.dtype)
    distance += np.minimum(size, FARTHEST, out=size)
    return distance


def add_noise(x: np.ndarray, family: Family, rng: np.random.Generator) -> np.ndarray:
    """Logits with normal noise on top, except where a family is defined by having none.

    Thousands of nearly equal exponentials beside one that dominates round alike, and a plain
    float32 sum of them drifts in proportion to N; no error law in sqrt(N) could then admit it.
    """
    if family in (Family.CONSTANT, Family.DENORMAL, Family.SORTED):
        return x
    x += noise(x.shape, rng)
    return x


def values(structure: Structure, family: Family, rng: np.random.Generator) -> Arrays:
    """The logits; LARGE has some that overflow exp without the subtraction of the maximum, and in
    half of the rows one that overflows it unless the maximum is that one.

    NONFINITE has a mask: -inf from some place of a row on, as in causal attention, and a few NaN.
    Of a LONG row most logits are too low to count: a plain sum of so many exponentials drifts
    beyond any limit that tells a downcast.
    """
    shape = (structure.axes["M"], structure.axes["N"])
    if family is Family.LARGE:
        x = noise(shape, rng)
        x += rng.choice(np.array((100, 150, 200, -120), np.float32), (shape[0], 1))
        sink(x, np.arange(shape[1]), shape[1], rng)
        raise_peaks(x.reshape(-1, 1), np.full(shape[0], shape[1]), rng)
        return {"x": x}
    x = draw(family, shape, rng, varies=0)
    if family in (Family.CONSTANT, Family.DENORMAL) and shape[1] > 1:
        # All equal gives 1/N everywhere, which tells nobody apart; one element per row stands out.
        place = rng.integers(0, shape[1], (shape[0], 1))
        np.put_along_axis(x, place, np.take_along_axis(x, place, 1) - np.float32(1), 1)
    x = add_noise(x, family, rng)
    sink(x, np.arange(shape[1]), shape[1], rng)
    if family is Family.NONFINITE:
        is_masked = np.arange(shape[1]) >= rng.integers(1, shape[1] + 1, (shape[0], 1))
        x[is_masked & (rng.random((shape[0], 1)) < 0.5)] = -np.inf
        blemish(x, rng, (np.nan,))
    return {"x": x}


@np.errstate(invalid="ignore")
def oracle(structure: Structure, inputs: Arrays) -> dict[str, Expected]:
    """exp(x - max) / sum in float64, by blocks of rows that stay in the cache."""
    x = inputs["x"]
    rows, columns = x.shape
    value, scale = np.empty(x.shape), np.empty(x.shape)
    block = max(1, BLOCK_ELEMENTS // columns)
    terms = float(structure.axes["N"])
    for start in range(0, rows, block):
        part = slice(start, min(start + block, rows))
        distance = x[part].astype(np.float64)
        np.subtract(distance.max(1, keepdims=True), distance, out=distance)
        np.minimum(distance, FARTHEST, out=distance)
        y = np.exp(-distance, out=value[part])
        y /= y.sum(1, keepdims=True)
        reached = reach(distance, x[part])
        spread = np.einsum("ij,ij->i", y, reached)[:, None]
        lost = drift(y).sum(1, keepdims=True)
        softmax_scale(y, reached, spread, terms, lost, out=scale[part])
    return {"y": Expected(value, scale, terms)}


def flops(axes: Axes) -> float:
    """Maximum, subtraction, exponential, sum and division: five per element."""
    return 5.0 * axes["M"] * axes["N"]


def bytes_moved(axes: Axes) -> float:
    """x once, y once."""
    return 8.0 * axes["M"] * axes["N"]


def _torch(call: BaselineCall) -> Prepared:
    import torch

    from ..torch_calls import dense_view

    x, y = dense_view(call.inputs["x"]), dense_view(call.outputs["y"])

    def compute() -> None:
        with torch.inference_mode():
            torch.softmax(x, 1, out=y)

    return compute


def _prepare_compiled(call: BaselineCall) -> Prepared:
    import torch

    from ..compiled_calls import prepare_compiled
    from ..torch_calls import views

    return prepare_compiled(lambda x, y: y.copy_(torch.softmax(x, 1)), *views(call))


PROBLEM = Problem(
    name="softmax",
    title="Softmax over rows",
    is_row_wise=True,
    definition="y[i,j] = exp(x[i,j] - max_k x[i,k]) / sum_k exp(x[i,k] - max_k x[i,k])",
    axes={"M": "rows", "N": "elements of a row"},
    inputs=(Tensor(name="x", dtype=FLOAT32.name, shape=("M", "N"), meaning="logits, row-major"),),
    outputs=(Tensor(name="y", dtype=FLOAT32.name, shape=("M", "N"), meaning="rows sum to 1"),),
    source="KernelBench level 1; online normaliser, arXiv 1805.02867",
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
        Family.DENORMAL,
        Family.LARGE,
        Family.NONFINITE,
    ),
    # A plain sum of 16,384 terms drifts by 1e-4; an answer rounded to fp16 is 2e-4 off.
    precision=Precision(nrmse=1.5e-4),
    accuracy=(
        "n = N. With d = max - x + |x| of an element and D the mean of d weighted by r the limit "
        "is 4 u r (2 sqrt(N) + d + D + 8), some 2e-5 r for N = 1024: enough for an exponential "
        "that is a few units in the last place off, and for one to the base 2 of x log2(e). "
        "Answers below 2^-124 may be flushed to 0. "
        "A NaN makes its whole row NaN; -inf is a mask, never the first element of a row; "
        "+inf is never drawn."
    ),
    tags=("dense", "normalisation"),
)
