# SPDX-License-Identifier: Apache-2.0
"""A cache of keys and values cut to a budget, by scores of each head. Answers are exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish, draw
from ..problem import Expected, Family, Inputs
from ..selecting import draw_scores, expect_copies, gather_rows, pick_highest, sort_highest

PROBLEM = {
    "title": "Keys and values of the highest scores, and the last ones, kept in their order",
    "definition": "kept[h] = the C places t < C + E of the largest score[h,t], of equal ones the "
    "first, ascending, then C + E … C + E + S - 1; each output is the input at kept[h,s]",
    "source": "Locret, arXiv 2410.01805",
    "headline": "caches of a 20th of their size lose less than 10 % of quality, as reported",
    "tags": ["dense", "selection", "gather", "attention"],
    "axes": {
        "H": "heads of all sequences; each has C + E + S tokens",
        "C": "tokens that scores keep",
        "E": "tokens that go",
        "S": "stabilisers: the last tokens, which stay whatever their scores are",
        "D": "elements of a head",
    },
    "inputs": {
        "score": "float32[H, C+E+S]: how much each token is worth; -0 equals 0",
        "k": "float32[H, C+E+S, D]: keys",
        "v": "float32[H, C+E+S, D]: values",
        "position": "int32[H, C+E+S]: where a token was in the text",
    },
    "outputs": {
        "k_kept": "float32[H, C+S, D]: keys that stay",
        "v_kept": "float32[H, C+S, D]: their values",
        "position_kept": "int32[H, C+S]: where they were",
    },
    "flops": "H * C + H * E",  # a comparison of each score, at least
    "workloads": {
        "realistic": {
            "4x5900x3072x100x128": "half of the heads of Llama-3.1-8B, a chunk of 3,072 tokens",
            "8x1948x1024x100x96": "a quarter of the heads of Phi-3-mini",
        },
        "tiny": {"tiny": {"H": 3, "C": 20, "E": 13, "S": 5, "D": 12}},
        "adversarial": {"1x1x20000x3x7": "the best of many", "65x30x3x31x33": "few tokens go"},
    },
    "families": "large nonfinite exact",
    "accuracy": "All outputs are exact. NaN and infinities are in k and v alone, and are copied.",
}


def values(
    family: Family, rng: np.random.Generator, H: int, C: int, E: int, S: int, D: int
) -> Inputs:
    """Scores, of which families have equal ones; half of the stabilisers have lower ones than all
    others. Of CONSTANT each token has another key. Positions rise, with gaps."""
    count = C + E + S
    score = draw_scores(family, (H, count), rng, C + E, C)
    is_low = rng.random((H, S)) < 0.5
    score[:, C + E :][is_low] = score.min() - np.abs(score).max()
    k, v = (draw(family, (H * count, D), rng, varies=0) for _ in "kv")
    blemish(family, k, rng)
    blemish(family, v, rng)
    position = rng.integers(1 << 20, size=(H, 1)) + np.cumsum(rng.integers(1, 4, (H, count)), 1)
    return score, k.reshape(H, count, D), v.reshape(H, count, D), position.astype(np.int32)


def oracle(
    score: np.ndarray, k: np.ndarray, v: np.ndarray, position: np.ndarray, C: int, E: int, S: int
) -> tuple[Expected, ...]:
    """A stable sort, of which the first are kept."""
    last = np.broadcast_to(np.arange(C + E, C + E + S), (len(score), S))
    kept = np.concatenate((pick_highest(score[:, : C + E], C), last), 1)
    heads = np.arange(len(score))[:, None]
    return tuple(expect_copies(each[heads, kept]) for each in (k, v, position))


def by_compile(
    torch: Any, score: Any, k: Any, v: Any, position: Any, C: int, E: int, S: int
) -> tuple[Any, Any, Any]:
    """The definition."""
    last = torch.arange(C + E, C + E + S, device=k.device).expand(len(k), -1)
    kept = torch.cat((sort_highest(torch, score[:, : C + E], C), last), 1)
    return gather_rows(k, kept), gather_rows(v, kept), position.gather(1, kept)
