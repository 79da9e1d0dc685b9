# SPDX-License-Identifier: Apache-2.0
"""Convolution of int8 with a zero point: zeros around the image are its code. Who puts code 0
there, less the zero point like all others, has taken off too much at the border."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish, draw, draw_factors
from ..integers import convolve_in_floats, multiply_taps, sum_taps
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "2-D convolution (NHWC) of 8-bit weights and activations with a zero point",
    "definition": "y[i,p,q,f] = scale[f] * (sum over r, s < R and c of w[f,r,s,c] * "
    "(x[i,p+r-h,q+s-h,c] - zero[0])) + bias[f], h = (R-1)/2, over those r and s alone for which "
    "p+r-h and q+s-h lie within the image",
    "source": "MixDQ, arXiv 2405.17873",
    "tags": ["dense", "contraction", "convolution", "quantised"],
    "is_row_wise": True,
    "axes": {
        "M": "images",
        "C": "channels",
        "F": "filters",
        "H": "rows",
        "W": "columns",
        "R": "taps",
    },
    "lengths": {"C": 4096, "R": (1, 3)},
    "inputs": {
        "x": "int8[M, H, W, C]: codes of activations",
        "w": "int8[F, R, R, C]: codes of filters",
        "zero": "int8[1]: the code of activations that stands for 0",
        "scale": "float32[F]: what a step of both is worth for each filter",
        "bias": "float32[F]",
    },
    "outputs": {"y": "float32[M, H, W, F]: as large as the image"},
    "flops": "2*M*F*H*W*C*R*R",
    "workloads": {
        "realistic": {"1x320x320x24x24x3": "SDXL, 3x3", "1x640x640x32x32x1": "SDXL, 1x1"},
        "tiny": {"tiny": {"M": 2, "C": 20, "F": 9, "H": 5, "W": 6, "R": 3}},
        "adversarial": {"3x37x11x1x53x3": "a single row", "1x513x33x9x7x3": "few places"},
    },
    "families": "large nonfinite exact",
    "accuracy": "n = 4, s = |scale sum| + |bias|: the sum is exact in int32. Scales and bias may "
    "be NaN, never infinite.",
}
A = np.ndarray
T = Any


def values(
    family: Family, rng: np.random.Generator, M: int, C: int, F: int, H: int, W: int, R: int
) -> Inputs:
    """A zero point far from 0; scales of a decade and a half, and a bias of the size of sums."""
    x, w = draw_factors(family, (M, H * W * C), (F, R * R * C), rng, varies=(0, 0))
    x, w = x.reshape(M, H, W, C), w.reshape(F, R, R, C)
    zero = np.array([rng.choice([-1, 1]) * rng.integers(17, 101)], np.int8)
    if family is Family.EXACT:
        scale = (2.0 ** rng.integers(-2, 3, F)).astype(np.float32)
        return x, w, zero, scale, draw(family, (F,), rng)
    scale = (10.0 ** rng.uniform(-5.0, -3.5, F)).astype(np.float32)
    bias = rng.standard_normal(F, np.float32) * np.float32(4e3 * R * np.sqrt(C)) * scale
    for array in (scale, bias):
        blemish(family, array, rng, (np.nan,))
    return x, w, zero, scale, bias


def oracle(x: A, w: A, zero: A, scale: A, bias: A) -> Expected:
    """Tap by tap, in float64, which holds all sums."""
    product = sum_taps(x.astype(np.float64) - zero, w.astype(np.float64)) * scale.astype(np.float64)
    added = bias.astype(np.float64)
    return Expected(product + added, np.abs(product) + np.abs(added), 4.0)


def by_torch(torch: T, x: T, w: T, zero: T, scale: T, bias: T, y: T) -> Prepared:
    """A product of int8, of taps side by side."""
    return lambda: y.copy_(multiply_taps(torch, x, w, zero) * scale.float() + bias.float())


def by_compile(torch: T, x: T, w: T, zero: T, scale: T, bias: T) -> T:
    """A convolution of floats."""
    return convolve_in_floats(torch, x, w, zero) * scale.float() + bias.float()
