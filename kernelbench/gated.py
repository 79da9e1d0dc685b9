# SPDX-License-Identifier: Apache-2.0
"""Gated layers (SwiGLU): how their inputs are drawn, and what answers in float64 may be off by.

What the columns between lost is independent from column to column, so that squares are summed.
"""

from __future__ import annotations

import numpy as np

from .dense import ROUNDINGS, blocks_of_rows
from .families import blemish, draw, noise
from .problem import Expected, Family, Inputs
from .state_space import gate as apply_gate

LARGE_GATE = 200.0
"""Of a gate's deviation: exp(89) overflows float32."""
FLUSHED = 2.0**-100
"""Of |g u|, as a scale: where exp(-g) overflows, its inverse is 0, and 2^-128 in float64."""


def draw_layer(
    family: Family, tokens: int, width: int, between: int, rng: np.random.Generator
) -> Inputs:
    """Tokens in the family's form, and weights that keep numbers about as large as they are; gate's
    second half is its first one with the other sign."""
    shape, form = (tokens, width), Family.NORMAL if family is Family.LARGE else family
    x = draw(form, shape, rng, varies=0)
    x /= np.float32(max(np.sqrt(np.square(x).mean(dtype=np.float64)), 1e-30))
    shapes = ((width, between), (width, between), (between, width))
    gate, up, down = (noise(each, rng) / np.float32(np.sqrt(each[0])) for each in shapes)
    # Where all gates of a token are far below zero its answer is nothing but exponentials' tails.
    half = between // 2
    gate[:, between - half :] = -gate[:, :half]
    if family is Family.LARGE:
        gate, down = gate * np.float32(LARGE_GATE), down / np.float32(LARGE_GATE)
    blemish(family, x, rng, (np.nan,))
    return x, gate, up, down


def expect_layer(x: np.ndarray, gate: np.ndarray, up: np.ndarray, down: np.ndarray) -> Expected:
    """silu(x gate) * (x up), times down, some tokens at a time.

    Args:
        x: [M, D]; gate, up: [D, F]; down: [F, D].
    """
    x, gate, up, down = (each.astype(np.float64) for each in (x, gate, up, down))
    value, scale = np.empty(x.shape), np.empty(x.shape)
    for part in blocks_of_rows((len(x), len(down))):
        g, u, size = x[part] @ gate, x[part] @ up, np.abs(x[part])
        h, own = apply_gate(u, np.abs(u), g)
        own += np.abs(g * u) * FLUSHED
        sigma = 0.5 * (1.0 + np.tanh(0.5 * g))
        slope = np.abs(u) * sigma * np.abs(1.0 + g * (1.0 - sigma))
        lost = np.abs(g) * sigma * (size @ np.abs(up)) + slope * (size @ np.abs(gate))
        value[part] = h @ down
        scale[part] = np.hypot(own @ np.abs(down), np.sqrt(np.square(lost) @ np.square(down)))
    return Expected(value, scale, float(len(gate) + len(down)) + ROUNDINGS)
