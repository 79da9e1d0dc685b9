# SPDX-License-Identifier: Apache-2.0
"""y = A x: one token through a dense layer. Each element of A is used once, so memory is all."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..dense import multiply
from ..families import blemish, draw_factors, thin_columns
from ..problem import Expected, Family, Pair, Prepared

PROBLEM = {
    "title": "Dense matrix-vector product",
    "definition": "y[i] = sum over k of A[i,k] * x[k]",
    "source": "WaferLLM, arXiv 2502.04563; NeuPIMs, arXiv 2403.00579",
    "headline": "WaferLLM: 606 times faster than on an A100, on a wafer-scale engine, as reported; "
    "on a GPU or CPU the share of the memory's bandwidth tells",
    "tags": ["dense", "contraction"],
    "is_row_wise": True,
    "axes": {"M": "rows of A, elements of y", "K": "columns of A, elements of x"},
    "inputs": {"A": "float32[M, K]: weights, row-major", "x": "float32[K]: activations"},
    "outputs": {"y": "float32[M]: one number of each row"},
    "flops": "2 * M * K",
    "workloads": {
        "realistic": {
            "4096x2048": "half of a square projection of a model of 7 billion",
            "1536x8192": "a slice of a down-projection: rows longer than a first-level cache",
        },
        "tiny": {"tiny": {"M": 48, "K": 100}},
        "adversarial": {
            "20011x33": "short rows with an odd tail",
            "5x2053": "few rows, of prime length",
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = K, s = sum over k of |A[i,k] x[k]|. {running sum} NaN and infinities are in "
    "A alone; zero times infinity is NaN.",
}


def values(family: Family, rng: np.random.Generator, M: int, K: int) -> Pair:
    """Rows and the vector; one blemish of x would be in every answer, and hide those of A."""
    a, x = draw_factors(family, (M, K), (K, 1), rng, varies=(0, 1))
    thin_columns(family, a, rng)
    blemish(family, a, rng)
    return a, x[:, 0]


def oracle(A: np.ndarray, x: np.ndarray) -> Expected:
    """The product in float64; the scale is |A||x|."""
    return Expected(*multiply(A, x), float(len(x)))


def by_torch(torch: Any, A: Any, x: Any, y: Any) -> Prepared:
    """The library's product with a vector."""
    return partial(torch.mv, A, x, out=y)


def by_floats(torch: Any, A: Any, x: Any, y: Any) -> Prepared:
    """Narrow factors as float32, which are rounded once."""
    return lambda: y.copy_(torch.mv(A.float(), x.float()))


def by_numpy(A: np.ndarray, x: np.ndarray, y: np.ndarray) -> Prepared:
    """OpenBLAS."""
    return lambda: np.dot(A, x, out=y)


def by_compile(A: Any, x: Any) -> Any:
    """The definition as one loop."""
    return (A.float() * x.float()).sum(1)
