# SPDX-License-Identifier: Apache-2.0
"""Tokens of a mixture of experts in the order of their experts: what goes before grouped products.

Nothing is rounded, so that answers are exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..experts import draw_choices
from ..families import blemish, draw
from ..problem import Expected, Family, Inputs
from ..selecting import expect_copies

PROBLEM = {
    "title": "Tokens gathered in the order of their experts, with each expert's offset",
    "definition": "place = the numbers i K + j of all choices, sorted by expert[i,j], those of one "
    "expert ascending; rows[p] = x[place[p] / K], gate[p] = weight[i,j]; "
    "offsets[e] = how many choices have an expert below e",
    "source": "MegaBlocks, arXiv 2211.15841",
    "headline": "training up to 1.40 times faster than with padded experts (Tutel), as reported",
    "tags": ["dense", "gather", "ragged", "selection"],
    "axes": {"M": "tokens", "K": "choices of each", "E": "experts", "D": "numbers of a token"},
    "lengths": {"E": 1024},
    "inputs": {
        "x": "float32[M, D]: tokens, row-major",
        "expert": "int32[M, K]: the router's choices, from 0 to E - 1; one may come twice",
        "weight": "float32[M, K]: what the router gives each",
    },
    "bound": ["expert"],
    "outputs": {
        "rows": "float32[M*K, D]: a copy of its token for each choice",
        "gate": "float32[M*K]: its weight",
        "place": "int32[M*K]: which choice it was",
        "offsets": "int32[E+1]: where each expert's rows begin, and M K",
    },
    "flops": "M * K",  # a comparison of each choice, at least
    "workloads": {
        "realistic": {
            "1024x2x8x4096": "1,024 tokens of Mixtral-8x7B",
            "512x22x512x1024": "22 of 512 experts, as Nemotron 3 Super has them",
        },
        "tiny": {"tiny": {"M": 40, "K": 3, "E": 7, "D": 20}},
        "adversarial": {
            "33x7x90x65": "an odd width, experts without tokens",
            "20011x1x1000x3": "many short tokens",
        },
    },
    "families": "large nonfinite",
    "accuracy": "All outputs are exact. NaN and infinities are in x, and are copied.",
}


def values(family: Family, rng: np.random.Generator, M: int, K: int, E: int, D: int) -> Inputs:
    """Experts of very different popularity, some without a token; another token in each row."""
    x = draw(family, (M, D), rng, varies=0)
    blemish(family, x, rng)
    return x, draw_choices(family, (M, K), E, rng), rng.random((M, K), np.float32)


def oracle(
    x: np.ndarray, expert: np.ndarray, weight: np.ndarray, K: int, E: int
) -> tuple[Expected, ...]:
    """A stable sort."""
    place = np.argsort(expert.astype(np.int64), axis=None, kind="stable")
    offsets = np.concatenate(([0], np.cumsum(np.bincount(expert.astype(int).ravel(), minlength=E))))
    return tuple(map(expect_copies, (x[place // K], weight.ravel()[place], place, offsets)))


def by_compile(torch: Any, x: Any, expert: Any, weight: Any, K: int, E: int) -> tuple[Any, ...]:
    """The definition."""
    keys, order = torch.sort(expert.flatten(), stable=True)
    bounds = torch.arange(E + 1, dtype=torch.int32, device=x.device)
    return x[order // K], weight.flatten()[order], order, torch.searchsorted(keys, bounds)
