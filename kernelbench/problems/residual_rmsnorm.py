# SPDX-License-Identifier: Apache-2.0
"""A residual, root-mean-square normalisation, and codes of 8 bits with a scale for each token."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS, blocks_of_rows, gains, sum_products
from ..families import draw, single_out, thin_columns
from ..problem import Expected, Family, Inputs

PROBLEM = {
    "title": "Residual, root-mean-square normalisation, int8 codes per token",
    "definition": "h = x + residual; y[i,j] = h[i,j] / sqrt(mean_k h[i,k]^2 + 1e-6) * gamma[j]; "
    "scale[i] = max_k |y[i,k]| / 127; q[i,j] = y[i,j] / scale[i], rounded to nearest even (0 where "
    "the scale is 0)",
    "source": "RMSNorm, arXiv 1910.07467; per-token codes, SmoothQuant, arXiv 2211.10438",
    "tags": ["dense", "normalisation", "quantised", "fused"],
    "is_row_wise": True,
    "axes": {"M": "tokens", "N": "elements of a token"},
    "inputs": {
        "x": "float32[M, N]: what a layer gave, row-major",
        "residual": "float32[M, N]: what is added to it",
        "gamma": "float32[N]: gain",
    },
    "outputs": {
        "h": "float32[M, N]: the next residual",
        "q": "int8[M, N]: codes from -127 to 127",
        "scale": "float32[M]: what a step of each token is worth",
    },
    "flops": "9 * M * N",  # sum 1, square and sum 2, scaling 1, gain 1, maximum 2, code 2
    "workloads": {
        "realistic": ["1024x4096", "8192x768"],
        "tiny": {"tiny": {"M": 48, "N": 150}},
        "adversarial": ["4099x33", "3x16383"],
    },
    "families": "large",
    "nrmse": 5e-5,
    "accuracy": "h: n = 1, s = |r|. scale: n = N + 16, s = |r|. q: r = 127 y / max|y| before it is "
    "rounded, n = 16, s = |r|, and half a step is taken off an error: either neighbour of a tie "
    "will do. y is made of h before h is rounded to a narrow type.",
}
EPS, LEVELS = 1e-6, 127.0


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Inputs:
    """Of equal elements, whose squares float32 adds up exactly, one is another; there one token of
    several is 0, and so is its scale."""
    x, residual = (draw(family, (M, N), rng, varies=0) for _ in "xr")
    thin_columns(family, x, rng)
    residual[:, ~x.any(0)] = 0
    if family is Family.CONSTANT:
        residual = x * np.float32(rng.integers(1, 3))
        single_out(x, rng, lambda value, _: value * 2)
        row = rng.integers(M)
        residual[row] = -x[row] if M > 1 else residual[row]
    return x, residual, gains(N, rng)


def oracle(x: np.ndarray, residual: np.ndarray, gamma: np.ndarray, N: int) -> dict[str, Expected]:
    """The definition in float64."""
    h = x.astype(np.float64) + residual
    code, scale = np.empty(h.shape), np.empty(len(h))
    for part in blocks_of_rows(h.shape):
        y = h[part] / np.sqrt(sum_products(h[part], h[part]) / N + EPS) * gamma
        top = np.abs(y).max(1)
        scale[part] = top / LEVELS
        code[part] = y * (LEVELS / np.where(top > 0, top, 1.0))[:, None]
    return {
        "h": Expected(h, np.abs(h)),
        "q": Expected(code, np.abs(code), ROUNDINGS, is_code=True),
        "scale": Expected(scale, scale, N + ROUNDINGS),
    }


def by_compile(torch: Any, x: Any, residual: Any, gamma: Any, N: int) -> tuple[Any, Any, Any]:
    """The definition, in float32 whatever the tensors are."""
    h = x.float() + residual
    y = torch.nn.functional.rms_norm(h, (N,), gamma.float(), EPS)
    top = y.abs().amax(1)
    return h, (y * (LEVELS / torch.where(top > 0, top, 1.0))[:, None]).round(), top / LEVELS
