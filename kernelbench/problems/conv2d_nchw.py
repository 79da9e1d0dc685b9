# SPDX-License-Identifier: Apache-2.0
"""Two-dimensional convolution, channels first, with stride 1 and nothing around the image."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish, draw_factors, thin_columns
from ..problem import Expected, Family, Pair, Prepared

PROBLEM = {
    "title": "2-D convolution (NCHW), stride 1, no padding",
    "definition": "y[i,f,p,q] = sum over c, r <= R, s <= R of w[f,c,r,s] * x[i,c,p+r,q+s]",
    "source": "Im2win, arXiv 2306.14316 (layers of its benchmark); KernelBench level 1",
    "headline": "1.8x the best of cuDNN's algorithms with 32.8 % less memory, batch 128, as "
    "reported",
    "tags": ["dense", "contraction", "convolution"],
    "is_row_wise": True,
    "axes": {
        "M": "images",
        "C": "channels of the images",
        "F": "filters, channels of the output",
        "P": "rows of the output",
        "Q": "columns of the output",
        "R": "2 or 4: a filter is R+1 by R+1",
    },
    "lengths": {"R": (2, 4)},
    "inputs": {"x": "float32[M, C, P+R, Q+R]", "w": "float32[F, C, R+1, R+1]: filters"},
    "outputs": {"y": "float32[M, F, P, Q]"},
    "flops": "2*M*F*P*Q*C*R*R + 4*M*F*P*Q*C*R + 2*M*F*P*Q*C",
    "workloads": {
        "realistic": {
            "conv9": {"M": 1, "C": 64, "F": 64, "P": 54, "Q": 54, "R": 2, "note": "one image"},
            "conv12": {"M": 2, "C": 512, "F": 512, "P": 5, "Q": 5, "R": 2, "note": "two images"},
        },
        "tiny": {"tiny": {"M": 1, "C": 8, "F": 12, "P": 10, "Q": 14, "R": 2}},
        "adversarial": {
            "odd": {"M": 1, "C": 3, "F": 37, "P": 97, "Q": 61, "R": 4, "note": "5x5, odd sizes"},
            "deep": {"M": 3, "C": 509, "F": 5, "P": 13, "Q": 3, "R": 2, "note": "narrow and deep"},
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = C (R+1)^2, s = sum of the products' magnitudes. {running sum} Zero times "
    "infinity is NaN, and an infinity reaches no answer but those that it is a term of: what mixes "
    "a tile's elements (Winograd, FFT) spreads it.",
}


def values(
    family: Family, rng: np.random.Generator, M: int, C: int, F: int, P: int, Q: int, R: int
) -> Pair:
    """The two factors; each filter and each image is constant where they are constant."""
    depth, size = C * (R + 1) ** 2, C * (P + R) * (Q + R)
    w, x = draw_factors(family, (F, depth), (M, size), rng, varies=(0, 0))
    thin_columns(family, w, rng)
    blemish(family, w, rng)
    blemish(family, x.reshape(M * C, -1), rng)
    return x.reshape(M, C, P + R, Q + R), w.reshape(F, C, R + 1, R + 1)


def oracle(x: np.ndarray, w: np.ndarray, M: int, F: int, P: int, Q: int) -> Expected:
    """A product of matrices for each place of the filter; magnitudes in float32."""

    def add_up(x: np.ndarray, w: np.ndarray) -> np.ndarray:
        total = np.zeros((M, F, P * Q))
        for r, s in np.ndindex(w.shape[2:]):
            part = x[:, :, r : r + P, s : s + Q].reshape(M, -1, P * Q)
            total += np.ascontiguousarray(w[:, :, r, s]) @ part
        return total.reshape(M, F, P, Q)

    value = add_up(x.astype(np.float64), w.astype(np.float64))
    return Expected(value, add_up(np.abs(x), np.abs(w)), float(w[0].size))


def by_torch(torch: Any, x: Any, w: Any, y: Any) -> Prepared:
    """oneDNN's, which chooses its algorithm."""
    return lambda: y.copy_(torch.nn.functional.conv2d(x, w))


def by_compile(torch: Any, x: Any, w: Any) -> Any:
    """torch's own."""
    return torch.nn.functional.conv2d(x, w)
