"""Scores of what is kept and what goes."""

from __future__ import annotations

import numpy as np

from kernelwright.kernelbench.problem import Family
from kernelwright.kernelbench.selecting import draw_scores, pick_highest


def test_exact_scores_are_equal_at_the_border_by_zeros_of_either_sign() -> None:
    rng, differ = np.random.default_rng(0), 0
    for _ in range(20):
        score = draw_scores(Family.EXACT, (6, 40), rng, 33, 12)
        assert (np.sort(score[:, :33], axis=1)[:, -12] == 0).all()
        by_sign = np.where(score == 0, np.copysign(np.float32(0.25), score), score)
        differ += not np.array_equal(pick_highest(score, 12), pick_highest(by_sign, 12))
    assert differ > 15


def test_other_scores_are_drawn_as_they_are() -> None:
    score = draw_scores(Family.NORMAL, (3, 50), np.random.default_rng(0), 50, 5)
    assert (score[:, 1:] != score[:, :-1]).all()
