# SPDX-License-Identifier: Apache-2.0
"""What the problems share that keep the highest scores of a row, in the order in which they were.

Of equal scores the first are kept: one answer is right, and sorts that are not stable are not.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .families import draw
from .problem import Expected, Family


def draw_scores(
    family: Family, shape: tuple[int, int], rng: np.random.Generator, among: int, count: int
) -> np.ndarray:
    """Scores, of which families have equal ones. Of EXACT the last of the `count` highest among the
    first of each row is 0, and so are others: of either sign, which makes no difference."""
    score = draw(family, shape, rng)
    if family is Family.EXACT:
        score -= np.partition(score[:, :among], among - count, axis=1)[:, [among - count]]
        score[score == 0] *= rng.choice(np.array([-1, 1], np.float32), np.count_nonzero(score == 0))
    return score


def pick_highest(score: np.ndarray, count: int) -> np.ndarray:
    """The places of the `count` highest scores of each row, ascending: a stable sort."""
    places: np.ndarray = np.sort(np.argsort(-score, 1, kind="stable")[:, :count], axis=1)
    return places


def sort_highest(torch: Any, score: Any, count: int) -> Any:
    """The same in torch, whose topk does not say which of equal scores it takes."""
    order = torch.sort(score, dim=1, descending=True, stable=True).indices
    return order[:, :count].sort(1).values


def gather_rows(rows: Any, places: Any) -> Any:
    """Of a tensor of torch the rows at each one's places."""
    return rows.gather(1, places.unsqueeze(-1).expand(-1, -1, rows.shape[2]))


def expect_copies(array: np.ndarray) -> Expected:
    """The right answer where nothing is computed."""
    return Expected(array.astype(np.float64), np.zeros((1,) * array.ndim), is_exact=True)
