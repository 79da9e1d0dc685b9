# SPDX-License-Identifier: Apache-2.0
"""A matrix in 4 bits times a vector in float16: the layer of a decoder that makes one token.

It is bound by the bytes of the codes. Decoded weights need not be rounded: codes less zero points
are whole numbers, and a group has one scale, which may wait until the group is summed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..coded import draw_codes
from ..dense import draw_rows
from ..problem import Expected, Family, Inputs, Prepared
from ..quantising import STEPS, decode_groups, draw_scales, falling_powers

PROBLEM = {
    "title": "Matrix-vector product with 4-bit weights (groups of 32, zero points)",
    "definition": "y[i] = sum over k of (q[i,k] - zeros[i,k/32]) * scales[i,k/32] * x[k], "
    "k from 0 to 64 H - 1",
    "source": "GPTQ, arXiv 2210.17323; AWQ, arXiv 2306.00978; llama.cpp's Q4_1",
    "tags": ["dense", "contraction", "quantised"],
    "is_row_wise": True,
    "axes": {
        "M": "rows of the weights, elements of y",
        "H": "pairs of groups in a row: it has 64 H weights",
    },
    "lengths": {"H": 512},
    "inputs": {
        "x": "float16[64*H]: activations",
        "q": "uint8[M, 32*H]: 64 H weights a row",
        "scales": "float16[M, 2*H]: one of each group of 32 weights",
        "zeros": "uint8[M, H]: zero points of the same groups",
    },
    "outputs": {"y": "float16[M]: rounded once"},
    "codes": {"q": "uint4", "zeros": "uint4"},
    "flops": "128*M*H",
    "workloads": {
        "realistic": {
            "4096x4096": {"M": 4096, "H": 64, "note": "a projection of a model of 7 billion"},
            "1024x4096": {"M": 1024, "H": 64, "note": "keys that several heads share"},
        },
        "tiny": {"tiny": {"M": 48, "H": 3}},
        "adversarial": {
            "1021x64": {"M": 1021, "H": 1, "note": "two groups a row, a prime number of rows"},
            "5x20480": {"M": 5, "H": 320, "note": "fewer rows than threads"},
        },
    },
    "families": "large nonfinite exact probe",
    "accuracy": "n = 64 H, s = sum over k of (q + zero) |scale x|: {zero points} {running sum}",
}
GROUP = 32


def values(family: Family, rng: np.random.Generator, M: int, H: int) -> Inputs:
    """Every code as often as another; scales far apart, a few of them NaN in NONFINITE."""
    x = draw_rows(family, (1, 64 * H), rng)[0]
    q, zeros = (draw_codes("uint4", family, (M, count * H), rng) for count in (32, 1))
    powers = falling_powers(4, 4 + STEPS, (M, 2 * H), rng)
    if family is Family.EXACT:
        powers = falling_powers(0, 4, (M, 2 * H), rng)
    return x, q, draw_scales(family, powers, rng), zeros


def oracle(x: np.ndarray, q: np.ndarray, scales: np.ndarray, zeros: np.ndarray) -> Expected:
    """Sums of groups, each times its scale, in float64."""
    groups, codes = x.reshape(-1, GROUP).astype(np.float64), q.reshape(*scales.shape, GROUP)
    factors = scales.astype(np.float64)
    found = np.einsum("mgk,gk->mg", codes, groups) - zeros * groups.sum(1)
    sizes = np.einsum("mgk,gk->mg", codes + zeros[..., None], np.abs(x).reshape(groups.shape))
    return Expected((found * factors).sum(1), (sizes * np.abs(factors)).sum(1), float(len(x)))


def by_torch(torch: Any, x: Any, q: Any, scales: Any, zeros: Any, y: Any) -> Prepared:
    """Weights in float32, and a product: what one writes first."""
    return lambda: y.copy_(decode_groups(torch, q, zeros, scales, GROUP).flatten(1) @ x.float())


def by_compile(torch: Any, x: Any, q: Any, scales: Any, zeros: Any) -> Any:
    """The same as one loop: each weight is used where it is decoded."""
    weights = decode_groups(torch, q, zeros, scales, GROUP)
    return (weights * x.float().view(-1, GROUP)).sum((1, 2))
