"""Values of large arrays, which are windows of smaller draws."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.kernelbench.families import HELD_ELEMENTS, SPREAD_ELEMENTS, draw, noise, spread
from kernelwright.kernelbench.problem import Family


def test_a_small_array_is_drawn_whole():
    asked: list[tuple[int, ...]] = []

    def make(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        asked.append(shape)
        return rng.standard_normal(shape, dtype=np.float32)

    shape = (SPREAD_ELEMENTS // 64, 64)
    assert spread(make, shape, np.random.default_rng(0)).shape == shape
    assert asked == [shape]
    # A few very long rows have no windows either.
    spread(make, (2, SPREAD_ELEMENTS), np.random.default_rng(0))
    assert asked[1] == (2, SPREAD_ELEMENTS)


@pytest.mark.parametrize("columns", [1, 33, 128, 4096])
def test_a_large_array_has_the_values_of_a_small_one(columns):
    rows = 5 * SPREAD_ELEMENTS // columns + 3
    drawn = noise((rows, columns), np.random.default_rng(1))
    assert drawn.shape == (rows, columns)
    assert drawn.dtype == np.float32
    assert abs(float(drawn.mean())) < 0.01
    assert abs(float(drawn.std()) - 1) < 0.01
    # Windows overlap: neighbours that are as far apart as a window differ.
    step = HELD_ELEMENTS // columns // 4 * 2
    assert np.any(drawn[:step] != drawn[step : 2 * step])


def test_what_families_promise_holds_in_windows():
    shape = (SPREAD_ELEMENTS // 31, 62)
    rng = np.random.default_rng(2)
    assert np.all(np.diff(draw(Family.SORTED, shape, rng)[::997], axis=1) >= 0)
    alternating = np.sign(draw(Family.ALTERNATING, (SPREAD_ELEMENTS // 32, 63), rng)).reshape(-1)
    assert np.all(alternating[1:] == -alternating[:-1])
    assert set(np.unique(draw(Family.EXACT, shape, rng))) == {-1.0, 0.0, 1.0}
    constant = draw(Family.CONSTANT, shape, rng, varies=0)
    assert np.all(constant == constant[:, :1])
    assert len(np.unique(constant)) > 1
