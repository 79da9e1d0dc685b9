"""Segments of rows that experts have, as they are drawn."""

from __future__ import annotations

import numpy as np

from kernelwright.kernelbench.experts import draw_choices, draw_segments

DRAWS = 40


def test_the_last_of_thousands_of_experts_has_rows() -> None:
    rng = np.random.default_rng(0)
    bounds = [draw_segments(2, 40_000, rng) for _ in range(DRAWS)]
    assert all(each[0] == 0 and each[-1] == 2 and (np.diff(each) >= 0).all() for each in bounds)
    assert DRAWS / 2 < sum(each[-1] > each[-2] for each in bounds) < DRAWS
    chosen = [draw_choices((24, 2), 1000, rng) for _ in range(DRAWS)]
    assert DRAWS / 2 < sum(999 in each for each in chosen) < DRAWS
