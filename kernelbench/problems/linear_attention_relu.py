# SPDX-License-Identifier: Apache-2.0
"""Linear attention with relu features: a matrix of a head's size in place of all pairs' scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import LONG, draw, is_thinned
from ..problem import Expected, Family, Inputs

PROBLEM = {
    "title": "Linear attention with relu features, in both directions",
    "definition": "o[h,i,e] = sum over d of a[i,d] S[d,e] / (sum over d of a[i,d] z[d] + 1e-6), "
    "a = relu(q[h]), b = relu(k[h]), S[d,e] = sum over j of b[j,d] v[h,j,e], "
    "z[d] = sum over j of b[j,d]",
    "source": "SANA, arXiv 2410.10629; SANA-Video, arXiv 2509.24695",
    "headline": "SANA-Video: 16 times less latency than models of its size, as reported",
    "tags": ["dense", "attention", "contraction"],
    "axes": {"H": "heads of all images", "N": "tokens of an image", "D": "elements of a head"},
    "lengths": {"D": 256},
    "inputs": {
        "q": "float32[H, N, D]: queries",
        "k": "float32[H, N, D]: keys",
        "v": "float32[H, N, D]: values",
    },
    "outputs": {"o": "float32[H, N, D]: row-major"},
    "flops": "4 * H * N * D * D",
    "held": "H * D * D",
    "workloads": {
        "realistic": {
            "36x1024x32": {"H": 36, "N": 1024, "D": 32, "note": "SANA-0.6B at 1024 x 1024"},
            "20x1024x112": {"H": 20, "N": 1024, "D": 112, "note": "SANA-Video, fewer tokens"},
        },
        "tiny": {"tiny": {"H": 2, "N": 40, "D": 16}},
        "adversarial": {
            "7x257x33": {"H": 7, "N": 257, "D": 33, "note": "an odd width"},
            "1x8191x70": {"H": 1, "N": 8191, "D": 70, "note": "one head of many tokens"},
        },
    },
    "families": "large -alternating",  # of which next to nothing is left
    "accuracy": "n = N + D, s = 2 sum over d and j of a b |v| / (sum over d of a z + 1e-6): "
    "{running sum} Of some queries no element is positive, of others the divisor is near 1e-6. "
    "LARGE has keys and values that a state in 16 bits cannot hold. All numbers are finite.",
}
EPS = 1e-6


def values(family: Family, rng: np.random.Generator, H: int, N: int, D: int) -> Inputs:
    """Of long sums most terms are 0; one query in 16 has no feature, one in 16 small ones."""
    shape = (H, N, D)
    q = draw(Family.NORMAL if family is Family.LARGE else family, shape, rng, varies=2)
    k, v = (draw(family, shape, rng, varies=2) for _ in "kv")
    q, k = (each if each.mean() >= 0 else -each for each in (q, k))  # else no feature may be left
    if family is not Family.NORMAL and N > LONG:
        k[:, is_thinned(np.arange(N), N, (N,), rng)] = 0
    turn = rng.permutation(H * N).reshape(H, N) % 16 if H * N > 16 else np.full((H, N), 2)
    q[turn == 0] *= -np.sign(q[turn == 0])
    divisors = np.einsum("hnd,hd->hn", np.maximum(q, 0), np.maximum(k, 0).sum(1), dtype=np.float64)
    small = rng.uniform(0.5, 2.0, shape[:2]) * EPS / np.where(divisors > 0, divisors, 1.0)
    q[turn == 1] *= small[turn == 1, None].astype(np.float32)
    return q, k, v


def oracle(q: np.ndarray, k: np.ndarray, v: np.ndarray, N: int, D: int) -> Expected:
    """The definition in float64, a head at a time."""
    value, scale = np.empty(q.shape), np.empty(q.shape)
    for h in range(len(q)):
        a, b, own = (each[h].astype(np.float64) for each in (q, k, v))
        a, b = np.maximum(a, 0), np.maximum(b, 0)
        divisor = (a @ b.sum(0) + EPS)[:, None]
        value[h], scale[h] = a @ (b.T @ own) / divisor, 2 * (a @ (b.T @ np.abs(own))) / divisor
    return Expected(value, scale, float(N + D))


def by_compile(q: Any, k: Any, v: Any) -> Any:
    """The definition; halves as float32, which are rounded once."""
    a, b = q.float().relu(), k.float().relu()
    return a @ (b.mT @ v.float()) / (a @ b.sum(1)[..., None] + EPS)
