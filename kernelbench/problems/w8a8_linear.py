# SPDX-License-Identifier: Apache-2.0
"""A linear layer on int8 activations and weights: exact sums, a scale for each row of both."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish, draw, draw_factors
from ..problem import Expected, Family, Inputs, Prepared
from ..torch_calls import product_in_floats, turn

PROBLEM = {
    "title": "Linear layer of 8-bit weights and activations (W8A8)",
    "definition": "y[i,j] = (sum over k of x[i,k] * w[j,k]) * sx[i] * sw[j] + bias[j]",
    "source": "LLM.int8, arXiv 2208.07339; SmoothQuant, arXiv 2211.10438; MixDQ, arXiv 2405.17873",
    "tags": ["dense", "contraction", "quantised"],
    "is_row_wise": True,
    "axes": {"M": "tokens", "N": "outputs of the layer", "K": "its inputs"},
    "inputs": {
        "x": "int8[M, K]: activations, row-major, from -127 on",
        "w": "int8[N, K]: weights, row-major, from -127 on",
        "sx": "float32[M]: what a step of each token is worth",
        "sw": "float32[N]: what a step of each output's weights is worth",
        "bias": "float32[N]: added to every token",
    },
    "outputs": {"y": "float32[M, N]: row-major"},
    "flops": "2 * M * N * K",
    "workloads": {
        "realistic": {"256x1280x1280": "MixDQ, a layer of SDXL", "16x4096x4096": "16 decodes"},
        "tiny": {"tiny": {"M": 32, "N": 40, "K": 96}},
        "adversarial": {"129x65x257": "one more than tile sizes", "1x1000x2048": "a single token"},
    },
    "families": "large nonfinite exact",
    "accuracy": "n = 4, s = |sum sx sw| + |bias|: the sum is exact in int32. Scales and bias may "
    "be NaN, never infinite.",
}
ROUNDINGS = 4.0
"""The sum as a float, two products, and the bias."""


def values(family: Family, rng: np.random.Generator, M: int, N: int, K: int) -> Inputs:
    """Codes whose largest is 127, scales of a decade and a half, a bias of the size of the sums.

    EXACT has codes of {-1, 0, 1} and scales that are powers of two: nothing is rounded.
    """
    x, w = draw_factors(family, (M, K), (N, K), rng, varies=(0, 0))
    if family is Family.EXACT:
        powers = [(2.0 ** rng.integers(-2, 3, n)).astype(np.float32) for n in (M, N)]
        return x, w, *powers, draw(family, (N,), rng)
    sx, sw = ((10.0 ** rng.uniform(-3.0, -1.5, n)).astype(np.float32) for n in (M, N))
    bias = rng.standard_normal(N, np.float32) * np.float32(5e3 * np.sqrt(K) * sx.mean()) * sw
    for array in (sx, sw, bias):
        blemish(family, array, rng, (np.nan,))
    return x, w, sx, sw, bias


def oracle(
    x: np.ndarray, w: np.ndarray, sx: np.ndarray, sw: np.ndarray, bias: np.ndarray
) -> Expected:
    """Sums in float64, which holds them all."""
    worth = sx[:, None].astype(np.float64) * sw.astype(np.float64)
    product = x.astype(np.float64) @ w.astype(np.float64).T * worth
    return Expected(product + bias, np.abs(product) + np.abs(bias.astype(np.float64)), ROUNDINGS)


def by_torch(torch: Any, x: Any, w: Any, sx: Any, sw: Any, bias: Any, y: Any) -> Prepared:
    """The product of int8, then its scales; halves as float32, which are rounded once."""
    if y.dtype != torch.float32:
        return lambda: y.copy_(by_compile(torch, x, w, sx.float(), sw, bias))
    return lambda: torch.mul(torch._int_mm(x, turn(w)), sx[:, None], out=y).mul_(sw).add_(bias)


def by_floats(torch: Any, x: Any, w: Any, sx: Any, sw: Any, bias: Any, y: Any) -> Prepared:
    """The product in float32, where that is exact."""
    product = product_in_floats(torch, x, w.t())
    return lambda: y.copy_((product() * sx.float()[:, None]).mul_(sw).add_(bias))


def by_compile(torch: Any, x: Any, w: Any, sx: Any, sw: Any, bias: Any) -> Any:
    """The definition."""
    return torch._int_mm(x, turn(w)).float() * sx.float()[:, None] * sw + bias
