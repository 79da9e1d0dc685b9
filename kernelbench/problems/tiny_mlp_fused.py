# SPDX-License-Identifier: Apache-2.0
"""A small network for each of many points, whose layers never leave the chip."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..perceptron import draw_network, expect_network
from ..problem import Expected, Family, Inputs

PROBLEM = {
    "title": "Small network with ReLU for each of many points",
    "definition": "h = max(0, x first); h = max(0, h middle[b]) for each b in turn; y = h last",
    "source": "Hardware acceleration of neural graphics, arXiv 2303.05735; instant-NGP's fully "
    "fused networks, arXiv 2201.05989",
    "headline": "kernels of encoding and network fused are 9.94 times faster, as reported, on "
    "hardware of its own",
    "tags": ["dense", "contraction", "fused", "chained"],
    "is_row_wise": True,
    "axes": {
        "M": "points",
        "D": "elements of a point",
        "H": "units of a layer between",
        "B": "layers between that follow the first",
        "N": "elements of an answer",
    },
    "lengths": {"D": 256, "H": 128, "B": (1, 2, 3), "N": 256},
    "least": {"H": 2},
    "inputs": {
        "x": "float32[M, D]: points, row-major",
        "first": "float32[D, H]: weights of the first layer, from rows to columns",
        "middle": "float32[B, H, H]: weights of those that follow, likewise",
        "last": "float32[H, N]: weights of what comes out",
    },
    "outputs": {"y": "float32[M, N]: row-major"},
    "flops": "2 * M * D * H + 2 * M * B * H * H + 2 * M * H * N",
    "workloads": {
        "realistic": {
            "65536x32x64x1x16": "instant-NGP's density network, 2^16 points",
            "65536x32x64x2x3": "its colour network",
            "32768x16x128x3x4": "wider and deeper",
        },
        "tiny": {"tiny": {"M": 37, "D": 20, "H": 24, "B": 2, "N": 5}},
        "adversarial": {"1031x33x65x3x17": "odd sizes", "4099x3x2x1x1": "next to nothing"},
    },
    "families": "large nonfinite",
    "nrmse": 2e-5,
    "accuracy": "n = D + B H + H + 16; s = sum over the last layer's terms of |h last|, and with "
    "it, as the root of a sum of squares, what each layer lost before: s of its own terms, of "
    "units that are on. A NaN of x is in its whole row; no infinities.",
}


def values(
    family: Family, rng: np.random.Generator, M: int, D: int, H: int, B: int, N: int
) -> Inputs:
    """As perceptron.py draws them: of a point's units some are on."""
    return draw_network(family, M, (D, H, B, N), rng)


def oracle(x: np.ndarray, first: np.ndarray, middle: np.ndarray, last: np.ndarray) -> Expected:
    """The definition in float64."""
    return expect_network(x, first, middle, last)


def by_compile(torch: Any, x: Any, first: Any, middle: Any, last: Any) -> Any:
    """The definition; halves as float32, which are rounded once."""
    h = torch.relu(x.float() @ first.float())
    for layer in middle.float():
        h = torch.relu(h @ layer)
    return h @ last.float()
