# SPDX-License-Identifier: Apache-2.0
"""Softmax over the rows of a dense matrix. Its error law is that of exponentials.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import blocks_of_rows
from ..exponentials import FARTHEST, add_noise, drift, reach, softmax_scale
from ..families import blemish, draw, noise, raise_peaks, sink
from ..problem import Expected, Family, Prepared

PROBLEM = {
    "title": "Softmax over rows",
    "definition": "y[i,j] = exp(x[i,j] - max_k x[i,k]) / sum_k exp(x[i,k] - max_k x[i,k])",
    "source": "KernelBench level 1; online normaliser, arXiv 1805.02867",
    "tags": ["dense", "normalisation"],
    "is_row_wise": True,
    "axes": {"M": "rows", "N": "elements of a row"},
    "inputs": {"x": "float32[M, N]: logits, row-major"},
    "outputs": {"y": "float32[M, N]: rows sum to 1"},
    # Maximum, subtraction, exponential, sum and division.
    "flops": "5 * M * N",
    "workloads": {
        "realistic": {
            "4096x1024": "attention scores of 4096 queries over 1024 keys",
            "512x16384": "long rows, as over a vocabulary",
        },
        "tiny": {"tiny": {"M": 64, "N": 200}},
        "adversarial": {
            "4099x33": "short rows with an odd tail",
            "3x16381": "fewer rows than most machines have cores",
        },
    },
    "families": "denormal large nonfinite",
    # A plain sum of 16,384 terms drifts by 1e-4; an answer rounded to fp16 is 2e-4 off.
    "nrmse": 1.5e-4,
    "accuracy": "n = N. With d = max - x + |x| of an element and D the mean of d weighted by r the "
    "limit is 4 u r (2 sqrt(N) + d + D + 8), some 2e-5 r for N = 1024: enough for an exponential "
    "that is a few units in the last place off, and for one to the base 2 of x log2(e). Answers "
    "below 2^-124 may be flushed to 0. A NaN makes its whole row NaN; -inf is a mask, never the "
    "first element of a row; +inf is never drawn.",
}


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> np.ndarray:
    """The logits; LARGE has some that overflow exp without the subtraction of the maximum, and in
    half of the rows one that overflows it unless the maximum is that one.

    NONFINITE has a mask: -inf from some place of a row on, as in causal attention, and a few NaN.
    Of a LONG row most logits are too low to count: a plain sum of so many exponentials drifts
    beyond any limit that tells a downcast.
    """
    if family is Family.LARGE:
        x = noise((M, N), rng)
        x += rng.choice(np.array((100, 150, 200, -120), np.float32), (M, 1))
        sink(x, np.arange(N), N, rng)
        raise_peaks(x.reshape(-1, 1), np.full(M, N), rng)
        return x
    x = draw(family, (M, N), rng, varies=0)
    if family in (Family.CONSTANT, Family.DENORMAL) and N > 1:
        # All equal gives 1/N everywhere, which tells nobody apart; one element per row stands out.
        place = rng.integers(0, N, (M, 1))
        np.put_along_axis(x, place, np.take_along_axis(x, place, 1) - np.float32(1), 1)
    x = add_noise(x, family, rng)
    sink(x, np.arange(N), N, rng)
    if family is Family.NONFINITE:
        is_masked = np.arange(N) >= rng.integers(1, N + 1, (M, 1))
        x[is_masked & (rng.random((M, 1)) < 0.5)] = -np.inf
        blemish(x, rng, (np.nan,))
    return x


def oracle(x: np.ndarray) -> Expected:
    """The definition in float64."""
    value, scale, terms = np.empty(x.shape), np.empty(x.shape), float(x.shape[1])
    for part in blocks_of_rows(x.shape):
        distance = x[part].astype(np.float64)
        np.subtract(distance.max(1, keepdims=True), distance, out=distance)
        np.minimum(distance, FARTHEST, out=distance)
        y = np.exp(-distance, out=value[part])
        y /= y.sum(1, keepdims=True)
        reached = reach(distance, x[part])
        spread = np.einsum("ij,ij->i", y, reached)[:, None]
        lost = drift(y).sum(1, keepdims=True)
        softmax_scale(y, reached, spread, terms, lost, out=scale[part])
    return Expected(value, scale, terms)


def by_torch(torch: Any, x: Any, y: Any) -> Prepared:
    """In place of nothing: it writes y."""
    return lambda: torch.softmax(x, 1, out=y)


def by_compile(torch: Any, x: Any) -> Any:
    """The definition."""
    return torch.softmax(x, 1)
