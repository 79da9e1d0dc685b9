# SPDX-License-Identifier: Apache-2.0
"""C = x W^T with W in codes of 4 or 8 bits. Float32 holds each decoded weight, float16 does not."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..coded import CODECS
from ..dense import draw_rows
from ..problem import Expected, Family, Inputs
from ..quantising import STEPS, decode_groups, draw_scales, falling_powers

PROBLEM = {
    "title": "Matrix product with weights of 4 or 8 bits (groups of 64, zero points)",
    "definition": "C[i,j] = sum over k < 64 G of x[i,k] * (w[j,k] - zeros[j,k/64]) * scales[j,k/64]"
    "; w[j,k] is the byte q[j,k/64,k%64] where W = 64, and where W = 32 4 bits of the byte "
    "q[j,k/64,k%64/2], the low ones for an even k",
    "source": "Tilus, arXiv 2504.12984; GPTQ, arXiv 2210.17323; GLM-130B, arXiv 2210.02414",
    "tags": ["dense", "contraction", "quantised"],
    "is_row_wise": True,
    "axes": {
        "M": "rows of x and C",
        "N": "rows of the weights, columns of C",
        "G": "groups in a row of the weights: it has 64 G",
        "W": "bytes of a group: 32 (4 bits a weight) or 64 (8 bits)",
    },
    "lengths": {"G": 256, "W": [32, 64]},
    "inputs": {
        "x": "float16[M, 64*G]: activations, row-major",
        "q": "uint8[N, G, W]: weights in codes, from 0 on",
        "scales": "float16[N, G]: of each group",
        "zeros": "uint8[N, G]: zero points of the same groups",
    },
    "outputs": {"C": "float16[M, N]: row-major, rounded once"},
    "flops": "128 * M * N * G",
    "workloads": {
        "realistic": {
            "16x2048x2048w4": {"M": 16, "N": 2048, "G": 32, "W": 32, "note": "16 tokens, 4 bits"},
            "16x2048x2048w8": {"M": 16, "N": 2048, "G": 32, "W": 64, "note": "16 tokens, 8 bits"},
        },
        "tiny": {"tiny": {"M": 24, "N": 40, "G": 2, "W": 32}},
        "adversarial": {
            "33x65x192w4": {"M": 33, "N": 65, "G": 3, "W": 32},
            "1x257x1024w8": {"M": 1, "N": 257, "G": 16, "W": 64},
        },
    },
    "families": "large nonfinite exact probe",
    "accuracy": "n = 64 G, s = sum over k of |x scale| (w + zero): {zero points} {running sum}",
}
GROUP = 64


def values(family: Family, rng: np.random.Generator, M: int, N: int, G: int, W: int) -> Inputs:
    """Every code as often as another; scales far apart, a few of them NaN in NONFINITE."""
    x = draw_rows(family, (M, GROUP * G), rng)
    codes, steps = 256 if W == GROUP else 16, 4 if family is Family.EXACT else STEPS
    q = np.frombuffer(rng.bytes(N * G * W), np.uint8).reshape(N, G, W)
    zeros = rng.integers(0, codes, (N, G), np.uint8)
    powers = falling_powers(0, steps, (N, G), rng) / np.float32(codes)
    return x, q, draw_scales(family, powers, rng), zeros


def oracle(x: np.ndarray, q: np.ndarray, scales: np.ndarray, zeros: np.ndarray) -> Expected:
    """The product in float64; sizes in float32, whose rounding is harmless there."""
    codes = CODECS["uint4"].decode(q.astype(np.uint8)) if q.shape[-1] < GROUP else q
    factors, offsets = (each[..., None].astype(np.float32) for each in (scales, zeros))
    weights = (codes - offsets) * factors.astype(np.float64)
    sizes = (codes + offsets) * np.abs(factors)
    value = x.astype(np.float64) @ weights.reshape(len(q), -1).T
    scale = np.abs(x) @ sizes.reshape(len(q), -1).T
    return Expected(value, scale.astype(np.float64), float(x.shape[1]))


def by_compile(torch: Any, x: Any, q: Any, scales: Any, zeros: Any) -> Any:
    """Weights in float32, and a product."""
    return x.float() @ decode_groups(torch, q, zeros, scales, GROUP).flatten(1).t()
