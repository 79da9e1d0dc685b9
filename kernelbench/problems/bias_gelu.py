# SPDX-License-Identifier: Apache-2.0
"""A bias per column, then GELU in its tanh form: what follows a matrix product in a transformer.

For negative s the sum 1 + tanh z cancels, so an honest kernel is off by a few u |s|, and by
(1 - tanh^2 z) |z| |s| for the roundings of z: the scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS, expect_by_rows
from ..families import blemish, draw, single_out
from ..problem import Expected, Family, Pair, Prepared

PROBLEM = {
    "title": "Bias and GELU (tanh form)",
    "definition": "s = x[i,j] + bias[j]; y[i,j] = 0.5 s (1 + tanh(sqrt(2/pi) (s + 0.044715 s^3)))",
    "source": "GELU, arXiv 1606.08415; fused in LightSeq2, arXiv 2110.05722",
    "tags": ["dense", "elementwise", "fused"],
    "is_row_wise": True,
    "axes": {"M": "rows", "N": "columns"},
    "inputs": {"x": "float32[M, N]: row-major", "bias": "float32[N]: added to every row"},
    "outputs": {"y": "float32[M, N]: row-major"},
    "flops": "14 * M * N",  # sum 1, polynomial 4, tanh 6, the product with 1 + tanh 3
    "workloads": {
        "realistic": {
            "1024x3072": "the inner layer of a small transformer, 1024 tokens",
            "512x8192": "a wider inner layer",
        },
        "tiny": {"tiny": {"M": 64, "N": 200}},
        "adversarial": ["4099x33", "1x100003"],
    },
    "families": "large nonfinite",
    "accuracy": "n = 16; with v = x + bias and z the argument of tanh, s = |v| (1 + |z| (1 - "
    "tanh(z)^2)). NaN and +inf come out as the definition has them; -inf is never drawn.",
}
LARGE_BIAS = np.float32(2.0**-4)
"""Of the size of x: their sum has a cube that float32 holds."""


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Pair:
    """x and the bias of each column, at scales where the curve bends and where it does not.

    One element of each row is positive: where all are far below zero the answer is nothing but
    what cancellation left, and no honest kernel has a small error relative to it. NONFINITE has no
    -inf: the definition gives NaN for it, other forms of the same curve its limit. Beside LARGE
    values the bias is large, too, or its loss would show nowhere.
    """
    x = draw(family, (M, N), rng, varies=0, max_decades=1.0)
    bias = draw(Family.NORMAL, (N,), rng, max_decades=0.5)
    if family is Family.LARGE:
        bias *= np.abs(x).mean() * LARGE_BIAS
    single_out(x, rng, lambda value, place: np.abs(value) + np.abs(bias[place]))
    blemish(family, x, rng, (np.nan, np.inf))
    return x, bias


def oracle(x: np.ndarray, bias: np.ndarray) -> Expected:
    """The definition in float64."""

    def answer(s: np.ndarray, shift: np.ndarray) -> Pair:
        s += shift
        z = (s * s * 0.044715 + 1.0) * s * np.sqrt(2.0 / np.pi)
        t = np.tanh(z)
        # (1 - t^2) |z| is at most 0.45: how much tanh passes on of a relative error of z.
        return 0.5 * s * (1.0 + t), np.abs(s) * (np.abs(z) * (1.0 - t * t) + 1.0)

    return expect_by_rows(answer, ROUNDINGS, x, bias)


def by_torch(torch: Any, x: Any, bias: Any, y: Any) -> Prepared:
    """Without a tensor between; halves as float32, which are rounded once."""
    if x.dtype != torch.float32:
        return lambda: y.copy_(by_compile(torch, x.float(), bias))
    return lambda: torch.ops.aten.gelu_(torch.add(x, bias, out=y), approximate="tanh")


def by_compile(torch: Any, x: Any, bias: Any) -> Any:
    """torch's own."""
    return torch.nn.functional.gelu(x + bias, approximate="tanh")
