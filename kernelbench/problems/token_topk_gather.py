# SPDX-License-Identifier: Apache-2.0
"""The visual tokens that a budget leaves: those of the highest scores, in the order in which they
were. Nothing is rounded, so that answers are exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish, draw
from ..problem import Expected, Family, Pair
from ..selecting import draw_scores, expect_copies, gather_rows, pick_highest, sort_highest

PROBLEM = {
    "title": "Tokens of the highest scores, gathered in their order",
    "definition": "kept[b] = the W G places t of the largest score[b,t], of equal ones the first, "
    "ascending; y[b,s,d] = features[b,kept[b,s],d]",
    "source": "HiRED, arXiv 2408.10945",
    "headline": "4.7 times the tokens a second on LLaVA-Next-7B with a budget of 20 %, as reported",
    "tags": ["dense", "selection", "gather"],
    "axes": {
        "B": "partitions of images, each with a budget of its own",
        "G": "fifths of a partition: it has 5 G tokens",
        "D": "numbers of a token",
        "W": "fifths that are kept: 1 are a budget of 20 %, 2 of 40 %",
    },
    "lengths": {"W": (1, 2)},
    "inputs": {
        "score": "float32[B, 5*G]: attention that each token is paid; -0 equals 0",
        "features": "float32[B, 5*G, D]: row-major",
    },
    "outputs": {
        "kept": "int32[B, W*G]: places of the tokens that stay, ascending",
        "y": "float32[B, W*G, D]: their features",
    },
    "flops": "5 * B * G",  # a comparison of each score, at least
    "workloads": {
        "realistic": {
            "5x575x1024": {"B": 5, "G": 115, "D": 1024, "W": 2, "note": "an image of LLaVA-Next"},
            "10x575x512": {"B": 10, "G": 115, "D": 512, "W": 1, "note": "two images, narrower"},
        },
        "tiny": {"tiny": {"B": 3, "G": 9, "D": 12, "W": 2}},
        "adversarial": {
            "1x20485x3": {"B": 1, "G": 4097, "D": 3, "W": 2, "note": "many short tokens of one"},
            "33x5x65": {"B": 33, "G": 1, "D": 65, "W": 1, "note": "one token of five"},
        },
    },
    "families": "large nonfinite exact",
    "accuracy": "Both outputs are exact. NaN and infinities are in features alone, and are copied.",
}


def values(family: Family, rng: np.random.Generator, B: int, G: int, D: int, W: int) -> Pair:
    """Scores, of which families have equal ones; features, of CONSTANT another one each token."""
    score = draw_scores(family, (B, 5 * G), rng, 5 * G, W * G)
    features = draw(family, (B * 5 * G, D), rng, varies=0)
    blemish(family, features, rng)
    return score, features.reshape(B, 5 * G, D)


def oracle(score: np.ndarray, features: np.ndarray, G: int, W: int) -> dict[str, Expected]:
    """A stable sort, of which the first are kept."""
    kept = pick_highest(score, W * G)
    y = np.take_along_axis(features, kept[..., None], 1)
    return {"kept": expect_copies(kept), "y": expect_copies(y)}


def by_compile(torch: Any, score: Any, features: Any, G: int, W: int) -> tuple[Any, Any]:
    """The definition."""
    kept = sort_highest(torch, score, W * G)
    return kept.int(), gather_rows(features, kept)
