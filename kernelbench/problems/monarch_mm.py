# SPDX-License-Identifier: Apache-2.0
"""A Monarch matrix times activations: two block-diagonal factors with a permutation between.

Of N = B P numbers a token's product takes 2 N (B + P) operations in place of 2 N^2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish, draw, draw_factors
from ..problem import Expected, Family, Inputs

PROBLEM = {
    "title": "Monarch product: two block-diagonal factors and permutations",
    "definition": "h[i,b,q] = sum over p of R[b,q,p] * x[i,b,p]; "
    "y[i,l,q] = sum over b of L[q,l,b] * h[i,b,q]",
    "source": "Monarch, arXiv 2204.00595",
    "headline": "up to twice as fast training of ViT and GPT-2, as reported, beside dense layers",
    "tags": ["dense", "contraction", "structured"],
    "is_row_wise": True,
    "axes": {
        "M": "tokens",
        "B": "blocks of R, and rows and columns of each block of L",
        "P": "rows and columns of each block of R, and blocks of L",
    },
    "inputs": {
        "x": "float32[M, B, P]: activations, B blocks a token",
        "R": "float32[B, P, P]: of each block rows q and columns p",
        "L": "float32[P, B, B]: of each position q in a block rows l and columns b",
    },
    "outputs": {"y": "float32[M, B, P]: block l at position q: the permutation is undone"},
    "flops": "2 * M * B * P * P + 2 * M * B * B * P",
    "workloads": {
        "realistic": {
            "2048x32x32": "2,048 tokens through a layer of BERT-large's width of 1024",
            "1024x24x32": "1,024 tokens of GPT-2's width of 768",
        },
        "tiny": {"tiny": {"M": 9, "B": 6, "P": 12}},
        "adversarial": {"33x7x65": "odd blocks and tails", "5x129x3": "many blocks, tiny ones"},
    },
    "families": "large nonfinite exact",
    "accuracy": "n = B + P, s = sum over b and p of |L[q,l,b] R[b,q,p] x[i,b,p]|. NaN and "
    "infinities are in x and L; zero times infinity is NaN.",
}
SHRUNK = np.float32(2.0**-40)
"""What L is multiplied with where numbers are LARGE: products of three would overflow."""


def values(family: Family, rng: np.random.Generator, M: int, B: int, P: int) -> Inputs:
    """Activations and both factors; each is constant along what is summed where it is constant."""
    x, r = draw_factors(family, (M * B, P), (B * P, P), rng, varies=(0, 0))
    left = draw(family, (P * B, B), rng, varies=0)
    if family is Family.LARGE:
        left *= SHRUNK
    blemish(family, x, rng)
    blemish(family, left, rng)
    return x.reshape(M, B, P), r.reshape(B, P, P), left.reshape(P, B, B)


def multiply_blocks(x: np.ndarray, R: np.ndarray, L: np.ndarray) -> np.ndarray:
    """Both products, as two of batches of matrices."""
    h = x.swapaxes(0, 1) @ R.swapaxes(1, 2)  # b, i, q
    y: np.ndarray = h.transpose(2, 1, 0) @ L.swapaxes(1, 2)  # q, i, l
    return np.ascontiguousarray(y.transpose(1, 2, 0))


def oracle(x: np.ndarray, R: np.ndarray, L: np.ndarray, B: int, P: int) -> Expected:
    """The definition in float64; the scale is that of the magnitudes."""
    factors = [array.astype(np.float64) for array in (x, R, L)]
    return Expected(multiply_blocks(*factors), multiply_blocks(*map(np.abs, factors)), float(B + P))


def by_compile(torch: Any, x: Any, R: Any, L: Any) -> Any:
    """Two products of batches of matrices, in float32 whatever the tensors are; the permutations
    are views."""
    h = torch.bmm(x.float().transpose(0, 1), R.float().transpose(1, 2))
    return torch.bmm(h.permute(2, 1, 0), L.float().transpose(1, 2)).permute(1, 2, 0)
