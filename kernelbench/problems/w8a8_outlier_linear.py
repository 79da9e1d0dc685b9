# SPDX-License-Identifier: Apache-2.0
"""A linear layer on int8 whose few outlier columns of activations are floats beside the codes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import draw_rows
from ..families import blemish, draw_factors
from ..integers import add_outliers
from ..problem import Expected, Family, Inputs, Prepared
from ..quantising import falling_powers
from ..torch_calls import product_in_floats, turn

PROBLEM = {
    "title": "Linear layer on int8 with outlier columns in floats",
    "definition": "y[i,j] = sw[j] * (sx[i] * (sum over k of x[i,k] * w[j,k]) + sum over s of "
    "outliers[i,s] * w[j, columns[s]])",
    "source": "LLM.int8, arXiv 2208.07339; mllm-NPU, arXiv 2407.05858",
    "headline": "mllm-NPU: 22.4 times faster prefill of whole models, as reported, on phones",
    "tags": ["dense", "contraction", "quantised"],
    "is_row_wise": True,
    "axes": {"M": "tokens", "N": "outputs of the layer", "K": "its inputs", "S": "outlier columns"},
    "inputs": {
        "x": "int8[M, K]: activations, row-major, from -127 on",
        "w": "int8[N, K]: weights, likewise",
        "sx": "float32[M]: what a step of each token is worth",
        "sw": "float32[N]: what a step of each output's weights is worth",
        "columns": "int32[S]: which of the K are outliers, in no order; one may come twice",
        "outliers": "float32[M, S]: what a token has there beside its codes",
    },
    "bound": ["columns"],
    "outputs": {"y": "float32[M, N]: row-major"},
    "held": "N * S",
    "flops": "2 * M * N * K + 2 * M * N * S",
    "workloads": {
        "realistic": {"32x2048x2048x16": "Qwen1.5-1.8B", "4x4096x4096x28": "outliers of 0.7 %"},
        "tiny": {"tiny": {"M": 32, "N": 40, "K": 96, "S": 7}},
        "adversarial": {"129x65x257x9": "one more than tiles", "1x999x2047x130": "many outliers"},
    },
    "families": "large nonfinite exact",
    "accuracy": "n = S + 4, s = |sw| (|sx sum x w| + sum |outliers w|). Floats may be NaN.",
}
A = np.ndarray
T = Any


def values(family: Family, rng: np.random.Generator, M: int, N: int, K: int, S: int) -> Inputs:
    """Outliers are as large as a token's largest codes."""
    x, w = draw_factors(family, (M, K), (N, K), rng, varies=(0, 0))
    columns = rng.integers(0, K, S).astype(np.int32)
    if family is Family.EXACT:
        powers = [falling_powers(0, 4, (n,), rng) for n in (M, N)]
        return x, w, *powers, columns, draw_rows(family, (M, S), rng)
    sx, sw = ((10.0 ** rng.uniform(-3.0, -1.5, n)).astype(np.float32) for n in (M, N))
    outliers = rng.standard_normal((M, S), np.float32) * 200 * sx[:, None]
    for array in (sx, sw, outliers):
        blemish(family, array, rng, (np.nan,))
    return x, w, sx, sw, columns, outliers


def oracle(x: A, w: A, sx: A, sw: A, columns: A, outliers: A) -> Expected:
    """Both parts in float64."""
    weights, apart = w.astype(np.float64), outliers.astype(np.float64)
    codes = x.astype(np.float64) @ weights.T * sx.astype(np.float64)[:, None]
    there, factors = weights[:, columns.astype(np.int64)], sw.astype(np.float64)
    scale = (np.abs(codes) + np.abs(apart) @ np.abs(there).T) * np.abs(factors)
    return Expected((codes + apart @ there.T) * factors, scale, len(columns) + 4.0)


def by_floats(torch: T, x: T, w: T, sx: T, sw: T, columns: T, outliers: T, y: T) -> Prepared:
    """The product of codes in float32, where that is exact."""
    product = product_in_floats(torch, x, w.t())
    return lambda: y.copy_(add_outliers(product(), w, sx, sw, columns, outliers))


def by_compile(torch: T, x: T, w: T, sx: T, sw: T, columns: T, outliers: T) -> T:
    """The definition."""
    return add_outliers(torch._int_mm(x, turn(w)).float(), w, sx, sw, columns, outliers)
