# SPDX-License-Identifier: Apache-2.0
"""Mamba-2's scan: a state for each head that decays and is added to, step by step.

Defined step by step; kernels take chunks of steps as products of matrices (state-space duality).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS
from ..families import draw, thin_columns
from ..problem import Expected, Family, Inputs
from ..state_space import draw_decays, scan, scan_in_torch

PROBLEM = {
    "title": "Scan of a state-space model (SSD)",
    "definition": "h[t] = exp(dt[i,t,h] A[h]) * h[t-1] + dt[i,t,h] * x[i,t,h,p] * B[i,t,n], "
    "h[-1] = 0, for each i, h, p and n; y[i,t,h,p] = sum over n of C[i,t,n] * h[t]",
    "source": "Mamba-2, arXiv 2405.21060; sizes of its models, one group of B and C",
    "headline": "2 to 8 times Mamba's fused scan on an A100, as reported",
    "tags": ["dense", "contraction"],
    "is_row_wise": True,
    "axes": {
        "M": "sequences",
        "L": "steps",
        "H": "heads",
        "P": "elements of a head",
        "N": "states of each element",
    },
    "lengths": {"L": 4096, "N": 512},
    "inputs": {
        "x": "float32[M, L, H, P]",
        "dt": "float32[M, L, H]: positive",
        "A": "float32[H]: negative",
        "B": "float32[M, L, N]",
        "C": "float32[M, L, N]",
    },
    "outputs": {"y": "float32[M, L, H, P]"},
    "flops": "5 * M * L * H * P * N + 24 * M * L * H",
    "workloads": {
        "realistic": {"1x512x24x64x128": "Mamba-2 130M", "2x1024x8x64x64": "a smaller state"},
        "tiny": {"tiny": {"M": 1, "L": 40, "H": 2, "P": 9, "N": 12}},
        "adversarial": {"2x257x3x33x17": "odd sizes", "1x3989x1x5x16": "a long sequence"},
    },
    "families": "-constant large",  # equal terms round alike
    "accuracy": "n = N + L + 16, s = the same scan of magnitudes: each step rounds what is left "
    "of all before. Sums of dt A over a chunk may be subtracted if it has no more than some "
    "hundred steps. Inputs are finite; exponents are never positive.",
}


def values(
    family: Family, rng: np.random.Generator, M: int, L: int, H: int, P: int, N: int
) -> Inputs:
    """Decays as trained models have them; LARGE is an input of thousands."""
    kind = Family.NORMAL if family is Family.LARGE else family
    x = draw(kind, (M * L * H, P), rng, varies=0, max_decades=0.5)
    x *= np.float32(1000 if family is Family.LARGE else 1)
    b, c = (draw(kind, (M * L, N), rng, varies=0, max_decades=0.5) for _ in "BC")
    thin_columns(family, c, rng)
    decayed = draw_decays(x.reshape(M, L, H, P), rng)
    return *decayed, b.reshape(M, L, N), c.reshape(M, L, N)


def oracle(x: Any, dt: Any, A: Any, B: Any, C: Any) -> Expected:
    """In float64, a chunk of steps at once, the state between them."""
    x, b, c = x * dt[..., None].astype(np.float64), B.astype(np.float64), C.astype(np.float64)
    power, many = dt.astype(np.float64) * A, sum(B.shape[1:]) + ROUNDINGS
    return Expected(scan(power, x, b, c), scan(power, *map(np.abs, (x, b, c))), many)


def by_compile(torch: Any, x: Any, dt: Any, A: Any, B: Any, C: Any) -> Any:
    """Chunks of 64 steps, as the paper's listing has them."""
    return scan_in_torch(torch, x.float(), dt.float(), A.float(), B.float(), C.float())
