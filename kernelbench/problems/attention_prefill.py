# SPDX-License-Identifier: Apache-2.0
"""Causal attention of a prompt, with key and value heads that several query heads share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..attending import attend, draw_heads
from ..dense import blocks_of_rows
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "Causal attention of a prompt (grouped-query heads)",
    "definition": "o[g,r,i,:] = sum over j <= i of p[j] v[g,j,:], p the softmax over j <= i of "
    "(sum over d of q[g,r,i,d] k[g,j,d]) / sqrt(D)",
    "source": "FlashAttention-2, arXiv 2307.08691; FastAttention, arXiv 2410.16663",
    "headline": "FastAttention: up to 10.7 times standard attention on an Ascend NPU, as reported",
    "tags": ["dense", "attention", "contraction"],
    "axes": {
        "G": "heads of keys and values",
        "R": "query heads that share one of them",
        "S": "tokens of the prompt",
        "D": "elements of a head: 64 or 128",
    },
    "lengths": {"D": [64, 128]},
    "inputs": {
        "q": "float32[G, R, S, D]: queries",
        "k": "float32[G, S, D]: keys",
        "v": "float32[G, S, D]: values",
    },
    "outputs": {"o": "float32[G, R, S, D]: row-major"},
    "flops": "2 * G * R * S * S * D",  # two products, of which causality leaves half
    "held": "16 * G * R * S * S",  # several arrays of scores, each of D times the work
    "workloads": {
        "realistic": {
            "llama-8b-256": {"G": 8, "R": 4, "S": 256, "D": 128, "note": "a chunk of a prompt"},
            "5x1024": {"G": 5, "R": 1, "S": 1024, "D": 128, "note": "PanGu-38B, on 8 NPUs"},
        },
        "tiny": {"tiny": {"G": 2, "R": 2, "S": 24, "D": 64}},
        "adversarial": {
            "7x129": {"G": 1, "R": 7, "S": 129, "D": 64, "note": "beyond tiles"},
            "3x509": {"G": 3, "R": 1, "S": 509, "D": 128, "note": "a prime number of tokens"},
        },
    },
    "families": "-constant large",
    "nrmse": 2e-5,
    "accuracy": "n = i + 1, {attention law} Weights that are rounded to 16 bits miss it.",
}


def values(family: Family, rng: np.random.Generator, G: int, R: int, S: int, D: int) -> Inputs:
    """Logits as in attending.py."""
    return draw_heads(family, (G, R, S, D), (G, S, D), rng)


def oracle(q: np.ndarray, k: np.ndarray, v: np.ndarray, R: int, S: int, D: int) -> Expected:
    """The definition in float64, some heads at a time."""
    value, scale = (np.empty((len(k) * R, S, D)) for _ in "vs")
    queries, is_seen = q.reshape(value.shape), np.tri(S, dtype=bool)
    for part in blocks_of_rows((len(value), S * max(S, D))):
        heads = np.arange(len(value))[part] // R
        value[part], scale[part] = attend(queries[part], k[heads], v[heads], is_seen)
    terms = np.arange(1.0, S + 1)[:, None]
    return Expected(value.reshape(q.shape), scale.reshape(q.shape), terms)


def by_torch(torch: Any, q: Any, k: Any, v: Any, o: Any) -> Prepared:
    """Its own attention; halves as float32, so that weights are not rounded."""
    attend, shape = torch.nn.functional.scaled_dot_product_attention, q.shape
    shared = [each[:, None].expand(shape) for each in (k, v)]
    return lambda: o.copy_(attend(q.float(), *(s.float() for s in shared), is_causal=True))


def by_compile(torch: Any, q: Any, k: Any, v: Any, S: int, D: int) -> Any:
    """The definition."""
    logits = (q.float() * D**-0.5) @ k.float()[:, None].mT
    hidden = torch.ones(S, S, dtype=torch.bool, device=q.device).triu(1)
    return logits.masked_fill(hidden, float("-inf")).softmax(-1) @ v.float()[:, None]
