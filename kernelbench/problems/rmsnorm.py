# SPDX-License-Identifier: Apache-2.0
"""Root-mean-square normalisation over rows, eps 1e-6, then gamma.

A sum of squares has no cancellation: its relative error is u sqrt(n).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS, expect_by_rows, gains, sum_products
from ..families import blemish, draw, single_out, thin_columns
from ..problem import Expected, Family, Pair, Prepared

PROBLEM = {
    "title": "Root-mean-square normalisation over rows",
    "definition": "y[i,j] = x[i,j] / sqrt(mean_k x[i,k]^2 + 1e-6) * gamma[j]",
    "source": "Root mean square layer normalization, arXiv 1910.07467",
    "tags": ["dense", "normalisation"],
    "is_row_wise": True,
    "axes": {"M": "rows", "N": "elements of a row"},
    "inputs": {"x": "float32[M, N]: row-major", "gamma": "float32[N]: gain"},
    "outputs": {"y": "float32[M, N]: row-major"},
    "flops": "4 * M * N",  # square and sum 2, scaling 1, gain 1
    "workloads": {
        "realistic": ["1024x4096", "8192x768"],
        "tiny": {"tiny": {"M": 64, "N": 200}},
        "adversarial": ["4099x33", "3x16383"],
    },
    "families": "large nonfinite",
    "nrmse": 5e-5,
    "accuracy": "n = N + 16, s = |r|. A NaN makes its whole row NaN; infinities are never drawn.",
}
EPS = 1e-6


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Pair:
    """Rows and a signed gain per column; CONSTANT has one element per row that differs.

    NONFINITE has NaN only: of a row with an infinity honest kernels make NaN or zeros.
    """
    gamma = gains(N, rng)
    x = draw(family, (M, N), rng, varies=0)
    thin_columns(family, x, rng)
    if family is Family.CONSTANT:
        single_out(x, rng, lambda value, _: value * 2)
    blemish(family, x, rng, (np.nan,))
    return x, gamma


def oracle(x: np.ndarray, gamma: np.ndarray, N: int) -> Expected:
    """The definition in float64."""

    def answer(row: np.ndarray, gain: np.ndarray) -> Pair:
        value = row / np.sqrt(sum_products(row, row) / N + EPS) * gain
        return value, np.abs(value)

    return expect_by_rows(answer, N + ROUNDINGS, x, gamma)


def by_torch(torch: Any, x: Any, gamma: Any, y: Any, M: int, N: int) -> Prepared:
    """Twice as fast as torch's own, which allocates and copies; in halves that one rounds once."""
    if x.dtype != torch.float32:
        return lambda: y.copy_(by_compile(torch, x, gamma, N))
    factor = torch.empty(M, 1)

    def compute() -> None:
        torch.linalg.vector_norm(x, 2, 1, True, out=factor).square_().div_(N).add_(EPS).rsqrt_()
        torch.mul(x, factor, out=y).mul_(gamma)

    return compute


def by_compile(torch: Any, x: Any, gamma: Any, N: int) -> Any:
    """torch's own."""
    return torch.nn.functional.rms_norm(x, (N,), gamma, EPS)
