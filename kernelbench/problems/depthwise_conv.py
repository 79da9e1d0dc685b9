# SPDX-License-Identifier: Apache-2.0
"""Depthwise two-dimensional convolution: each channel has one filter, images keep their size."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish, draw_factors
from ..problem import Expected, Family, Pair, Prepared

PROBLEM = {
    "title": "Depthwise 2-D convolution (NCHW), images keep their size",
    "definition": "y[i,c,h,u] = sum over r, s < R of w[c,r,s] * x[i,c,h+r-(R-1)/2,u+s-(R-1)/2], "
    "x 0 outside of the image",
    "source": "MobileNets, arXiv 1704.04861; 5x5 in MobileNetV3, arXiv 1905.02244",
    "tags": ["dense", "convolution"],
    "is_row_wise": True,
    "axes": {
        "M": "images",
        "C": "channels",
        "H": "rows of an image",
        "W": "columns of an image",
        "R": "3 or 5: a filter is R by R",
    },
    "lengths": {"R": (3, 5)},
    "inputs": {"x": "float32[M, C, H, W]", "w": "float32[C, R, R]: filters, not turned"},
    "outputs": {"y": "float32[M, C, H, W]: as x"},
    "flops": "2 * M * C * H * W * R * R",
    "workloads": {
        "realistic": {
            "4x144x56x56x3": "MobileNetV2, four images",
            "8x240x28x28x5": "EfficientNet-B0, eight images",
        },
        "tiny": {"tiny": {"M": 1, "C": 6, "H": 15, "W": 21, "R": 3}},
        "adversarial": {"3x7x131x259x5": "odd sizes", "2x1009x7x7x3": "smaller than a vector"},
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = R^2, s = sum of the products' magnitudes. What lies outside is no "
    "term; filters are always finite. NaN and infinities of x reach the answers that they are "
    "terms of, zero times infinity is NaN, and no other answer.",
}


def values(
    family: Family, rng: np.random.Generator, M: int, C: int, H: int, W: int, R: int
) -> Pair:
    """The two factors; each filter and each channel is constant where they are constant."""
    w, x = draw_factors(family, (C, R * R), (M * C, H * W), rng, varies=(0, 0))
    blemish(family, x, rng)
    return x.reshape(M, C, H, W), w.reshape(C, R, R)


def oracle(x: np.ndarray, w: np.ndarray, R: int) -> Expected:
    """Windows of padded images in float64; magnitudes in float32."""

    def add_up(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        pad = (R // 2, R // 2)
        padded = np.pad(x, ((0, 0), (0, 0), pad, pad))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (R, R), axis=(2, 3))
        found: np.ndarray = np.einsum("ichurs,crs->ichu", windows, w)
        return found.astype(np.float64)

    value = add_up(x.astype(np.float64), w.astype(np.float64))
    return Expected(value, add_up(np.abs(x), np.abs(w)), float(R * R))


def by_torch(torch: Any, x: Any, w: Any, y: Any, C: int, R: int) -> Prepared:
    """oneDNN's."""
    convolve, filters = torch.nn.functional.conv2d, w[:, None]
    return lambda: y.copy_(convolve(x, filters, padding=R // 2, groups=C))


def by_compile(torch: Any, x: Any, w: Any, C: int, R: int) -> Any:
    """torch's own."""
    return torch.nn.functional.conv2d(x, w[:, None], padding=R // 2, groups=C)
