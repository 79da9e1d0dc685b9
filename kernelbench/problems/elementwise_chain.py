# SPDX-License-Identifier: Apache-2.0
"""A chain of pointwise operations with constants, whose list comes as data: fused in one pass."""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from ..families import blemish, draw
from ..problem import Expected, Family, Inputs, Prepared

PROBLEM = {
    "title": "A chain of pointwise operations that a table lists",
    "definition": "v = x[i]; for k = 0 … K - 1: v = what code[k] makes of v and c[k]; y[i] = v",
    "source": "Fused Kernel Library, arXiv 2508.07071",
    "headline": "twice to 1,000 times as fast as a kernel for each operation, as reported",
    "tags": ["dense", "elementwise", "fused"],
    "is_row_wise": True,
    "axes": {"M": "elements", "K": "operations"},
    "lengths": {"K": 4096},
    "inputs": {
        "x": "float32[M]: numbers of an image",
        "code": "int32[K]: 0: v + c, 1: v - c, 2: v * c, 3: v / c, 4: |v - c|",
        "c": "float32[K]: its constant; of a product or a quotient not 0",
    },
    "bound": ["code"],
    "outputs": {"y": "float32[M]: what the chain makes of each"},
    "flops": "M * K",
    "workloads": {
        "realistic": {"4194304x16": "four million pixels", "1048576x64": "fewer, a long chain"},
        "tiny": {"tiny": {"M": 1500, "K": 7}},
        "adversarial": {"100003x50": "a prime number of elements", "1021x100": "few elements"},
    },
    "families": "exact nonfinite",
    "nrmse": 5e-5,
    "accuracy": "n = 2, s^2 = the sum over steps of (what is added there, in magnitudes, times all "
    "later factors)^2. Steps between two |v - c| may be joined. Infinities and NaN are in x.",
}
ADD, _, MULTIPLY, DIVIDE, DIFFER = range(5)


def values(family: Family, rng: np.random.Generator, M: int, K: int) -> Inputs:
    """Constants near 1, of either sign, nearer in a longer chain; of EXACT 1, -1, and odd x."""
    x = draw(family, (M,), rng, varies=0)
    blemish(family, x[:, None], rng)
    x, reach = (2 * x + 9, 0.0) if family is Family.EXACT else (x, min(1.0, 8 / np.sqrt(K)))
    c = 2.0 ** rng.uniform(-reach, reach, K) * rng.choice((-1, 1), K)
    return x, rng.integers(0, 5, K, dtype=np.int32), c.astype(np.float32)


def read_steps(library: Any, code: Any, c: Any) -> tuple[Any, Any]:
    """Of each operation a factor, and what is added then; of numpy or of torch."""
    factor = library.where(code == MULTIPLY, c, library.where(code == DIVIDE, 1 / c, 1.0))
    return factor, library.where(code >> 1 == 1, 0.0, library.where(code == ADD, c, -c))


def oracle(x: np.ndarray, code: np.ndarray, c: np.ndarray) -> Expected:
    """Step by step in float64; of the scale, too."""
    value, squares = x.astype(np.float64), np.square(x, dtype=np.float64)
    for kind, factor, added in zip(code, *read_steps(np, code, c.astype(float)), strict=True):
        squares = squares * factor**2 + (np.abs(value * factor) + abs(added)) ** 2
        value = (np.abs if kind == DIFFER else np.positive)(value * factor + added)
    return Expected(value, np.sqrt(squares), 2.0)


def by_torch(x: Any, code: Any, c: Any, y: Any) -> Prepared:
    """In place, one operation after the other; of halves each is rounded."""
    calls = (y.add_, y.sub_, y.mul_, y.div_, lambda own: y.sub_(own).abs_())

    def compute() -> None:
        steps = zip(code.tolist(), c.tolist(), strict=True)
        reduce(lambda _, step: calls[step[0]](step[1]), steps, y.copy_(x))

    return compute


def by_compile(torch: Any, x: Any, code: Any, c: Any, K: int) -> Any:
    """Of each operation a product, a sum and, perhaps, a magnitude."""
    v, (factor, added) = x.float(), read_steps(torch, code, c.float())
    for k in range(K):
        v = v * factor[k] + added[k]
        v = torch.where(code[k] == DIFFER, v.abs(), v)
    return v
