# SPDX-License-Identifier: Apache-2.0
"""Attention among the neighbours of each atom: a great many tiny sequences in padded lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..attending import attend, draw_counts, draw_heads, show_places
from ..dense import blocks_of_rows
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "Attention within padded lists of neighbours",
    "definition": "o[m,i,h,:] = sum over j < count[m] of p[j] v[m,j,h,:], p the softmax over j < "
    "count[m] of (sum over d of q[m,i,h,d] k[m,j,h,d]) / sqrt(D); 0 for i >= count[m]",
    "source": "EScAIP, arXiv 2410.24169",
    "headline": "whole models: 10x faster inference, 5x less memory than others, as reported",
    "tags": ["dense", "attention", "contraction", "ragged"],
    "is_row_wise": True,
    "axes": {"M": "atoms", "L": "places of a list", "H": "heads", "D": "elements of a head"},
    "lengths": {"L": 64, "D": [16, 32, 64]},
    "inputs": {
        "q": "float32[M, L, H, D]: queries of the neighbours",
        "k": "float32[M, L, H, D]: keys",
        "v": "float32[M, L, H, D]: values",
        "count": "int32[M]: neighbours of each atom, which come first in its list; 0 to L",
    },
    "bound": ["count"],
    "outputs": {"o": "float32[M, L, H, D]: row-major; 0 in places without a neighbour"},
    "flops": "4 * M * L * L * H * D",  # two products of lists that are full
    "held": "8 * M * H * L * L",  # a few arrays of scores
    "workloads": {
        "realistic": {
            "300x32": {"M": 300, "L": 32, "H": 8, "D": 16, "note": "300 atoms, 128 channels"},
            "200x20": {"M": 200, "L": 20, "H": 8, "D": 32, "note": "shorter lists, 256 channels"},
        },
        "tiny": {"tiny": {"M": 5, "L": 12, "H": 2, "D": 16}},
        "adversarial": {
            "37x61": {"M": 37, "L": 61, "H": 3, "D": 16, "note": "long lists of odd length"},
            "501x7": {"M": 501, "L": 7, "H": 1, "D": 64, "note": "lists shorter than a vector"},
        },
    },
    "families": "-constant large",
    "nrmse": 2e-5,
    "accuracy": "n = count[m], {attention law} Places without a neighbour are 0 exactly.",
}


def values(family: Family, rng: np.random.Generator, M: int, L: int, H: int, D: int) -> Inputs:
    """Logits as in attending.py."""
    return *draw_heads(family, (M, L, H, D), (M, L, H, D), rng), draw_counts(M, L, rng)


def oracle(q: np.ndarray, k: np.ndarray, v: np.ndarray, count: np.ndarray, L: int) -> Expected:
    """The definition in float64, some atoms at a time."""
    value, scale = np.zeros((2, *q.shape))
    is_there = np.arange(L) < np.maximum(count, 1)[:, None]
    for part in blocks_of_rows((len(q), L * q[0, 0].size + L * L)):
        queries, keys, wanted = (each[part].swapaxes(1, 2) for each in (q, k, v))
        found = attend(queries, keys, wanted, is_there[part, None, None])
        is_own = (np.arange(L) < count[part, None])[:, :, None, None]
        value[part], scale[part] = (np.where(is_own, each.swapaxes(1, 2), 0) for each in found)
    return Expected(value, scale, np.maximum(count, 1.0)[:, None, None, None])


def by_torch(torch: Any, q: Any, k: Any, v: Any, count: Any, o: Any, L: int) -> Prepared:
    """Its own attention with a mask; halves as float32, so that weights are not rounded."""
    attend, heads = torch.nn.functional.scaled_dot_product_attention, (q, k, v)

    def compute() -> None:
        seen, own = show_places(torch, count, L)
        found = attend(*(each.transpose(1, 2).float() for each in heads), attn_mask=seen)
        o.copy_(found.transpose(1, 2) * own)

    return compute


def by_compile(torch: Any, q: Any, k: Any, v: Any, count: Any, L: int, D: int) -> Any:
    """The definition."""
    queries, keys, values = (each.float().transpose(1, 2) for each in (q, k, v))
    seen, own = show_places(torch, count, L)
    logits = (queries * D**-0.5) @ keys.mT
    return (logits.masked_fill(~seen, float("-inf")).softmax(-1) @ values).transpose(1, 2) * own
