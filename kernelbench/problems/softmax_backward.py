# SPDX-License-Identifier: Apache-2.0
"""The backward of softmax over rows: the gradient of its input from that of its answer.

The sum of y dy has a rounding error of u sqrt(N) times the sum of |y dy|; difference and product
round once each: hence the scale.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import expect_by_rows, sum_products
from ..families import blemish, draw, full_mantissa, noise, probe_rows, thin_columns
from ..problem import Expected, Family, Pair, Prepared

PROBLEM = {
    "title": "Backward of softmax over rows",
    "definition": "dx[i,j] = y[i,j] * (dy[i,j] - sum_k y[i,k] dy[i,k])",
    "source": "the derivative of softmax, as in KernelBench level 1",
    "tags": ["dense", "normalisation", "backward"],
    "backward_of": "softmax",
    "is_row_wise": True,
    "axes": {"M": "rows", "N": "elements of a row"},
    "inputs": {"y": "float32[M, N]: the forward's answer", "dy": "float32[M, N]: gradient of y"},
    "outputs": {"dx": "float32[M, N]: gradient of x"},
    "flops": "4 * M * N",  # product and sum, difference and product
    "workloads": {
        "realistic": ["4096x1024", "512x16384"],
        "tiny": {"tiny": {"M": 64, "N": 200}},
        "adversarial": ["4099x33", "3x16381"],
    },
    "families": "-constant large nonfinite exact probe",  # of a constant gradient nothing is left
    "nrmse": 5e-5,
    "accuracy": "n = N, s = |y| (|dy| + sum of |y dy| over the row). Rows of y need not sum to 1. "
    "NaN and infinities in dy come out where the definition has them.",
}
PROBE_SCALE = np.float32(2.0**-6)
"""Keeps the sum far below each dy, so that no cancellation hides or feigns an error."""


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> Pair:
    """The softmax of normal logits, and a gradient of the family."""
    shape = (M, N)
    if family is Family.EXACT:
        # Powers of two of which N sum to at most 1: every honest step is exact.
        power = np.float32(2.0 ** -np.ceil(np.log2(N)))
        y = rng.integers(0, 2, shape).astype(np.float32) * power
        return y, draw(family, shape, rng)
    if family is Family.PROBE:
        return probe_rows(shape, rng) * PROBE_SCALE, full_mantissa(shape, rng)
    risen = np.exp(noise(shape, rng))
    y = risen / risen.sum(1, keepdims=True)
    thin_columns(family, y, rng)
    dy = draw(family, shape, rng)
    blemish(family, dy, rng)
    return y, dy


def oracle(y: np.ndarray, dy: np.ndarray, N: int) -> Expected:
    """y (dy - sum y dy) in float64."""

    def answer(weight: np.ndarray, gradient: np.ndarray) -> Pair:
        value = weight * (gradient - sum_products(weight, gradient))
        weight, gradient = np.abs(weight), np.abs(gradient)
        return value, weight * (gradient + sum_products(weight, gradient))

    return expect_by_rows(answer, float(N), y, dy)


def by_torch(torch: Any, y: Any, dy: Any, dx: Any) -> Prepared:
    """What autograd calls, with a place for its answer."""
    backward = torch.ops.aten._softmax_backward_data.out
    return lambda: backward(dy, y, 1, torch.float32, grad_input=dx)


def by_compile(y: Any, dy: Any) -> Any:
    """The definition; halves as float32, which are rounded once."""
    y, dy = y.float(), dy.float()
    return y * (dy - (y * dy).sum(1, keepdim=True))
