# SPDX-License-Identifier: Apache-2.0
"""A dense layer on few tokens, as a server's decoding steps call it: weights are read once, or it
is slow."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..dense import multiply
from ..families import blemish, draw_factors, thin_columns
from ..problem import Expected, Family, Pair, Prepared
from ..torch_calls import demand_onednn

PROBLEM = {
    "title": "Dense layer on few tokens (skinny product)",
    "definition": "Y[i,j] = sum over k of X[i,k] * W[j,k], for at most 64 tokens",
    "source": "DeepSpeed Inference (SBI-GeMM), arXiv 2207.00032; Flash-LLM, arXiv 2309.10285",
    "headline": "DeepSpeed Inference: latency of whole models up to 7.3 times lower, as reported",
    "tags": ["dense", "contraction"],
    "is_row_wise": True,
    "axes": {"M": "tokens", "N": "outputs of the layer", "K": "its inputs"},
    "lengths": {"M": 64},
    "inputs": {
        "X": "float32[M, K]: activations, row-major",
        "W": "float32[N, K]: weights, row-major",
    },
    "outputs": {"Y": "float32[M, N]: row-major"},
    "flops": "2 * M * N * K",
    "workloads": {
        "realistic": {
            "8x2048x4096": "8 decodes, half of a projection of Llama 7B",
            "32x1376x4096": "32 decodes, an eighth of its feed-forward layer",
        },
        "tiny": {"tiny": {"M": 5, "N": 40, "K": 96}},
        "adversarial": {
            "63x65x257": "tails along every axis",
            "3x1000x2047": "odd rows of weights",
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = K, s = sum over k of |X[i,k] W[j,k]|. {running sum} Zero times infinity is "
    "NaN.",
}


def values(family: Family, rng: np.random.Generator, M: int, N: int, K: int) -> Pair:
    """The two factors; constant along the reduction where they are constant."""
    x, w = draw_factors(family, (M, K), (K, N), rng, varies=(0, 1))
    thin_columns(family, x, rng)
    w = np.ascontiguousarray(w.T)
    blemish(family, x, rng)
    blemish(family, w, rng)
    return x, w


def oracle(X: np.ndarray, W: np.ndarray) -> Expected:
    """The product in float64; the scale is |X||W|."""
    return Expected(*multiply(X, W.T), float(X.shape[1]))


def by_torch(torch: Any, X: Any, W: Any, Y: Any) -> Prepared:
    """The library's product, which takes the weights as they lie."""
    return partial(torch.mm, X, W.t(), out=Y)


def by_floats(torch: Any, X: Any, W: Any, Y: Any) -> Prepared:
    """Narrow factors as float32, which are rounded once."""
    return lambda: Y.copy_(torch.mm(X.float(), W.float().t()))


def by_numpy(X: np.ndarray, W: np.ndarray, Y: np.ndarray) -> Prepared:
    """OpenBLAS."""
    return lambda: np.dot(X, W.T, out=Y)


def by_onednn(torch: Any, X: Any, W: Any, Y: Any) -> Prepared:
    """The library that torch leaves some shapes to MKL for."""
    demand_onednn(torch, X.dtype)
    linear = torch.ops.mkldnn._linear_pointwise
    return lambda: Y.copy_(linear(X, W, None, "none", [], ""))
