# SPDX-License-Identifier: Apache-2.0
"""Mamba's short convolution: each channel by itself, four steps that look back, then SiLU."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS
from ..families import blemish, draw
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "Causal depthwise convolution of width 4, then SiLU",
    "definition": "p[i,c,t] = bias[c] + sum over k < 4 of w[c,k] * x[i,c,t+k-3], x 0 before its "
    "first step; y = p / (1 + exp(-p))",
    "source": "Mamba, arXiv 2312.00752; Mamba-2, arXiv 2405.21060 (width 4, channels first)",
    "tags": ["dense", "convolution"],
    "is_row_wise": True,
    "axes": {"M": "sequences", "C": "channels", "L": "steps of a sequence"},
    "inputs": {"x": "float32[M, C, L]", "w": "float32[C, 4]", "bias": "float32[C]"},
    "outputs": {"y": "float32[M, C, L]: as x"},
    "flops": "37 * M * C * L",  # products and sums 8, exponential 22, sum 1, division 4, sign, bias
    "workloads": {
        "realistic": {
            "1x5376x1024": "Mamba-2 2.7B: x, B and C of one prompt",
            "8x1792x384": "Mamba-2 130M, eight prompts",
        },
        "tiny": {"tiny": {"M": 2, "C": 12, "L": 100}},
        "adversarial": {"3x1021x37": "odd lengths", "1x3x99991": "one long prompt"},
    },
    "families": "large nonfinite",
    "accuracy": "n = 4 + 16, s = (1 + |q|) e^q (|bias| + sum over k of |w x|), q the smaller of p "
    "and 0. p lies between -30 and 30. A NaN in x or w makes those answers NaN that it is a term "
    "of, and no other; infinities are never drawn.",
}
MOST = 20.0
"""What a sum of the products of a channel has at most, so that no exponential is denormal."""


def values(family: Family, rng: np.random.Generator, M: int, C: int, L: int) -> Inputs:
    """Taps are so small that the sums of a channel stay below MOST; LARGE is near 1000."""
    drawn = Family.NORMAL if family is Family.LARGE else family
    x = draw(drawn, (M, C, L), rng, varies=1, max_decades=1.0)
    x *= np.float32(1 if drawn is family else 1000 / np.abs(x).max())
    w = draw(drawn, (C, 4), rng, varies=0, max_decades=0.5)
    bias = draw(Family.NORMAL, (C,), rng, max_decades=0.3).clip(-8.0, 8.0)
    most = np.abs(x).max((0, 2)) * np.abs(w).sum(1)
    w *= (MOST / np.maximum(most, MOST))[:, None].astype(np.float32)
    blemish(family, x.reshape(M * C, L), rng, (np.nan,))
    return x, w, bias


def oracle(x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> Expected:
    """The definition in float64."""

    def add_up(x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> np.ndarray:
        p: np.ndarray = x * w[:, 3:]
        for back in (1, 2, 3):
            p[:, :, back:] += x[:, :, :-back] * w[:, 3 - back, None]
        p += bias[:, None]
        return p

    wide = [array.astype(np.float64) for array in (x, w, bias)]
    p, size = add_up(*wide), add_up(*map(np.abs, wide))
    low = np.minimum(p, 0.0)
    return Expected(p / (1.0 + np.exp(-p)), size * (1.0 - low) * np.exp(low), 4 + ROUNDINGS)


def by_torch(torch: Any, x: Any, w: Any, bias: Any, y: Any, C: int, L: int) -> Prepared:
    """oneDNN's depthwise convolution, cut behind the last step; halves as float32."""
    if y.dtype != torch.float32:
        return lambda: y.copy_(by_compile(torch, x, w, bias, L))
    convolve, silu, taps = torch.nn.functional.conv1d, torch.ops.aten.silu.out, w[:, None]
    return lambda: silu(convolve(x, taps, bias, padding=3, groups=C)[:, :, :L], out=y)


def by_compile(torch: Any, x: Any, w: Any, bias: Any, L: int) -> Any:
    """The definition, in float32 whatever the tensors are."""
    x, w = torch.nn.functional.pad(x.float(), (3, 0)), w.float()
    p = sum(x[:, :, k : k + L] * w[:, k, None] for k in range(4))
    return torch.nn.functional.silu(p + bias.float()[:, None])
