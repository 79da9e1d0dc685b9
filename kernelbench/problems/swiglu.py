# SPDX-License-Identifier: Apache-2.0
"""SwiGLU's activation: one half of each row through SiLU, times the other half.

An exponential of -g is wrong by u |g| for the rounding of its argument, which a small sigmoid
passes on whole and a large one hardly: the scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS, expect_by_rows
from ..families import blemish, draw, single_out
from ..problem import Expected, Family, Pair, Prepared

PROBLEM = {
    "title": "SwiGLU: SiLU of the gate, times the other half",
    "definition": "g = x[i,j]; y[i,j] = g / (1 + exp(-g)) * x[i,N+j]",
    "source": "GLU variants, arXiv 2002.05202; the feed-forward layers of Llama, arXiv 2302.13971",
    "tags": ["dense", "elementwise", "fused"],
    "is_row_wise": True,
    "axes": {"M": "tokens", "N": "columns of the output, half of those of the input"},
    "inputs": {"x": "float32[M, 2*N]: row-major; a row's gates, then its other half"},
    "outputs": {"y": "float32[M, N]: row-major"},
    "flops": "30 * M * N",  # exponential 22, sum 1, division 4, sign 1, two products
    "workloads": {
        "realistic": {"512x8192": "Llama 3.2 1B", "64x14336": "Llama 3.1 8B, 64 decodes"},
        "tiny": {"tiny": {"M": 32, "N": 100}},
        "adversarial": {"4099x33": "an odd tail", "1x100003": "one row of prime length"},
    },
    "families": "large nonfinite",
    "accuracy": "n = 16; with z the sigmoid of g, s = |r| (1 + |g| (1 - z)). NaN and +inf come out "
    "as the definition has them; an infinite gate is never negative.",
}
HIGHEST_TAIL, LOWEST_TAIL = -80.0, -800.0
"""Between them an exponential is denormal in float32, or is 0 there and not in float64: a large
factor makes numbers of these that no float32 kernel has."""


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> np.ndarray:
    """Gates and what they are multiplied with, each at a scale of its own.

    One gate of each row is positive: far below zero SiLU is nothing but an exponential's tail.
    NONFINITE has no gate of -inf: the definition gives NaN for it, other forms its limit.
    """
    gate = draw(family, (M, N), rng, varies=0, max_decades=1.0)
    other = draw(family, (M, N), rng, varies=0)
    single_out(gate, rng, lambda value, _: np.abs(value))
    gate[(gate < HIGHEST_TAIL) & (gate > LOWEST_TAIL)] = HIGHEST_TAIL
    blemish(family, gate, rng, (np.nan, np.inf))
    blemish(family, other, rng)
    return np.concatenate((gate, other), 1)


def oracle(x: np.ndarray, N: int) -> Expected:
    """The definition in float64."""

    def answer(gate: np.ndarray, other: np.ndarray) -> Pair:
        # Of |g| alone: nothing overflows.
        small = np.exp(-np.abs(gate))
        share = np.where(gate < 0, small, 1.0) / (1.0 + small)
        value = gate * share * other
        return value, np.abs(value) * (1.0 + np.abs(gate) * np.where(gate < 0, 1.0, small))

    return expect_by_rows(answer, ROUNDINGS, x[:, :N], x[:, N:])


def by_torch(torch: Any, x: Any, y: Any, N: int) -> Prepared:
    """Without a tensor between; halves as float32, which are rounded once."""
    if x.dtype != torch.float32:
        return lambda: y.copy_(by_compile(torch, x.float(), N))
    return lambda: torch.mul(torch.ops.aten.silu.out(x[:, :N], out=y), x[:, N:], out=y)


def by_compile(torch: Any, x: Any, N: int) -> Any:
    """The definition."""
    return torch.nn.functional.silu(x[:, :N]) * x[:, N:]
