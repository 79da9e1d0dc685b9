# SPDX-License-Identifier: Apache-2.0
"""Small networks of layers with ReLU between, in float64: answers, and what a layer may lose.

A scale s stands for an error of u sqrt(n) s: the sum of |terms| of a layer, and what the layers
before it lost, to first order. Errors of elements are independent of each other: their squares are
summed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .dense import ROUNDINGS, blocks_of_rows
from .families import blemish, draw, noise
from .problem import Expected, Family, Inputs

NEARLY_OFF = 2.0**-12
"""By what share of its scale a unit may be below zero and still be on where numbers are rounded."""


def draw_network(
    family: Family, points: int, widths: tuple[int, int, int, int], rng: np.random.Generator
) -> Inputs:
    """Points in the family's form, and weights that keep numbers about as large as they are. Units
    come in pairs of opposite sign, so that of each point's some are on.

    Args:
        widths: of a point, of a layer between, how many layers follow the first, of an answer.
    """
    inputs, width, inner, outputs = widths
    x = draw(family, (points, inputs), rng, varies=0)
    shapes = ((1, inputs, width), (inner, width, width), (1, width, outputs))
    first, middle, last = (
        noise(shape, rng) * np.float32(np.sqrt(2.0 / shape[1])) for shape in shapes
    )
    for layers in (first, middle):
        half = width // 2
        layers[..., width - half :] = -layers[..., :half]
    blemish(family, x, rng, (np.nan,))
    return x, first[0], middle, last[0]


def expect_network(
    x: np.ndarray, first: np.ndarray, middle: np.ndarray, last: np.ndarray
) -> Expected:
    """The last layer of ReLUs of layers, some points at a time.

    Args:
        x: [M, D]; first: [D, H]; middle: [B, H, H]; last: [H, O].
    """
    layers = [each.astype(np.float64) for each in (first, *middle, last)]
    terms = sum(len(layer) for layer in layers) + ROUNDINGS
    value, scale = np.empty((2, len(x), last.shape[1]))
    for part in blocks_of_rows((len(x), first.shape[1] + last.shape[1])):
        value[part], scale[part] = _pass_through(x[part].astype(np.float64), layers)
    return Expected(value, scale, float(terms))


def _pass_through(h: np.ndarray, layers: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The answers and their scales."""
    squares = np.zeros(h.shape)
    for layer in layers[:-1]:
        lost = np.hypot(np.abs(h) @ np.abs(layer), np.sqrt(squares @ layer**2))
        h = h @ layer
        squares = np.where(h < -NEARLY_OFF * lost, 0.0, lost**2)
        # What is no number stays none.
        h = np.where(h < 0, 0.0, h)
    last = layers[-1]
    return h @ last, np.hypot(np.abs(h) @ np.abs(last), np.sqrt(squares @ last**2))
