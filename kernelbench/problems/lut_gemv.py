# SPDX-License-Identifier: Apache-2.0
"""Weights of one to four bits, in planes, times a few vectors: a decoder's layer on a CPU.

A byte of a plane chooses one of the 256 sums of eight activations with signs. All rows choose among
the same: who works them out once reads a plane's byte, looks up and adds, and multiplies nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import draw_rows
from ..integers import draw_planes, of_planes, to_bipolar
from ..problem import Expected, Family, Inputs
from ..quantising import draw_scales, falling_powers

PROBLEM = {
    "title": "Matrix-vector products with weights of 1 to 4 bits, in planes (groups of 128)",
    "definition": "y[m,n] = sum over g of scales[m,g] * (sum over k < 128 of x[n,128g+k] * (sum "
    "over i < P of 2^i * sign(w[m,i], 128g+k)))\n"
    "sign(b, k) = 1 where bit k % 8 (the lowest is 0) of byte b[k / 8] is 1, else -1",
    "source": "SAIL: SRAM-Accelerated LLM Inference System with Lookup-Table-based GEMV, arXiv "
    "2509.25853",
    "headline": "up to 10.7 times an ARM Neoverse-N1, simulated SRAM looking up, as reported",
    "tags": ["dense", "contraction", "quantised", "low-bit"],
    "is_row_wise": True,
    "axes": {"M": "rows of weights", "N": "vectors", "G": "groups in a row", "P": "bits of w"},
    "lengths": {"N": (1, 2, 3, 4, 5, 6, 7, 8), "G": 256, "P": (1, 2, 3, 4)},
    "inputs": {
        "x": "float32[N, 128*G]: activations, a vector behind the other",
        "w": "uint8[M, P, 16*G]: planes of each row of weights, the lowest bit first",
        "scales": "float32[M, G]: of each group",
    },
    "outputs": {"y": "float32[M, N]: row-major"},
    "held": "128 * M * G",
    "flops": "256 * M * N * G",
    "workloads": {
        "realistic": {
            "4096x1x32x2": "2 bits, a projection of Llama-2-7B for one token",
            "4096x8x32x4": "4 bits, the same for a batch of 8",
        },
        "tiny": {"tiny": {"M": 24, "N": 3, "G": 2, "P": 3}},
        "adversarial": {"1021x5x1x4": "a single group", "3x1x256x1": "fewer rows than threads"},
    },
    "families": "large nonfinite exact",
    "accuracy": "n = 128 G, s = (2^P - 1) sum over g of |scale| (sum over k of |x|): the terms of "
    "all planes. {running sum} Scales may be NaN, never infinite.",
}
GROUP = 128


def values(family: Family, rng: np.random.Generator, M: int, N: int, G: int, P: int) -> Inputs:
    """Scales far apart, of EXACT powers of two."""
    x = draw_rows(family, (N, GROUP * G), rng)
    powers = falling_powers(0, 4, (M, G), rng)
    return x, draw_planes(family, (M, P, GROUP * G), rng), draw_scales(family, powers, rng)


def oracle(x: np.ndarray, w: np.ndarray, scales: np.ndarray, P: int) -> Expected:
    """Whole numbers times scales, and a product; in scales magnitudes of groups."""
    factors, groups = scales.astype(np.float64), (*scales.shape, GROUP)
    weights = of_planes(w).reshape(groups) * factors[..., None]
    sizes = np.abs(x).reshape(len(x), -1, GROUP).sum(2, dtype=np.float64)
    scale = np.abs(factors) @ sizes.T * (2.0**P - 1)
    value = weights.reshape(len(w), -1) @ x.T.astype(np.float64)
    return Expected(value, scale, float(x.shape[1]))


def by_compile(torch: Any, x: Any, w: Any, scales: Any) -> Any:
    """Weights in float32, and a product."""
    weights = to_bipolar(torch, w).view(*scales.shape, GROUP) * scales.float()[..., None]
    return weights.flatten(1) @ x.float().t()
