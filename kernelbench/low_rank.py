# SPDX-License-Identifier: Apache-2.0
"""Steps of Adam in a space of low rank: what a projected gradient makes of moments and of the step,
and how far an honest float32 kernel may be off."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .families import draw
from .problem import Expected, Family, Pair

B1, B2, EPS = 0.9, 0.999, 1e-8


class Turn(NamedTuple):
    """Of a step: the moments after it, and the way to go with what its error grows from."""

    mean: Expected
    square: Expected
    way: np.ndarray
    way_scale: np.ndarray


def turn_moments(
    r: np.ndarray, scale: np.ndarray, m: np.ndarray, v: np.ndarray, corrections: Any, terms: float
) -> Turn:
    """The moments of a projected gradient and Adam's step, float64.

    Args:
        r, scale: the projected gradient, of so many terms, and the sum of their magnitudes.
        m, v: the moments before.
        corrections: c1 and c2.
    """
    c1, c2 = corrections
    mean, square = B1 * m + (1 - B1) * r, B2 * v + (1 - B2) * r * r
    law = 2.0**-22 * np.sqrt(terms)
    mean_scale = B1 * np.abs(m) + (1 - B1) * scale
    square_scale = B2 * v + (1 - B2) * scale * (2 * np.abs(r) + law * scale)
    root = np.sqrt(square / c2) + EPS
    # Half of the square's relative error is the root's, and never more than all of it.
    lost = np.minimum(square_scale / np.maximum(square, np.finfo(float).tiny), 1 / law)
    return Turn(
        Expected(mean, mean_scale, terms),
        Expected(square, square_scale, terms),
        mean / c1 / root,
        mean_scale / c1 / root * (1 + lost),
    )


def draw_moments(size: float, shape: tuple[int, int], rng: np.random.Generator) -> Pair:
    """Moments as large as `size`, the second ones not negative."""
    each = np.float32(size)
    m = draw(Family.NORMAL, shape, rng, max_decades=0.3) * each
    return m, np.square(draw(Family.UNIFORM, shape, rng, max_decades=0.3) * each)


def draw_step(rng: np.random.Generator) -> np.ndarray:
    """A rate and the corrections of some step, float32[3]."""
    t = int(rng.integers(1, 1000))
    return np.array([rng.uniform(0.01, 0.1), 1 - B1**t, 1 - B2**t], np.float32)


def draw_projection(rows: int, rank: int, rng: np.random.Generator) -> np.ndarray:
    """A matrix (rows, rank) whose columns have a length of about 1."""
    drawn = draw(Family.NORMAL, (rows, rank), rng, max_decades=0)
    size: np.ndarray = np.sqrt(np.square(drawn).sum(dtype=np.float64) / rank + 1e-9)
    return drawn / np.float32(size)


def direct_gradient(direction: np.ndarray, gradient: np.ndarray, magnitude: np.ndarray) -> Pair:
    """The gradient of a direction from that of magnitude times direction over its columns' lengths,
    float64, and the magnitudes of its terms."""
    d, g = direction.astype(np.float64), gradient.astype(np.float64)
    length = np.sqrt(np.square(d).sum(0))
    unit, gain = d / length, magnitude / length
    value = (g - unit * (unit * g).sum(0)) * gain
    scale = (np.abs(g) + np.abs(unit) * np.abs(unit * g).sum(0)) * np.abs(gain)
    return value, scale
