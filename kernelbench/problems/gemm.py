# SPDX-License-Identifier: Apache-2.0
"""C = A B, all dense: the yardstick, since a library is already near the machine's peak."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..dense import multiply
from ..families import blemish, draw_factors, thin_columns
from ..problem import BaselineCall, Expected, Family, Pair, Prepared
from ..torch_calls import demand_onednn, product_in_floats

PROBLEM = {
    "title": "Dense matrix product",
    "definition": "C[i,j] = sum over k of A[i,k] * B[k,j]",
    "source": "CUDA-L2 (shape grid); KernelBench level 1",
    "tags": ["dense", "contraction"],
    "is_row_wise": True,
    "axes": {"M": "rows of A and C", "N": "columns of B and C", "K": "columns of A, rows of B"},
    "inputs": {"A": "float32[M, K]: row-major", "B": "float32[K, N]: row-major"},
    "outputs": {"C": "float32[M, N]: row-major"},
    "flops": "2 * M * N * K",
    "policies": ["tf32", "tf32x3", "int8"],
    "workloads": {
        "realistic": {
            "512": {"M": 512, "N": 512, "K": 512},
            "1024x256x768": "a projection of a small transformer",
        },
        "tiny": {"tiny": {"M": 64, "N": 64, "K": 64}},
        "adversarial": {
            "129x65x257": "one more than tile sizes, a prime depth",
            "1x1000x2048": "a single row: bound by memory",
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = K, s = sum over k of |A[i,k] B[k,j]|. {running sum} Zero times infinity is "
    "NaN.",
}


def values(family: Family, rng: np.random.Generator, M: int, N: int, K: int) -> Pair:
    """The two factors; constant along the reduction where they are constant."""
    a, b = draw_factors(family, (M, K), (K, N), rng, varies=(0, 1))
    thin_columns(family, a, rng)
    blemish(family, a, rng)
    blemish(family, b, rng)
    return a, b


def oracle(A: np.ndarray, B: np.ndarray) -> Expected:
    """The product in float64; the scale is |A||B|."""
    return Expected(*multiply(A, B), float(A.shape[1]))


def by_torch(torch: Any, A: Any, B: Any, C: Any) -> Prepared:
    """MKL, or OpenBLAS; torch.compile hands a lone product to the same call."""
    return partial(torch.mm if A.is_floating_point() else torch._int_mm, A, B, out=C)


def by_floats(torch: Any, A: Any, B: Any, C: Any) -> Prepared:
    """Narrow factors as float32, or as float64 where sums of integers need it."""
    product = product_in_floats(torch, A, B)
    return lambda: C.copy_(product())


def by_numpy(A: np.ndarray, B: np.ndarray, C: np.ndarray) -> Prepared:
    """OpenBLAS."""
    return lambda: np.dot(A, B, out=C)


def by_onednn(torch: Any, A: Any, B: Any, C: Any) -> Prepared:
    """The library that torch leaves a few rows by many columns to MKL for: it is faster there."""
    demand_onednn(torch, A.dtype)
    linear, turned = torch.ops.mkldnn._linear_pointwise, B.t()
    return lambda: C.copy_(linear(A, turned, None, "none", [], ""))


def by_cupy(call: BaselineCall) -> Prepared:
    """cuBLAS."""
    from ..cupy_calls import product

    return product(call)
