# SPDX-License-Identifier: Apache-2.0
"""Layer normalisation over rows: mean and biased variance, eps 1e-5, then gamma and beta.

The mean of N terms is off by u sqrt(N) E|x|, which every element inherits: hence the scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS, expect_by_rows, gains, sum_products, thin_mirrored
from ..families import blemish, draw, noise
from ..problem import Arrays, Expected, Family, Pair, Prepared

PROBLEM = {
    "title": "Layer normalisation over rows",
    "definition": "y[i,j] = (x[i,j] - mean_i) / sqrt(var_i + 1e-5) * gamma[j] + beta[j], "
    "var_i the biased variance of row i",
    "source": "Layer normalization, arXiv 1607.06450; LightSeq2, arXiv 2110.05722",
    "tags": ["dense", "normalisation"],
    "is_row_wise": True,
    "axes": {"M": "rows", "N": "elements of a row"},
    "inputs": {
        "x": "float32[M, N]: row-major",
        "gamma": "float32[N]: gain",
        "beta": "float32[N]: shift",
    },
    "outputs": {"y": "float32[M, N]: row-major"},
    "flops": "8 * M * N",  # mean 1, centring 1, variance 2, scaling 2, gain and shift 2
    "workloads": {
        "realistic": {"4096x1024": "4096 tokens, 1024 wide", "1024x8192": "long rows"},
        "tiny": {"tiny": {"M": 64, "N": 200}},
        "adversarial": ["4099x33", "3x16383"],
    },
    # A row of equal elements gives beta, whatever the kernel does.
    "families": "-constant large nonfinite",
    # The error of one mean moves a whole row; half-precision inputs still miss this by far.
    "nrmse": 5e-5,
    "accuracy": "n = N + 16, s = |gamma| (|x - mean| + mean of |x|) / sigma + |beta|. The mean may "
    "be a hundred times the deviation: E[x^2] - mean^2 loses the variance there. A NaN makes its "
    "whole row NaN; infinities are never drawn.",
}
EPS = 1e-5


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Arrays:
    """Rows, and a signed gain and shift per column.

    LARGE has integers near 1000, so that every honest sum is exact (up to 16,777 elements; rows of
    more than 16,384 are thinned) and only a cancelling variance suffers. NONFINITE has NaN only: of
    a row with an infinity honest kernels make NaN or infinities.
    """
    gamma, beta = gains(N, rng), gains(N, rng)
    is_large = family is Family.LARGE
    x = np.rint(1000 + 8 * noise((M, N), rng)) if is_large else draw(family, (M, N), rng)
    thin_mirrored(family, x, rng)
    blemish(family, x, rng, (np.nan,))
    return {"x": x, "gamma": gamma, "beta": beta}


def oracle(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, N: int) -> Expected:
    """Two passes in float64."""

    def answer(row: np.ndarray, gain: np.ndarray, shift: np.ndarray) -> Pair:
        size = np.abs(row).mean(1, keepdims=True)
        row -= row.mean(1, keepdims=True)
        rstd = 1.0 / np.sqrt(sum_products(row, row) / N + EPS)
        scale = (np.abs(row) + size) * rstd * np.abs(gain) + np.abs(shift)
        return row * rstd * gain + shift, scale

    return expect_by_rows(answer, N + ROUNDINGS, x, gamma, beta)


def by_torch(torch: Any, x: Any, gamma: Any, beta: Any, y: Any, M: int, N: int) -> Prepared:
    """torch's own, with places for all that it gives."""
    mean, rstd = torch.empty(M, 1, dtype=x.dtype), torch.empty(M, 1, dtype=x.dtype)
    normalise, shape = torch.ops.aten.native_layer_norm.out, [N]
    return lambda: normalise(x, shape, gamma, beta, EPS, out0=y, out1=mean, out2=rstd)


def by_compile(torch: Any, x: Any, gamma: Any, beta: Any, N: int) -> Any:
    """torch's own."""
    return torch.nn.functional.layer_norm(x, (N,), gamma, beta, EPS)
