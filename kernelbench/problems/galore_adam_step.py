# SPDX-License-Identifier: Apache-2.0
"""One step of Adam in a low-rank space of a weight's gradient (GaLore): moments are R by N."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import ROUNDINGS, multiply
from ..families import blemish, draw, thin_columns
from ..low_rank import B1, B2, EPS, turn_moments
from ..problem import Expected, Family, Inputs

PROBLEM = {
    "title": "A step of Adam on a projected gradient (GaLore)",
    "definition": "r = P^T G; m1 = 0.9 m + 0.1 r; v1 = 0.999 v + 0.001 r^2; W1 = W - rate P ((m1 / "
    "c1) / (sqrt(v1 / c2) + 1e-8)); c1 = 1 - 0.9^t, c2 = 1 - 0.999^t and rate (with GaLore's "
    "scale) are given",
    "source": "GaLore, arXiv 2403.03507",
    "headline": "memory of optimizer states up to 65.5 % less, for LLaMA 1B and 7B, as reported",
    "tags": ["dense", "contraction", "training"],
    "axes": {"M": "rows of the weight", "N": "its columns", "R": "rank"},
    "lengths": {"R": 1024},
    "inputs": {
        "W": "float32[M, N]: the weight, row-major",
        "G": "float32[M, N]: its gradient",
        "P": "float32[M, R]: the projection; its columns need not be orthonormal",
        "m": "float32[R, N]: running mean of projected gradients",
        "v": "float32[R, N]: running mean of their squares, not negative",
        "step": "float32[3]: rate, c1 and c2",
    },
    "outputs": {"W1": "float32[M, N]: the next", "m1": "float32[R, N]", "v1": "float32[R, N]"},
    "flops": "4 * M * N * R + 12 * R * N + 2 * M * N",
    "workloads": {
        "realistic": {"512x1376x128": "LLaMA 60M", "768x2048x256": "LLaMA 130M"},
        "tiny": {"tiny": {"M": 40, "N": 70, "R": 9}},
        "adversarial": {"257x1009x33": "odd sizes", "1021x7x65": "a few columns"},
    },
    "families": "-constant large nonfinite",  # equal terms round alike
    "accuracy": "a = |P^T| |G|. m1: n = M + 16, s = 0.9 |m| + 0.1 a; v1: s = 0.999 v + 0.002 |r| a "
    "and little more. W1: n = M + R + 16, s = |W| + rate |P| times what these make of the step. "
    "{running sum} A NaN of G is in its column of all three; infinities are never drawn.",
}


def values(family: Family, rng: np.random.Generator, M: int, N: int, R: int) -> Inputs:
    """Columns of P have a length of about 1; moments are as large as what is projected, and a step
    moves the weight visibly. Some columns never had a gradient."""
    kind = Family.NORMAL if family is Family.LARGE else family
    turned, g = draw(kind, (R, M), rng, max_decades=0), draw(family, (M, N), rng)
    thin_columns(family, turned, rng)
    p = np.ascontiguousarray(turned.T) / np.float32(np.sqrt(np.square(turned).sum() / R + 1e-9))
    g[:, rng.random(N) < 1 / 16] = 0
    size = np.abs(p.T @ g).mean(0)
    m = draw(Family.NORMAL, (R, N), rng, max_decades=0.3) * size
    v = np.square(draw(Family.UNIFORM, (R, N), rng, max_decades=0.3) * size)
    blemish(family, g, rng, (np.nan,))
    t, w = int(rng.integers(1, 1000)), draw(kind, (M, N), rng, max_decades=0.3)
    step = np.array([rng.uniform(0.01, 0.1), 1 - B1**t, 1 - B2**t], np.float32)
    return w, g, p, m, v, step


def oracle(W: Any, G: Any, P: Any, m: Any, v: Any, step: Any) -> tuple[Expected, ...]:
    """The definition in float64, with what rounding r makes of moments and of the step."""
    W, m, v, (rate, *corrections) = (each.astype(np.float64) for each in (W, m, v, step))
    (r, a), terms = multiply(P.T, G), len(P) + ROUNDINGS
    turn = turn_moments(r, a, m, v, corrections, terms)
    moved, _ = multiply(P, turn.way)
    scale = np.abs(W) + rate * (np.abs(P) @ turn.way_scale)
    return Expected(W - rate * moved, scale, terms + P.shape[1]), turn.mean, turn.square


def by_compile(W: Any, G: Any, P: Any, m: Any, v: Any, step: Any) -> Any:
    """The definition, in float32 whatever the tensors are."""
    W, G, P, m, v, (rate, c1, c2) = (each.float() for each in (W, G, P, m, v, step))
    r = P.t() @ G
    m1, v1 = B1 * m + (1 - B1) * r, B2 * v + (1 - B2) * r * r
    return W - rate * (P @ (m1 / c1 / ((v1 / c2).sqrt() + EPS))), m1, v1
