# SPDX-License-Identifier: Apache-2.0
"""Softmax over the rows of a dense matrix. Its error law is that of exponentials.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import expect_by_rows, sum_products, sum_rows
from ..exponentials import OFFSETS, add_noise, draw_overflowing, softmax_of
from ..families import blemish, draw, single_out, sink
from ..masking import draw_mask
from ..problem import Expected, Family, Pair, Prepared

PROBLEM = {
    "title": "Softmax over rows",
    "definition": "y[i,j] = exp(x[i,j] - max_k x[i,k]) / sum_k exp(x[i,k] - max_k x[i,k])",
    "source": "KernelBench level 1; online normaliser, arXiv 1805.02867",
    "tags": ["dense", "normalisation"],
    "is_row_wise": True,
    "axes": {"M": "rows", "N": "elements of a row"},
    "inputs": {"x": "float32[M, N]: logits, row-major"},
    "outputs": {"y": "float32[M, N]: rows sum to 1"},
    "flops": "5 * M * N",  # maximum, subtraction, exponential, sum and division
    "workloads": {
        "realistic": ["4096x1024", "512x16384"],
        "tiny": {"tiny": {"M": 64, "N": 200}},
        "adversarial": ["4099x33", "3x16381"],
    },
    "families": "denormal large nonfinite",
    # A plain sum of 16,384 terms drifts by 1e-4; an answer rounded to fp16 is 2e-4 off.
    "nrmse": 1.5e-4,
    "accuracy": "n = N. {softmax law} For N = 1024 the limit is some 2e-5 r. A NaN makes its "
    "whole row NaN; -inf is a mask, never the first element of a row; +inf is never drawn.",
}


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> np.ndarray:
    """The logits. NONFINITE has masks of -inf and a few NaN."""
    if family is Family.LARGE:
        shift, lengths = rng.choice(OFFSETS, (M, 1)), np.full(M, N)
        return draw_overflowing((M, N), shift, np.arange(N), N, lengths, rng)
    x = draw(family, (M, N), rng, varies=0)
    if family in (Family.CONSTANT, Family.DENORMAL) and N > 1:
        # All equal gives 1/N everywhere, which tells nobody apart; one element per row stands out.
        single_out(x, rng, lambda value, _: value - np.float32(1))
    x = add_noise(x, family, rng)
    sink(x, np.arange(N), N, rng)
    if family is Family.NONFINITE:
        x[draw_mask(np.arange(N), N, np.arange(M)[:, None], (M, N), rng)] = -np.inf
        blemish(family, x, rng, (np.nan,))
    return x


def oracle(x: np.ndarray, N: int) -> Expected:
    """The definition in float64."""

    def answer(logits: np.ndarray) -> Pair:
        distance = logits.max(1, keepdims=True) - logits
        return softmax_of(distance, logits, float(N), sum_rows, sum_products)

    return expect_by_rows(answer, float(N), x)


def by_torch(torch: Any, x: Any, y: Any) -> Prepared:
    """In place of nothing: it writes y."""
    return lambda: torch.softmax(x, 1, out=y)


def by_compile(torch: Any, x: Any) -> Any:
    """The definition."""
    return torch.softmax(x, 1)
