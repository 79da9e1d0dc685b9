# SPDX-License-Identifier: Apache-2.0
"""Attention of one new token of each sequence, over keys and values that lie in pages."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..attending import PAGE, attend_pages, draw_heads, draw_pages, gather_pages
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "Attention of one token over a paged cache (grouped-query heads)",
    "definition": "o[b,g,r] = sum over j < lengths[b] of p[j] v[page,g,j%16], page = "
    "table[b,j/16], p = softmax over j of (sum over d of q[b,g,r,d] k[page,g,j%16,d]) / sqrt(D)",
    "source": "PagedAttention, arXiv 2309.06180; GQA, arXiv 2305.13245; NeuPIMs, arXiv 2403.00579",
    "headline": "PagedAttention: a server's throughput 2 to 4 times that of Orca, as reported",
    "tags": ["dense", "attention", "gather"],
    "axes": {
        "B": "sequences",
        "G": "heads of keys and values on a device",
        "R": "query heads that share one of them",
        "P": "pages of a sequence, 16 tokens each",
        "D": "elements of a head",
    },
    "lengths": {"G": [1, 2, 4, 5, 8], "D": [64, 128]},
    "inputs": {
        "q": "float32[B, G, R, D]: queries",
        "k": "float32[B*P, G, 16, D]: pages of keys",
        "v": "float32[B*P, G, 16, D]: pages of values",
        "table": "int32[B, P]: which pages a sequence has, in order; no page is another's",
        "lengths": "int32[B]: its tokens, from 1 to 16 P",
    },
    "bound": ["table", "lengths"],
    "outputs": {"o": "float32[B, G, R, D]: row-major"},
    "flops": "64 * B * G * R * P * D",  # two products, of sequences that fill their pages
    "workloads": {
        "realistic": {
            "4x1024": {"B": 4, "G": 8, "R": 4, "P": 64, "D": 128, "note": "Llama-3-8B"},
            "8x2048": {"B": 8, "G": 2, "R": 16, "P": 128, "D": 128, "note": "Nemotron Nano"},
        },
        "tiny": {"tiny": {"B": 3, "G": 2, "R": 2, "P": 3, "D": 64}},
        "adversarial": {
            "1x8192": {"B": 1, "G": 1, "R": 8, "P": 512, "D": 128, "note": "one long sequence"},
            "129x16": {"B": 129, "G": 1, "R": 5, "P": 1, "D": 64, "note": "a page each"},
        },
    },
    "families": "-constant large",
    "nrmse": 2e-5,
    "accuracy": "n = lengths[b], {attention law} Tokens from lengths[b] on are not the sequence's.",
}


def values(
    family: Family, rng: np.random.Generator, B: int, G: int, R: int, P: int, D: int
) -> Inputs:
    """Pages in random order, sequences of different lengths; logits as in attending.py."""
    q, k, v = draw_heads(family, (B, G, R, D), (B * P, G, PAGE, D), rng)
    return q, k, v, *draw_pages(B, P, rng)


def oracle(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, table: np.ndarray, lengths: np.ndarray
) -> Expected:
    """The definition in float64."""
    value, scale = attend_pages(q, k, v, table.astype(np.int64), lengths.astype(np.int64))
    return Expected(value, scale, lengths[:, None, None, None].astype(np.float64))


def by_torch(torch: Any, q: Any, k: Any, v: Any, table: Any, lengths: Any, o: Any) -> Prepared:
    """Its own attention, of pages that are gathered before; halves as float32."""
    own, given = torch.nn.functional.scaled_dot_product_attention, (torch, k, v, table, lengths)
    return lambda: o.copy_(own(q.float(), *gather_pages(*given)))


def by_compile(torch: Any, q: Any, k: Any, v: Any, table: Any, lengths: Any, D: int) -> Any:
    """The definition."""
    keys, values, mask = gather_pages(torch, k, v, table, lengths)
    return ((q.float() * D**-0.5) @ keys.mT + mask).softmax(-1) @ values
