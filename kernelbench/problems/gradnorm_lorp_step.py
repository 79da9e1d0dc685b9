# SPDX-License-Identifier: Apache-2.0
"""One step of Adam on a weight's direction, in a space of low rank on both sides (GradNormLoRP)."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import low_rank as low
from ..dense import ROUNDINGS
from ..families import draw
from ..problem import Expected, Family, Inputs

A = Any

PROBLEM = {
    "title": "A step of Adam on a normalised weight's direction, projected twice (GradNormLoRP)",
    "definition": "G is the gradient of g V / |V|, |V| the lengths of V's columns. With u = V / "
    "|V| that of V is D = (G - u d) g / |V|, d[j] = sum over i of u[i,j] G[i,j]\n"
    "r = P^T D Q; m1 = 0.9 m + 0.1 r; v1 = 0.999 v + 0.001 r^2; V1 = V - rate P ((m1 / c1) / "
    "(sqrt(v1 / c2) + 1e-8)) Q^T; c1 = 1 - 0.9^t, c2 = 1 - 0.999^t and rate are given",
    "source": "GradNormLoRP, arXiv 2412.19616",
    "headline": "memory of optimizer states up to 89.5 % less (8 bits), as reported",
    "tags": ["dense", "contraction", "training"],
    "axes": {"M": "rows of the weight", "N": "its columns", "R": "rank"},
    "lengths": {"R": 512},
    "inputs": {
        "V": "float32[M, N]: the direction, row-major; no column is 0",
        "G": "float32[M, N]: the gradient of the normalised weight",
        "g": "float32[N]: the magnitude of each column",
        "P": "float32[M, R]: the projection of columns; they need not be orthonormal",
        "Q": "float32[N, R]: the projection of rows",
        "m": "float32[R, R]: running mean of projected gradients",
        "v": "float32[R, R]: running mean of their squares, not negative",
        "step": "float32[3]: rate, c1 and c2",
    },
    "outputs": {"V1": "float32[M, N]: the next", "m1": "float32[R, R]", "v1": "float32[R, R]"},
    "flops": "4 * M * N * R + 4 * N * R * R + 10 * M * N",
    "workloads": {
        "realistic": {"768x3072x8": "RoBERTa base", "512x1376x128": "LLaMA 60M"},
        "tiny": {"tiny": {"M": 40, "N": 70, "R": 9}},
        "adversarial": {"257x1009x33": "odd sizes", "1021x7x65": "a few columns"},
    },
    "families": "-constant large",  # equal terms round alike
    "accuracy": "a = |P^T| (|G| + |u| (|u|^T |G|)) g / |V| |Q|. m1: n = M + N + 16, s = 0.9 |m| + "
    "0.1 a; v1: s = 0.999 v + 0.002 |r| a and little more. V1: n = M + N + 2 R + 16, s = |V| + "
    "rate |P| times what these make of the step times |Q^T|. {running sum} NaN and infinities are "
    "never drawn: one of G would be everywhere.",
}


def values(family: Family, rng: np.random.Generator, M: int, N: int, R: int) -> Inputs:
    """Magnitudes are about the lengths of columns, as where training begins, and moments as large
    as what is projected."""
    kind = Family.NORMAL if family is Family.LARGE else family
    V, G = draw(kind, (M, N), rng, max_decades=0.3), draw(family, (M, N), rng)
    V[0] += V[0] == 0
    g = (rng.uniform(0.5, 2, N) * np.sqrt(np.square(V).sum(0))).astype(np.float32)
    P, Q = (low.draw_projection(n, R, rng) for n in (M, N))
    d, _ = low.direct_gradient(V, G, g)
    usual = np.square(d).mean() ** 0.5
    m, v = low.draw_moments(max(np.abs(P.T @ d @ Q).mean(), 1e-3 * usual), (R, R), rng)
    return V, G, g, P, Q, m, v, low.draw_step(rng)


def oracle(V: A, G: A, g: A, P: A, Q: A, m: A, v: A, step: A) -> tuple[Expected, ...]:
    """The definition in float64."""
    V, P, Q, m, v, (rate, *corrections) = (x.astype(np.float64) for x in (V, P, Q, m, v, step))
    d, size = low.direct_gradient(V, G, g.astype(np.float64))
    r, scale, terms = P.T @ d @ Q, np.abs(P).T @ size @ np.abs(Q), len(P) + len(Q) + ROUNDINGS
    turn = low.turn_moments(r, scale, m, v, corrections, terms)
    moved = np.abs(V) + rate * (np.abs(P) @ turn.way_scale @ np.abs(Q).T)
    after = Expected(V - rate * (P @ turn.way @ Q.T), moved, terms + 2 * P.shape[1])
    return after, turn.mean, turn.square


def by_compile(V: A, G: A, g: A, P: A, Q: A, m: A, v: A, step: A) -> A:
    """The definition, in float32 whatever the tensors are."""
    V, G, g, P, Q, m, v, (rate, c1, c2) = (each.float() for each in (V, G, g, P, Q, m, v, step))
    length = V.norm(dim=0)
    r = P.t() @ ((G - V * ((V * G).sum(0) / length**2)) * (g / length)) @ Q
    m1, v1 = low.B1 * m + (1 - low.B1) * r, low.B2 * v + (1 - low.B2) * r * r
    return V - rate * (P @ (m1 / c1 / ((v1 / c2).sqrt() + low.EPS)) @ Q.t()), m1, v1
