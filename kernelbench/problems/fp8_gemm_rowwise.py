# SPDX-License-Identifier: Apache-2.0
"""C = A B^T in FP8, each row of A and of B with a scale: the linear layer of training in FP8.

Both are e4m3, and lie along the inner dimension. Sums are of float32: what a tensor core keeps of
an FP8 sum may be less, and then parts of it are to be added outside.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..coded import CODECS
from ..dense import multiply
from ..families import blemish, denormal_rows, draw_factors
from ..problem import Expected, Family, Inputs, Prepared
from ..quantising import scale_rows

PROBLEM = {
    "title": "FP8 matrix product with a scale for each row",
    "definition": "C[i,j] = scale_a[i] * scale_b[j] * sum over k of A[i,k] * B[j,k]",
    "source": "TorchTitan, arXiv 2410.06511; FP8 formats, arXiv 2209.05433",
    "tags": ["dense", "contraction", "quantised"],
    "is_row_wise": True,
    "axes": {"M": "rows of A and C", "N": "rows of B, columns of C", "K": "columns of A and B"},
    "inputs": {
        "A": "uint8[M, K]: row-major",
        "B": "uint8[N, K]: row-major",
        "scale_a": "float32[M]: of rows of A",
        "scale_b": "float32[N]: of rows of B",
    },
    "outputs": {"C": "bfloat16[M, N]: row-major, rounded once"},
    "codes": {"A": "float8_e4m3fn", "B": "float8_e4m3fn"},
    "flops": "2 * M * N * K",
    "workloads": {
        "realistic": {
            "256x1024x1024": "a projection, 256 tokens",
            "16x2048x2048": "a few tokens: bound by the weights",
        },
        "tiny": {"tiny": {"M": 32, "N": 48, "K": 64}},
        "adversarial": {
            "65x33x257": "one more than tile sizes, a prime depth",
            "1x1000x2048": "a single row",
        },
    },
    "families": "denormal large nonfinite exact",
    "accuracy": "n = K, s = scale_a scale_b times the sum over k of |A B|. {running sum} A NaN "
    "makes its row of C NaN. In DENORMAL some rows of A have denormal codes alone.",
}


def values(family: Family, rng: np.random.Generator, M: int, N: int, K: int) -> Inputs:
    """Factors whose rows are scaled to the largest code each; integers as they are in EXACT."""
    usual = Family.NORMAL if family is Family.DENORMAL else family
    drawn = draw_factors(usual, (M, K), (N, K), rng, varies=(0, 0))
    (a, scale_a), (b, scale_b) = (scale_rows(family, x, "float8_e4m3fn", rng) for x in drawn)
    blemish(family, a, rng, (np.nan,))
    a, b = (CODECS["float8_e4m3fn"].encode(rows) for rows in (a, b))
    if family is Family.DENORMAL:
        few = denormal_rows(M, rng)
        a[few] = rng.integers(1, 8, a[few].shape, np.uint8) | (a[few] & 0x80)
    return a, b, scale_a, scale_b


def oracle(A: np.ndarray, B: np.ndarray, scale_a: np.ndarray, scale_b: np.ndarray) -> Expected:
    """The product in float64; the scale is |A||B|."""
    factors = np.outer(scale_a.astype(np.float64), scale_b.astype(np.float64))
    value, size = multiply(A, B.T)
    return Expected(value * factors, size * factors, float(A.shape[1]))


def by_torch(torch: Any, A: Any, B: Any, scale_a: Any, scale_b: Any, C: Any) -> Prepared:
    """torch's product of FP8 on a GPU, where its sizes allow it; else float32 factors."""
    a, b = (codes.view(torch.float8_e4m3fn) for codes in (A, B))
    if A.is_cuda and A.shape[1] % 16 == 0 and B.shape[0] % 16 == 0:
        scales = {"scale_a": scale_a[:, None], "scale_b": scale_b[None, :]}
        return lambda: C.copy_(torch._scaled_mm(a, b.t(), **scales, out_dtype=C.dtype))
    return lambda: C.copy_((a.float() @ b.float().t()).mul_(scale_a[:, None]).mul_(scale_b))


def by_compile(torch: Any, A: Any, B: Any, scale_a: Any, scale_b: Any) -> Any:
    """Float32 factors; the scales go into what follows the product."""
    a, b = (codes.view(torch.float8_e4m3fn).float() for codes in (A, B))
    return (a @ b.t()) * scale_a[:, None] * scale_b
