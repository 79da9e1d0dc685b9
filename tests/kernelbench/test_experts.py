"""Segments of rows that experts have, as they are drawn."""

from __future__ import annotations

import numpy as np

from kernelwright.kernelbench.experts import draw_choices, draw_segments
from kernelwright.kernelbench.problem import Family

DRAWS = 40


def test_the_last_of_thousands_of_experts_has_rows() -> None:
    rng = np.random.default_rng(0)
    bounds = [draw_segments(Family.EXACT, 2, 40_000, rng) for _ in range(DRAWS)]
    assert all(each[0] == 0 and each[-1] == 2 and (np.diff(each) >= 0).all() for each in bounds)
    assert DRAWS / 2 < sum(each[-1] > each[-2] for each in bounds) < DRAWS
    chosen = [draw_choices(Family.EXACT, (24, 2), 1000, rng) for _ in range(DRAWS)]
    assert DRAWS / 2 < sum(999 in each for each in chosen) < DRAWS


def test_an_expert_has_any_share_of_the_rows_but_in_timed_calls() -> None:
    rng = np.random.default_rng(1)

    def shares(family: Family) -> list[float]:
        drawn = [np.diff(draw_segments(family, 1000, 12, rng)) for _ in range(DRAWS)]
        return [each.max() / 1000 for each in drawn]

    timed, tried = shares(Family.NORMAL), shares(Family.LARGE)
    assert max(timed) < 0.75
    assert sum(share > 0.75 for share in tried) > DRAWS / 5
    assert sum(share < 0.5 for share in tried) > DRAWS / 5
