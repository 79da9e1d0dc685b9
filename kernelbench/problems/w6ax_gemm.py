# SPDX-License-Identifier: Apache-2.0
"""y = x W^T of weights of 6 bits and activations of 6 or 8, with scales of groups for both.

Sums of a group are exact in int32. 6 bits fill no byte: four codes share three.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Expected, Family, Inputs
from ..quantising import STEPS, draw_narrow, draw_scales, falling_powers, pack_sixes, widen_codes

PROBLEM = {
    "title": "Linear layer of 6-bit weights, activations of 6 or 8 bits (groups of 128)",
    "definition": "y[m,n] = sum over g of sx[m,g] * sw[n,g] * (sum over k < 128 of x[m,g,k] * "
    "w[n,g,k])\n"
    "Of 6 bits, in two's complement: code 4i+j of a group is the bits 6j to 6j+5 of its bytes "
    "3i, 3i+1, 3i+2 as a number whose lowest byte is the first",
    "source": "FlexQ: Efficient Post-training INT6 Quantization for LLM Serving, arXiv 2508.04405",
    "headline": "1.39 times ABQ-LLM on layers of LLaMA-2-70B, as reported",
    "tags": ["dense", "contraction", "quantised"],
    "is_row_wise": True,
    "axes": {
        "M": "tokens",
        "N": "outputs of the layer",
        "G": "groups in a row: it has 128 G numbers",
        "B": "bytes of a group of x: 96 (6 bits a number) or 128 (8 bits)",
    },
    "lengths": {"G": 256, "B": (96, 128)},
    "inputs": {
        "x": "uint8[M, G, B]: activations, row-major",
        "w": "uint8[N, G, 96]: weights, row-major",
        "sx": "float16[M, G]: what a step of each group of activations is worth",
        "sw": "float16[N, G]: of weights",
    },
    "outputs": {"y": "float16[M, N]: row-major, rounded once"},
    "held": "128 * M * G + 128 * N * G",
    "flops": "256 * M * N * G",
    "workloads": {
        "realistic": {
            "4x2048x16x96": "W6A6, a projection of Llama-3.2-1B for 4 tokens",
            "8x2048x64x128": "W6A8, the last layer of its MLP for 8",
        },
        "tiny": {"tiny": {"M": 5, "N": 24, "G": 3, "B": 96}},
        "adversarial": {"33x65x1x128": "a single group", "1x997x17x96": "a single token"},
    },
    "families": "large nonfinite exact",
    "accuracy": "n = 128 G, s = sum over g of |sx sw| (sum over k of |x w|): sums of groups are "
    "exact in int32, and in float32. Scales may be NaN, never infinite.",
}
GROUP = 128


def values(family: Family, rng: np.random.Generator, M: int, N: int, G: int, B: int) -> Inputs:
    """Scales far apart: of EXACT powers of two, and activations of {-1, 0, 1}."""
    bits = 6 if B < GROUP else 8
    x, w = (draw_narrow(family, (n, G, GROUP), b, rng) for n, b in ((M, bits), (N, 6)))
    x = np.sign(x) if family is Family.EXACT else x
    first, end = (0, 3) if family is Family.EXACT else (6, 6 + STEPS)
    powers = (falling_powers(first, end, (rows, G), rng) for rows in (M, N))
    scales = (draw_scales(family, each, rng) for each in powers)
    return (pack_sixes(x) if B < GROUP else x.astype(np.uint8)), pack_sixes(w), *scales


def oracle(x: np.ndarray, w: np.ndarray, sx: np.ndarray, sw: np.ndarray) -> Expected:
    """Group by group: sums in float32, which is exact, and their scales in float64."""
    codes = (widen_codes(np, each.astype(np.uint8), GROUP) for each in (x, w))
    left, right = (each.astype(np.float32) for each in codes)
    value, scale = np.zeros((2, len(x), len(w)))
    for g in range(x.shape[1]):
        a, b = left[:, g], right[:, g]
        worth = np.outer(sx[:, g].astype(np.float64), sw[:, g])
        value += worth * (a @ b.T)
        scale += np.abs(worth) * (np.abs(a) @ np.abs(b).T)
    return Expected(value, scale, float(GROUP * x.shape[1]))


def by_compile(torch: Any, x: Any, w: Any, sx: Any, sw: Any) -> Any:
    """Both in float32, and a product."""
    sides = ((x, sx), (w, sw))
    a, b = (widen_codes(torch, c, GROUP).float() * s.float()[..., None] for c, s in sides)
    return a.flatten(1) @ b.flatten(1).t()
