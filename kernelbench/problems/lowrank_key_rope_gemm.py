# SPDX-License-Identifier: Apache-2.0
"""Keys of chosen chunks made anew from a cache of low rank, and turned by their positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import multiply
from ..families import blemish, draw_factors, draw_turns, thin_columns
from ..problem import Expected, Family, Inputs

PROBLEM = {
    "title": "Keys of chosen chunks from a low-rank cache, with rotary positions",
    "definition": "t = 8 chunk[h,c] + i, z[d] = sum over r of u[t,r] sv[h,r,d]; "
    "k[h,c,i,p] = z[p] cos[t,p] - z[P+p] sin[t,p]; k[h,c,i,P+p] = z[P+p] cos[t,p] + z[p] sin[t,p]",
    "source": "ShadowKV, arXiv 2410.21465",
    "headline": "up to 3.04 times the throughput of full attention on an A100, as reported",
    "tags": ["dense", "contraction", "gather", "attention", "fused"],
    "axes": {
        "H": "heads of keys of a sequence, which share its u",
        "N": "chunks of the context, 8 tokens each",
        "C": "chunks that each head has chosen",
        "R": "rank",
        "P": "pairs of a head, half of its elements",
    },
    "inputs": {
        "u": "float32[8*N, R]: a row of each token",
        "sv": "float32[H, R, 2*P]: of each head; first halves of a pair, then second ones",
        "chunk": "int32[H, C]: which are chosen, from 0 to N - 1, in any order",
        "cos": "float32[8*N, P]: of each token's angles",
        "sin": "float32[8*N, P]: of the same angles",
    },
    "bound": ["chunk"],
    "outputs": {"k": "float32[H, C, 8, 2*P]: row-major"},
    "flops": "32 * H * C * R * P + 48 * H * C * P",
    "held": "8 * H * C * R",  # rows of u that a library gathers
    "workloads": {
        "realistic": {
            "8x4096x256x160x64": "Llama-3-8B: 2,048 of 32,768 tokens for each head, rank 160",
            "32x1024x64x160x48": "heads of 96 as of Phi-3-mini, 512 of 8,192 tokens",
        },
        "tiny": {"tiny": {"H": 2, "N": 9, "C": 4, "R": 24, "P": 12}},
        "adversarial": {"3x40x33x161x33": "odd pairs", "2x1500x1x513x5": "one chunk of many"},
    },
    "families": "large nonfinite exact",
    "accuracy": "n = R + 2, s = |cos| sum over r of |u sv| of the one half + |sin| of the other. "
    "{running sum} NaN and infinities are in u and sv, and come out as the definition has them.",
}


def values(
    family: Family, rng: np.random.Generator, H: int, N: int, C: int, R: int, P: int
) -> Inputs:
    """Chunks are another one each where there are as many; EXACT has cosines of {-1, 0, 1}."""
    u, sv = draw_factors(family, (8 * N, R), (R, H * 2 * P), rng, varies=(0, 1))
    thin_columns(family, u, rng)
    sv = np.ascontiguousarray(sv.reshape(R, H, 2 * P).swapaxes(0, 1))
    chunk = np.stack([rng.choice(N, C, replace=C > N) for _ in range(H)]).astype(np.int32)
    blemish(family, u, rng, places=np.unique(chunk) * 8 + rng.integers(8))
    blemish(family, sv.reshape(H * R, 2 * P), rng)
    return u, sv, chunk, *draw_turns(family, (8 * N, P), rng)


def oracle(
    u: np.ndarray, sv: np.ndarray, chunk: np.ndarray, cos: np.ndarray, sin: np.ndarray
) -> Expected:
    """The definition in float64, a head at a time; the scale is that of the magnitudes."""
    tokens = 8 * chunk.astype(np.int64)[..., None] + np.arange(8)
    value, scale = np.empty((2, *tokens.shape, sv.shape[2]))
    for h, own in enumerate(tokens):
        c, s = (np.tile(each[own].astype(np.float64), 2) for each in (cos, sin))
        s[..., : cos.shape[1]] *= -1
        products, sizes = multiply(u[own], sv[h])
        value[h] = products * c + np.roll(products, cos.shape[1], -1) * s
        scale[h] = sizes * np.abs(c) + np.roll(sizes, cos.shape[1], -1) * np.abs(s)
    return Expected(value, scale, u.shape[1] + 2.0)


def by_compile(torch: Any, u: Any, sv: Any, chunk: Any, cos: Any, sin: Any) -> Any:
    """Rows gathered, a product of each head, and its turn, in float32 whatever the tensors are."""
    rows, c, s = (each.float().unflatten(0, (-1, 8))[chunk] for each in (u, cos, sin))
    a, b = torch.matmul(rows.flatten(1, 2), sv.float()).unflatten(1, (-1, 8)).chunk(2, -1)
    return torch.cat((a * c - b * s, b * c + a * s), -1)
