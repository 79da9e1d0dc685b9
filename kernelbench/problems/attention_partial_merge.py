# SPDX-License-Identifier: Apache-2.0
"""Attention that was computed in parts, over shares of a context, joined to one answer."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..attending import widen_weights
from ..families import draw, noise
from ..problem import Expected, Family, Inputs

PROBLEM = {
    "title": "Partial attentions joined by their maxima and sums",
    "definition": "y[i,d] = sum over p of w[p,i] o[p,i,d] / sum over p of w[p,i], w[p,i] = "
    "size[p,i] exp(m[p,i] - max of m[q,i] over q with size[q,i] > 0); a part of size 0 is empty, "
    "whatever its m and o, and y is 0 where all are",
    "source": "Infinite-LLM (DistAttention), arXiv 2401.02669; Flash-Decoding",
    "tags": ["dense", "attention", "reduction"],
    "axes": {"P": "parts of the context", "M": "heads of all queries", "D": "elements of a head"},
    "inputs": {
        "o": "float32[P, M, D]: answers of the parts, each divided by its size",
        "m": "float32[P, M]: the largest logit of each",
        "size": "float32[P, M]: sums of exp(logit - m), 0 of an empty part",
    },
    "lengths": {"P": 4096},
    "outputs": {"y": "float32[M, D]: the answer of the whole context"},
    "flops": "2 * P * M * D",
    "workloads": {
        "realistic": {
            "16x2048x128": {"P": 16, "M": 2048, "D": 128, "note": "64 queries of 32 heads"},
            "64x256x128": {"P": 64, "M": 256, "D": 128, "note": "8 queries, many devices"},
        },
        "tiny": {"tiny": {"P": 4, "M": 40, "D": 64}},
        "adversarial": {
            "3x4099x33": {"P": 3, "M": 4099, "D": 33, "note": "an odd width"},
            "1021x3x80": {"P": 1021, "M": 3, "D": 80, "note": "many parts, few heads"},
        },
    },
    "families": "-constant large",
    "nrmse": 2e-5,
    "accuracy": "n = P, s as that of a softmax-weighted sum: sum over p of w |o| / sum of w times "
    "2 + (8 + r + R + L) / sqrt(n), r = max - m + |m|, R its weighted mean, L what a plain sum of "
    "tiny weights may lose. An empty part may have the largest m. All numbers are finite.",
}


def values(family: Family, rng: np.random.Generator, P: int, M: int, D: int) -> Inputs:
    """Maxima few units apart; of LARGE hundreds in half of the rows, in a quarter one above all: in
    8 bits it is over 710 off; e^710 overflows. A row in 32 has only empty parts, others 15 %."""
    is_large = family is Family.LARGE
    o = draw(Family.NORMAL if is_large else family, (P, M, D), rng)
    kind = rng.random(M) + (not is_large)
    apart = np.where(kind < 0.5, np.float32(100), np.float32(2))
    m = noise((P, M), rng) * apart + np.float32(rng.uniform(-20, 20))
    far = np.flatnonzero(kind < 0.25)
    m[rng.integers(P, size=len(far)), far] += rng.uniform(3e5, 1e6, len(far)).astype(np.float32)
    size = np.float32(1) + 3 * rng.standard_exponential((P, M), np.float32)
    is_empty = (rng.random((P, M)) < 0.15) | (rng.random(M) < 1 / 32)
    is_empty[rng.integers(P), 0] = False
    size[is_empty] = 0
    m[is_empty] += rng.choice(np.array([0, 150, -150], np.float32), np.count_nonzero(is_empty))
    return o, m, size


def oracle(o: np.ndarray, m: np.ndarray, size: np.ndarray, P: int) -> Expected:
    """The definition in float64, with an entry of each part in a row of its own."""
    is_full = size.T > 0
    maxima = np.where(is_full, m.T.astype(np.float64), -np.inf)
    distance = np.where(is_full, maxima.max(1, keepdims=True) - maxima, np.inf)
    weights = size.T * np.exp(-distance)
    weights /= np.maximum(weights.sum(1, keepdims=True), 1e-300)
    reach = np.where(is_full, distance + np.abs(maxima), 0.0)
    widened = widen_weights(weights, reach, np.array([[P]]))
    value = np.einsum("mp,pmd->md", weights, o.astype(np.float64))
    return Expected(value, np.einsum("mp,pmd->md", widened, np.abs(o)), float(P))


def by_compile(torch: Any, o: Any, m: Any, size: Any) -> Any:
    """The definition; float32 whatever the tensors are."""
    high = torch.where(size > 0, m.float(), float("-inf"))
    weights = torch.where(size > 0, (high - high.amax(0)).exp() * size.float(), 0.0)
    shares = weights / weights.sum(0).clamp(min=1e-30)
    return torch.einsum("pm,pmd->md", shares, o.float())
