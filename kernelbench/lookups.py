# SPDX-License-Identifier: Apache-2.0
"""What the problems share that read between the points of a grid.

A place is a float32 product or sum whose floor decides what is read, so that kernels and oracle
must agree in its rounding; its fraction may be made of what was not rounded, by a fused
multiply-add. What that moves, one rounding of the place, is as wrong as its neighbours differ:
each factor of a weight is wrong by u times the place.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from .dense import ROUNDINGS
from .problem import Pair


def list_corners(places: np.ndarray) -> Iterator[Pair]:
    """Of each corner of the cells that float32 places lie in: its coordinates, and the factors of
    its weight, one for each axis, float64."""
    cells = np.floor(places)
    fractions = (places - cells).astype(np.float64)
    for step in itertools.product((0, 1), repeat=places.shape[-1]):
        yield cells.astype(np.int64) + step, np.abs(fractions + step - 1)


def weigh(places: np.ndarray, factors: np.ndarray, roundings: int = 1) -> Pair:
    """The product of a corner's factors, and its scale where n is ROUNDINGS.

    Args:
        roundings: that a place takes.
    """
    weight = factors.prod(-1)
    scale = weight.copy()
    for axis in range(places.shape[-1]):
        others = np.delete(factors, axis, -1).prod(-1)
        scale += (np.abs(places[..., axis]) + 1) * (roundings / ROUNDINGS) * others
    return weight, scale
