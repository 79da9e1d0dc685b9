# SPDX-License-Identifier: Apache-2.0
"""Rotary position embedding: pairs of elements of each head turned by the token's angles."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..families import blemish, draw, draw_turns
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "Rotary position embedding (half-split)",
    "definition": "a = x[i,h,p], b = x[i,h,P+p]; y[i,h,p] = a * cos[i,p] - b * sin[i,p]; "
    "y[i,h,P+p] = b * cos[i,p] + a * sin[i,p]",
    "source": "RoFormer, arXiv 2104.09864; halves of a head as in GPT-NeoX and Llama",
    "tags": ["dense", "elementwise"],
    "is_row_wise": True,
    "axes": {"M": "tokens", "H": "heads", "P": "pairs of a head, half of its elements"},
    "inputs": {
        "x": "float32[M, H, 2*P]: queries or keys; of a head first halves, then second ones",
        "cos": "float32[M, P]: of the angles of each token",
        "sin": "float32[M, P]: of the same angles",
    },
    "outputs": {"y": "float32[M, H, 2*P]: as x"},
    "flops": "6 * M * H * P",
    "workloads": {
        "realistic": {"1024x32x64": "queries of Llama 3.1 8B", "4096x8x64": "its keys"},
        "tiny": {"tiny": {"M": 16, "H": 4, "P": 24}},
        "adversarial": {"1021x3x5": "odd pairs, fewer than vectors hold", "1x71x513": "one token"},
    },
    "families": "large nonfinite exact",
    "accuracy": "n = 2, s = |a cos| + |b sin|, of the other half |b cos| + |a sin|. NaN and "
    "infinities of x come out as the definition has them; cosines and sines may be NaN alone.",
}


def values(family: Family, rng: np.random.Generator, M: int, H: int, P: int) -> Inputs:
    """Cosines and sines of any angles."""
    x = draw(family, (M, H, 2 * P), rng)
    cos, sin = draw_turns(family, (M, P), rng)
    for array, kinds in ((x, (np.nan, np.inf, -np.inf)), (cos, (np.nan,)), (sin, (np.nan,))):
        blemish(family, array, rng, kinds)
    return x, cos, sin


def oracle(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, P: int) -> Expected:
    """The definition in float64."""
    a, b = x[..., :P].astype(np.float64), x[..., P:].astype(np.float64)
    c, s = (array[:, None].astype(np.float64) for array in (cos, sin))
    value = np.concatenate((a * c - b * s, b * c + a * s), 2)
    a, b, c, s = map(np.abs, (a, b, c, s))
    return Expected(value, np.concatenate((a * c + b * s, b * c + a * s), 2), 2.0)


def by_torch(torch: Any, x: Any, cos: Any, sin: Any, y: Any, P: int) -> Prepared:
    """Without a tensor between; halves as float32, which are rounded once."""
    if x.dtype != torch.float32:
        return lambda: y.copy_(by_compile(torch, x.float(), cos, sin, P))
    c, s = cos[:, None], sin[:, None]
    a, b, first, second = x[..., :P], x[..., P:], y[..., :P], y[..., P:]

    def compute() -> None:
        torch.mul(a, c, out=first).addcmul_(b, s, value=-1)
        torch.mul(b, c, out=second).addcmul_(a, s)

    return compute


def by_compile(torch: Any, x: Any, cos: Any, sin: Any, P: int) -> Any:
    """The definition."""
    c, s = cos[:, None], sin[:, None]
    a, b = x[..., :P], x[..., P:]
    return torch.cat((a * c - b * s, b * c + a * s), -1)
