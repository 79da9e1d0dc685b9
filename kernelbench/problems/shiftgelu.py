# SPDX-License-Identifier: Apache-2.0
"""ShiftGELU, I-ViT's x sigmoid(1.702 x) on int8 by shifts.

An answer follows from a number of 8 bits and from the maximum of its row, which has 8 bits too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import draw_places
from ..integers import KEPT_BITS, LARGEST, draw_whole, expect_whole, exponential
from ..problem import Expected, Family, Pair

PROBLEM = {
    "title": "ShiftGELU: an integer GELU over rows",
    "definition": "m = max_k x[i,k]; E(a) = floor((r/2 + unit) 2^(23-q)) with "
    "p = max(a + floor(a/2) - floor(a/16), -23 unit), q = floor(-p / unit), r = p + unit q\n"
    "e = E(x[i,j] - m); f = floor((2^31-1) / min(e + E(-m), 2^31-1))\n"
    "y[i,j] = x[i,j] floor(e f / 2^24)",
    "source": "I-ViT, arXiv 2207.01405",
    "headline": "3.72 to 4.11 times a float model, as reported: DeiT, Swin on an RTX 2080 Ti",
    "tags": ["dense", "elementwise", "quantised"],
    "is_row_wise": True,
    "axes": {"M": "rows", "N": "elements of a row"},
    "inputs": {
        "x": "int8[M, N]: row-major",
        "unit": "int8[1]: steps of 1.702 x that are worth 1, from 6 on; I-ViT's x0 is -unit",
    },
    "outputs": {"y": "int32[M, N]: a step is worth 1/128 of one of x"},
    "flops": "18 * M * N",  # maximum, of E 10, sum, bound, division, product, shift, product
    "workloads": {
        "realistic": {"788x1536": "DeiT-S, 4 images", "3136x384": "Swin-T, first stage"},
        "tiny": {"tiny": {"M": 48, "N": 90}},
        "adversarial": {"4099x33": "an odd tail", "3x65537": "fewer rows than cores"},
    },
    "families": "large",
    "accuracy": "Bit for bit. Shifts to the right and divisions round down. Where a whole row is "
    "below 0, -m is not: its q is below 0, and E(-m) may need 64 bits; the sum is cut. e and e f "
    "fit in int32.",
}
SUNK = 8
"""One row of so many is below 0 as a whole."""


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Pair:
    """Numbers of both signs, the maximum of each row at any place; a few rows are below 0."""
    x = draw_whole(family, (M, N), rng, 90)
    if family in (Family.CONSTANT, Family.LARGE):
        x = np.abs(x) // 2 + rng.integers(0, 60, (M, 1))
        x[rng.random((M, N)) < 0.3] *= -1
    x[np.arange(M), draw_places(np.full(M, N), rng)] = rng.integers(60, 128, M)
    is_sunk = rng.random(M) < 1 / SUNK
    x[is_sunk] = -1 - np.abs(x[is_sunk]) * rng.integers(1, 4, (np.count_nonzero(is_sunk), 1)) // 3
    return np.clip(x, -127, 127).astype(np.int8), rng.integers(6, 25, 1).astype(np.int8)


def oracle(x: np.ndarray, unit: np.ndarray) -> Expected:
    """The definition in int64."""
    numbers, step = x.astype(np.int64), unit.astype(np.int64)
    top = numbers.max(1, keepdims=True)
    e = exponential(numbers - top, step, 23)
    total = np.minimum(e + exponential(-top, step, 23), LARGEST)
    return expect_whole(numbers * (e * (LARGEST // total) >> KEPT_BITS))


def by_compile(x: Any, unit: Any) -> Any:
    """The definition in int64, which a maximum below 0 needs."""
    numbers, step = x.long(), unit.long()
    top = numbers.amax(1, keepdim=True)
    e = exponential(numbers - top, step, 23)
    total = (e + exponential(-top, step, 23)).clip(max=LARGEST)
    return numbers * (e * (LARGEST // total) >> KEPT_BITS)
