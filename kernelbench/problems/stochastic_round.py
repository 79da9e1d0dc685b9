# SPDX-License-Identifier: Apache-2.0
"""float32 to bfloat16 by stochastic rounding, as weights and gradients of training are stored.

A right answer is not one array: it is held to by its distribution (Expected.streams).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish, draw
from ..problem import Expected, Family, Pair

PROBLEM = {
    "title": "Stochastic rounding to bfloat16",
    "definition": "y[i,j] = one of the two bfloat16 next to x[i,j], the upper one with probability "
    "(x - lower) / (upper - lower), exactly x where x is one\n"
    "random bits follow from seed[i] and j alone, in a way that a kernel chooses; of other rows "
    "and columns they are independent",
    "source": "Stochastic rounding, Royal Society Open Science 9 (2022) 211631; Revisiting "
    "BFloat16 Training, arXiv 2010.06192",
    "tags": ["dense", "elementwise", "quantised"],
    "is_row_wise": True,
    "axes": {"M": "rows", "N": "elements of a row"},
    "inputs": {
        "x": "float32[M, N]: row-major",
        "seed": "int32[M]: of each row's random bits; rows may have the same",
    },
    "outputs": {"y": "bfloat16[M, N]: row-major"},
    "flops": "8 * M * N",  # of an element: its bits some 6 operations of integers, addition, cut
    "workloads": {
        "realistic": ["1024x4096", "8192x768"],
        "tiny": {"tiny": {"M": 64, "N": 200}},
        "adversarial": ["4099x33", "3x16383"],
    },
    "families": "denormal large nonfinite",
    "accuracy": "Each element is one of the two neighbours; how often it is the upper one is held "
    "to the sum of probabilities, of elements with like fractions, rows, columns and pairs. The "
    "lower 16 bits of x decide, so 16 random bits are needed: in OUTLIERS elements go to the "
    "farther one once in 5,000 times. Rows with equal x and seed are equal. NaN and infinities "
    "stay; infinity is the upper neighbour of what is above the largest bfloat16.",
}
COPIED = 8
"""One row in so many is another one's copy, seed and all."""


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Pair:
    """In OUTLIERS elements lie just beyond a bfloat16; that of CONSTANT is none."""
    x = draw(family, (M, N), rng)
    if family is Family.OUTLIERS:
        off = rng.integers(8, 16, x.shape, np.int32)
        x = ((x.view(np.int32) & -65536) + off).view(np.float32)
    if family is Family.CONSTANT:
        x *= np.float32(1 + 2.0**-8 * rng.uniform(0.1, 0.4))
    blemish(family, x, rng)
    seed = rng.integers(-(2**31), 2**31, M, dtype=np.int64).astype(np.int32)
    for copy in rng.permutation(M)[: M // COPIED]:
        other = int(rng.integers(M))
        x[copy], seed[copy] = x[other], seed[other]
    return x, seed


def oracle(x: np.ndarray, seed: np.ndarray) -> Expected:
    """What is rounded, and whose bits are the same."""
    return Expected(x.astype(np.float64), np.zeros((1, 1)), streams=seed)


def by_compile(torch: Any, x: Any, seed: Any, N: int) -> Any:
    """16 bits of a hash are added below what is kept (splitmix64's finaliser)."""
    h = (seed.long()[:, None] << 32) + torch.arange(N, device=x.device)
    h = (h ^ (h >> 30 & 0x3FFFFFFFF)) * -4658895280553007687
    h = (h ^ (h >> 27 & 0x1FFFFFFFFF)) * -7723592293110705685
    bits = x.view(torch.int32)
    above = (bits + (h >> 40 & 0xFFFF).int()) & -65536
    return torch.where(x.isfinite(), above, bits).view(torch.float32)
