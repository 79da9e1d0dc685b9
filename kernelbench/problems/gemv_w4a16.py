# SPDX-License-Identifier: Apache-2.0
"""A matrix in 4 bits times a vector in float16: the layer of a decoder that makes one token.

It is bound by the bytes of the codes. Decoded weights need not be rounded: codes less zero points
are whole numbers, and a group has one scale, which may wait until the group is summed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..coded import draw_codes
from ..families import blemish, draw, full_mantissa, probe_rows
from ..problem import Expected, Family, Prepared
from ..quantising import decode_groups, split_nibbles

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
    "accuracy": "n = 64 H, s = sum over k of (q + zero) |scale x|: a sum of q x less zero times "
    "the sum of x will do. Decoded weights that are rounded to float16 miss it. {running sum}",
}
GROUP = 32
STEPS = 8
"""Scales differ by powers of two up to this one."""


def values(family: Family, rng: np.random.Generator, M: int, H: int) -> tuple[np.ndarray, ...]:
    """Every code as often as another; scales far apart, a few of them NaN in NONFINITE."""
    is_probe, length = family is Family.PROBE, 64 * H
    x = probe_rows((1, length), rng)[0] if is_probe else draw(family, (length,), rng)
    q = draw_codes("uint4", family, (M, 32 * H), rng)
    zeros = draw_codes("uint4", family, (M, H), rng)
    scales = np.exp2(-rng.integers(4, 4 + STEPS, (M, 2 * H)).astype(np.float32))
    if family is Family.EXACT:
        scales = np.exp2(-rng.integers(0, 4, (M, 2 * H)).astype(np.float32))
    else:
        scales *= full_mantissa((M, 2 * H), rng)
    blemish(family, scales, rng, (np.nan,))
    return x, q, scales, zeros


def oracle(
    x: np.ndarray, q: np.ndarray, scales: np.ndarray, zeros: np.ndarray, M: int, H: int
) -> Expected:
    """Sums of groups, each times its scale, in float64."""
    groups, codes = x.reshape(2 * H, GROUP).astype(np.float64), q.reshape(M, 2 * H, GROUP)
    factors = scales.astype(np.float64)
    found = np.einsum("mgk,gk->mg", codes, groups) - zeros * groups.sum(1)
    sizes = np.einsum("mgk,gk->mg", codes + zeros[..., None], np.abs(x).reshape(groups.shape))
    return Expected((found * factors).sum(1), (sizes * np.abs(factors)).sum(1), 64.0 * H)


def by_torch(
    torch: Any, x: Any, q: Any, scales: Any, zeros: Any, y: Any, M: int, H: int
) -> Prepared:
    """Weights in float32, and a product: what one writes first."""
    return lambda: y.copy_(_decode(torch, q, scales, zeros, M, H).view(M, 64 * H) @ x.float())


def by_compile(torch: Any, x: Any, q: Any, scales: Any, zeros: Any, M: int, H: int) -> Any:
    """The same as one loop: each weight is used where it is decoded."""
    weights = _decode(torch, q, scales, zeros, M, H)
    return (weights * x.float().view(2 * H, GROUP)).sum((1, 2))


def _decode(torch: Any, q: Any, scales: Any, zeros: Any, M: int, H: int) -> Any:
    codes = split_nibbles(torch, q).view(M, 2 * H, GROUP)
    return decode_groups(codes, split_nibbles(torch, zeros), scales)
