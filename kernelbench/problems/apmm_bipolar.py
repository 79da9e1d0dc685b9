# SPDX-License-Identifier: Apache-2.0
"""A product of numbers of one to four bits, whose bits mean -1 and 1: whole planes of them at once.

Such a number is odd and has no zero, so that no sign bit is an exception: every pair of planes is
the same product of signs, K less twice the bits that differ.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..integers import draw_planes, expect_whole, of_planes, to_bipolar
from ..problem import Expected, Family, Pair, Prepared
from ..torch_calls import turn

PROBLEM = {
    "title": "Product of bipolar integers of arbitrary precision, by bit planes",
    "definition": "y[m,n] = sum over i < P, j < Q of 2^(i+j) * (sum over k of sign(w[m,i], k) * "
    "sign(x[n,j], k)), k from 0 to 64 G - 1\n"
    "sign(b, k) = 1 where bit k % 8 (the lowest is 0) of byte b[k / 8] is 1, else -1",
    "source": "Efficient Arbitrary Precision Acceleration for LLMs on GPU Tensor Cores, arXiv "
    "2409.17870",
    "headline": "up to 2.4 times CUTLASS for products, 6.7 times for inference, as reported",
    "tags": ["dense", "contraction", "quantised"],
    "is_row_wise": True,
    "axes": {"M": "rows", "N": "tokens", "G": "64 bits of K", "P": "bits of w", "Q": "bits of x"},
    "lengths": {"P": (1, 2, 3, 4), "Q": (1, 2, 3, 4)},
    "inputs": {
        "w": "uint8[M, P, 8*G]: planes of each row of weights, the lowest bit first",
        "x": "uint8[N, Q, 8*G]: planes of each token",
    },
    "outputs": {"y": "int32[M, N]: row-major"},
    "held": "64 * M * G + 64 * N * G",
    "flops": "128 * M * N * G",
    "workloads": {
        "realistic": {
            "4096x16x64x2x2": "W2A2, a projection of Llama-2-7B for 16 tokens",
            "1024x64x64x1x4": "W1A4, 64 tokens",
        },
        "tiny": {"tiny": {"M": 24, "N": 10, "G": 3, "P": 2, "Q": 3}},
        "adversarial": {"129x65x9x3x1": "more than tiles", "1x1000x17x4x4": "a single row"},
    },
    "families": "large",
    "accuracy": "Bit for bit: sums are exact in int32, 225 K at most.",
}


def values(
    family: Family, rng: np.random.Generator, M: int, N: int, G: int, P: int, Q: int
) -> Pair:
    """Planes of both."""
    return draw_planes(family, (M, P, 64 * G), rng), draw_planes(family, (N, Q, 64 * G), rng)


def oracle(w: np.ndarray, x: np.ndarray) -> Expected:
    """Whole numbers of both, and their product."""
    return expect_whole(of_planes(w) @ of_planes(x).T)


def by_floats(torch: Any, w: Any, x: Any, y: Any) -> Prepared:
    """Both as floats, which sums below 2^24 leave exact."""
    wide = torch.float32 if 225 * 8 * w.shape[2] < 1 << 24 else torch.float64
    return lambda: y.copy_(to_bipolar(torch, w).to(wide) @ to_bipolar(torch, x).to(wide).t())


def by_compile(torch: Any, w: Any, x: Any) -> Any:
    """Both as int8, and their product."""
    return torch._int_mm(to_bipolar(torch, w), turn(to_bipolar(torch, x)))
