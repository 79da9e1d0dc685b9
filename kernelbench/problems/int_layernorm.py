# SPDX-License-Identifier: Apache-2.0
"""I-LayerNorm, I-ViT's layer normalisation of integers, whose root is ten of Newton's steps.

The steps are part of the definition: they begin at 2^16, and are not done where a variance is
small. A root of a library is another number there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import draw_places
from ..integers import LARGEST, draw_whole, expect_whole
from ..problem import Expected, Family, Pair

PROBLEM = {
    "title": "Integer layer normalisation by Newton's steps",
    "definition": "mean = sum_k x[i,k] / N, rounded to nearest even; d[j] = x[i,j] - mean\n"
    "v = sum_k d[k]^2; s = 2^16, then ten times s = floor((s + floor(v / s)) / 2)\n"
    "y[i,j] = floor(d[j] floor((2^31-1) / s) / 2) + bias[j]",
    "source": "I-ViT, arXiv 2207.01405",
    "headline": "3.72 to 4.11 times a float model, as reported: DeiT, Swin on an RTX 2080 Ti",
    "tags": ["dense", "normalisation", "quantised"],
    "is_row_wise": True,
    "axes": {"M": "tokens", "N": "elements of a token"},
    "inputs": {
        "x": "int32[M, N]: row-major, within 20 bits: -2^19 to 2^19 - 1",
        "bias": "int32[N]: within 31 bits: -2^30 to 2^30 - 1",
    },
    "outputs": {"y": "int32[M, N]: 2^30 / sqrt(N) is worth 1"},
    "flops": "8 * M * N",  # sum, difference, square and sum 2, product, shift, bias
    "workloads": {
        "realistic": {"3152x384": "DeiT-S, 16 images", "12544x96": "Swin-T, first stage"},
        "tiny": {"tiny": {"M": 48, "N": 90}},
        "adversarial": {"4099x33": "short rows, an odd tail", "3x65537": "s is beyond 2^16"},
    },
    "families": "large",
    "accuracy": "Bit for bit. Within those bounds sums and v need 64 bits, and s may; d times "
    "floor((2^31-1) / s) never does, since |d| <= floor(sqrt(v)) <= s; s is 64 or more. A mean "
    "that lies between two numbers goes to the even one. Shifts to the right round down.",
}
BIAS = 1 << 26


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Pair:
    """Numbers of 16 bits, of spreads far apart and away from 0: of many rows the steps are not
    done. LARGE ones are near the largest, of one sign or of both."""
    if family is Family.LARGE:
        x = rng.integers(24_000, 32_768, (M, N)) * rng.choice((-1, 1), (M, 1))
        x[rng.random((M, N)) < 0.5 * (rng.random((M, 1)) < 0.5)] *= -1
    else:
        x = draw_whole(family, (M, N), rng, 1 << 14)
        spread = np.exp2(rng.uniform(0, 13, (M, 1))) if family is not Family.CONSTANT else 1
        x = (x / spread).astype(np.int64) + rng.integers(-16_000, 16_000, (M, 1))
    if family is Family.CONSTANT:
        x[np.arange(M), draw_places(np.full(M, N), rng)] += rng.integers(1, 2000, M)
    return x.astype(np.int32), rng.integers(-BIAS, BIAS, N).astype(np.int32)


def oracle(x: np.ndarray, bias: np.ndarray, N: int) -> Expected:
    """The definition in int64; a quotient in float64 that lies between two numbers is exact."""
    numbers = x.astype(np.int64)
    d = numbers - np.rint(numbers.sum(1, keepdims=True) / N).astype(np.int64)
    v, s = (d * d).sum(1, keepdims=True), np.int64(1 << 16)
    for _ in range(10):
        s = (s + v // s) >> 1
    return expect_whole((d * (LARGEST // s) >> 1) + bias.astype(np.int64))


def by_compile(torch: Any, x: Any, bias: Any, N: int) -> Any:
    """The definition; sums in int64, the rest in int32."""
    d = x - torch.round(x.sum(1, keepdim=True).double() / N).int()
    v = (d.long() * d).sum(1, keepdim=True)
    s = torch.full_like(v, 1 << 16)
    for _ in range(10):
        s = (s + v // s) >> 1
    return (d * (LARGEST // s).int() >> 1) + bias
