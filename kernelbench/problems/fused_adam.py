# SPDX-License-Identifier: Apache-2.0
"""One step of AdamW over the parameters of a model as one flat tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS
from ..families import blemish, draw
from ..problem import Expected, Family, Inputs

PROBLEM = {
    "title": "A step of AdamW over a flat tensor",
    "definition": "m1 = 0.9 m + 0.1 g; v1 = 0.999 v + 0.001 g^2; p1 = p - rate ((m1 / c1) / "
    "(sqrt(v1 / c2) + 1e-8) + 0.01 p); c1 = 1 - 0.9^t and c2 = 1 - 0.999^t are given",
    "source": "AdamW, arXiv 1711.05101; fused in LightSeq2, arXiv 2110.05722, and for CPUs in "
    "ZeRO-Infinity, arXiv 2104.07857",
    "headline": "LightSeq2: training of Transformers 1.4 to 3.5 times as fast, as reported",
    "tags": ["dense", "elementwise", "training"],
    "is_row_wise": True,
    "axes": {"M": "parameters"},
    "inputs": {
        "p": "float32[M]: parameters",
        "g": "float32[M]: their gradients",
        "m": "float32[M]: running mean of gradients",
        "v": "float32[M]: running mean of their squares, not negative",
        "step": "float32[3]: rate, c1 and c2",
    },
    "outputs": {
        "p1": "float32[M]: the next parameters",
        "m1": "float32[M]: the next mean",
        "v1": "float32[M]: the next mean of squares",
    },
    "flops": "15 * M",  # m 3, v 4, corrections 2, root, sum and quotient 3, decay 3
    "workloads": {
        "realistic": {"2097152": "a matrix of 2048 x 1024", "3000000": "no power of two"},
        "tiny": {"tiny": {"M": 5000}},
        "adversarial": {"100003": "a prime", "17": "one short vector"},
    },
    "families": "large nonfinite",
    "accuracy": "n = 16. m1: s = 0.9 |m| + 0.1 |g|; v1: s = |r|; p1: s = |p| + rate times (that of "
    "m1 / c1 / (sqrt(v1 / c2) + 1e-8) + 0.01 |p|). A NaN of g makes its element of all three NaN; "
    "infinities are never drawn.",
}
B1, B2, EPS, DECAY = 0.9, 0.999, 1e-8, 0.01
RATES = (1e-3, 3e-2)


def values(family: Family, rng: np.random.Generator, M: int) -> Inputs:
    """A state that gradients of like size have left behind after some steps, and parameters that a
    step moves visibly. Some parameters never had a gradient: for them 1e-8 is the denominator."""
    p = draw(Family.NORMAL if family is Family.LARGE else family, (M,), rng, max_decades=1)
    g = draw(family, (M,), rng)
    size = np.float32(np.abs(g).mean())
    m = draw(Family.NORMAL, (M,), rng, max_decades=0.3) * size
    v = np.square(draw(Family.UNIFORM, (M,), rng, max_decades=0.3) * size)
    unused = rng.random(M) < 1 / 16
    g[unused], m[unused], v[unused] = 0, 0, 0
    blemish(family, g, rng, (np.nan,))
    t = int(rng.integers(1, 1000))
    return p, g, m, v, np.array([rng.uniform(*RATES), 1 - B1**t, 1 - B2**t], np.float32)


def oracle(
    p: np.ndarray, g: np.ndarray, m: np.ndarray, v: np.ndarray, step: np.ndarray
) -> tuple[Expected, ...]:
    """The definition in float64."""
    p, g, m, v, (rate, c1, c2) = (each.astype(np.float64) for each in (p, g, m, v, step))
    m1, v1 = B1 * m + (1 - B1) * g, B2 * v + (1 - B2) * g * g
    size, factor = B1 * np.abs(m) + (1 - B1) * np.abs(g), 1 / c1 / (np.sqrt(v1 / c2) + EPS)
    scale = np.abs(p) + rate * (size * factor + DECAY * np.abs(p))
    return (
        Expected(p - rate * (m1 * factor + DECAY * p), scale, ROUNDINGS),
        Expected(m1, size, ROUNDINGS),
        Expected(v1, v1, ROUNDINGS),
    )


def by_compile(p: Any, g: Any, m: Any, v: Any, step: Any) -> tuple[Any, Any, Any]:
    """The definition, in float32 whatever the tensors are."""
    p, g, m, v, (rate, c1, c2) = p.float(), g.float(), m.float(), v.float(), step.float()
    m1, v1 = B1 * m + (1 - B1) * g, B2 * v + (1 - B2) * g * g
    return p - rate * (m1 / c1 / ((v1 / c2).sqrt() + EPS) + DECAY * p), m1, v1
