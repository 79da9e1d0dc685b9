# SPDX-License-Identifier: Apache-2.0
"""The Walsh–Hadamard transform of rows, which spreads outliers before they are quantised."""

from __future__ import annotations

from math import log2, sqrt
from typing import Any

import numpy as np

from ..dense import draw_rows, expect_by_rows
from ..families import blemish, single_out
from ..problem import Expected, Family, Pair, Prepared

PROBLEM = {
    "title": "Walsh-Hadamard transform of rows",
    "definition": "y[i,j] = sum over k of (-1)^popcount(j & k) * x[i,k] / sqrt(N)",
    "source": "QuaRot, arXiv 2404.00456; fast-hadamard-transform (Dao-AILab)",
    "tags": ["dense", "transform"],
    "is_row_wise": True,
    "axes": {"M": "rows", "N": "elements of a row, a power of two"},
    "lengths": {"N": "power of 2"},
    "inputs": {"x": "float32[M, N]: row-major"},
    "outputs": {"y": "float32[M, N]: row-major, in natural (Hadamard) order"},
    "flops": "12 * M * N",  # log2 N stages, at N = 4096: no formula has a logarithm
    "workloads": {
        "realistic": {"512x4096": "Llama 3.1 8B", "4096x512": "short rows"},
        "tiny": {"tiny": {"M": 48, "N": 64}},
        "adversarial": {"4099x32": "rows of a few vectors", "3x32768": "the longest rows"},
    },
    "families": "large nonfinite probe",
    "accuracy": "n = log2 N + 2, s = sum over k of |x[i,k]| / sqrt(N): what a butterfly keeps, and "
    "one running sum of thousands does not. A NaN makes its row NaN, an infinity infinite.",
}


def values(family: Family, rng: np.random.Generator, M: int, N: int) -> np.ndarray:
    """Of equal elements one differs: all answers but one were 0. PROBE has one that is not 0."""
    x = draw_rows(family, (M, N), rng, 1)
    if family is Family.CONSTANT:
        single_out(x, rng, lambda value, _: value * 2)
    blemish(family, x, rng)
    return x


def factors(N: int) -> Pair:
    """The transforms of columns and of rows of a row as a matrix, float64, the second scaled."""
    found: list[np.ndarray] = [np.ones((1, 1)), np.ones((1, 1))]
    while found[0].size * found[1].size < N * N:
        found = [np.kron([[1, 1], [1, -1]], found[1]), found[0]]
    return found[0], found[1] / sqrt(N)


def oracle(x: np.ndarray, N: int) -> Expected:
    """By way of the factors, in float64."""
    left, right = factors(N)

    def answer(row: np.ndarray) -> Pair:
        value = left @ row.reshape(-1, len(left), len(right)) @ right
        scale = np.abs(row).sum(1, keepdims=True) / sqrt(N)
        return value.reshape(row.shape), np.broadcast_to(scale, row.shape)

    return expect_by_rows(answer, log2(N) + 2, x)


def by_torch(torch: Any, x: Any, y: Any, M: int, N: int) -> Prepared:
    """By way of the factors; halves as float32, which are rounded once."""
    left, right = (torch.from_numpy(factor).float() for factor in factors(N))
    wide, into = x.view(-1, len(right)), y.view(M, len(left), -1)
    if x.dtype != torch.float32:
        return lambda: into.copy_(left @ (wide.float() @ right).view_as(into))
    between = torch.empty_like(wide)
    return lambda: torch.matmul(left, torch.mm(wide, right, out=between).view_as(into), out=into)


def by_compile(torch: Any, x: Any, M: int, N: int) -> Any:
    """A butterfly."""
    value, apart = x.float(), 1
    while apart < N:
        a, b = value.view(M, -1, 2, apart).unbind(2)
        value, apart = torch.stack((a + b, a - b), 2).view(M, N), 2 * apart
    return value / sqrt(N)
