# SPDX-License-Identifier: Apache-2.0
"""Shiftmax, I-ViT's softmax over rows of int8 by shifts, one division a row, and no float at all.

Differences to the maximum have 256 values at most: a table of their exponentials is one way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import draw_places
from ..integers import KEPT_BITS, LARGEST, draw_whole, expect_whole, exponential
from ..problem import Expected, Family, Pair

PROBLEM = {
    "title": "Shiftmax: an integer softmax over rows",
    "definition": "d = x[i,j] - max_k x[i,k]; p = max(d + floor(d/2) - floor(d/16), -15 unit)\n"
    "q = floor(-p / unit); r = p + unit q; e[j] = floor((r/2 + unit) 2^(15-q))\n"
    "y[i,j] = floor(e[j] floor((2^31-1) / min(sum_k e[k], 2^31-1)) / 2^24)",
    "source": "I-ViT, arXiv 2207.01405",
    "headline": "3.72 to 4.11 times a float model, as reported: DeiT, Swin on an RTX 2080 Ti",
    "tags": ["dense", "normalisation", "quantised"],
    "is_row_wise": True,
    "axes": {"M": "rows", "N": "elements of a row"},
    "inputs": {
        "x": "int8[M, N]: scores, row-major",
        "unit": "int8[1]: steps of x that are worth 1, from 1 on; I-ViT's x0 is -unit",
    },
    "outputs": {"y": "int8[M, N]: 0 to 127; 128 would be 1"},
    "flops": "14 * M * N",  # maximum, difference, 2 shifts, 3 sums, division, 3 of r and e, sum, 2
    "workloads": {
        "realistic": {"4728x197": "DeiT-S, 4 images, 6 heads", "9408x49": "Swin-T, 3 heads"},
        "tiny": {"tiny": {"M": 48, "N": 90}},
        "adversarial": {"4099x33": "an odd tail", "3x65537": "sums may be beyond 2^31"},
    },
    "families": "large",
    "accuracy": "Bit for bit. Shifts to the right round down, numbers below 0 too. A sum may be "
    "beyond 2^31 and is cut; every other number fits in int32.",
}
PEAKS = 3
"""High scores of a row: with one alone no sum would show."""
LOW, HIGH = 60, (85, 128)


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Pair:
    """Low scores and a few high ones, and a unit with which all low ones of a row count about as
    much as a high one. In CONSTANT and LARGE high ones are equal, or nearly, and from one to all of
    a row: its sum is as large as can be."""
    x = draw_whole(family, (M, N), rng, LOW) - LOW
    if family in (Family.CONSTANT, Family.LARGE):
        is_high = rng.random((M, N)) < (N + 1.0) ** -rng.random((M, 1))
        spread = 3 if family is Family.LARGE else 1
        x[is_high] = 127 - rng.integers(0, spread, np.count_nonzero(is_high))
    else:
        for _ in range(PEAKS):
            x[np.arange(M), draw_places(np.full(M, N), rng)] = rng.integers(*HIGH, M)
    unit = np.clip(1.5 * LOW / np.log(N + 1) * rng.uniform(0.6, 1.2), 1, 100)
    return x.astype(np.int8), np.array([unit], np.int8)


def oracle(x: np.ndarray, unit: np.ndarray) -> Expected:
    """The definition in int64."""
    scores = x.astype(np.int64)
    e = exponential(scores - scores.max(1, keepdims=True), unit.astype(np.int64), 15)
    total = np.minimum(e.sum(1, keepdims=True), LARGEST)
    return expect_whole(e * (LARGEST // total) >> KEPT_BITS)


def by_compile(x: Any, unit: Any) -> Any:
    """The definition in int32, but for the sum, which torch gives in int64."""
    scores = x.int()
    e = exponential(scores - scores.amax(1, keepdim=True), unit.int(), 15)
    factor = LARGEST // e.sum(1, keepdim=True).clip(max=LARGEST)
    return e * factor.int() >> KEPT_BITS
