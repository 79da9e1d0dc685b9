# SPDX-License-Identifier: Apache-2.0
"""Multi-resolution hash encoding: what neural graphics looks up for each point; lookups.py."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ..dense import ROUNDINGS
from ..families import blemish, draw
from ..lookups import list_corners, weigh
from ..problem import Expected, Family, Inputs

PROBLEM = {
    "title": "Multi-resolution hash-grid encoding: three dimensions, two features",
    "definition": "s = x[i,:] * size[v], rounded to float32; g = floor(s), f = s - g; y[i,v,:] = "
    "sum over e in {0, 1}^3 of (product over d of (f[d] if e[d] else 1 - f[d])) * table[v, k, :], "
    "k = ((g+e)[0] xor 2654435761 (g+e)[1] xor 805459861 (g+e)[2]) mod T, all in 32 bits unsigned",
    "source": "Instant neural graphics primitives, arXiv 2201.05989; here every level is hashed",
    "headline": "with small networks training in seconds and frames of 1920x1080 in tens of "
    "milliseconds, orders of magnitude faster than before, as reported",
    "tags": ["gather"],
    "is_row_wise": True,
    "axes": {"M": "points", "V": "levels", "T": "entries of a level's table, a power of two"},
    "lengths": {"V": 64, "T": "power of 2"},
    "inputs": {
        "x": "float32[M, 3]: points, from 0 to below 1",
        "size": "int32[V]: cells of a level along each axis, from 1 to 1024",
        "table": "float32[V, T, 2]: features of each entry",
    },
    "bound": ["size"],
    "outputs": {"y": "float32[M, V, 2]: features of each point, level by level"},
    "flops": "50 * M * V",  # weights 12, places 6, eight corners of 4
    "workloads": {
        "realistic": {"65536x16x16384": "smallest tables", "32768x16x131072": "larger ones"},
        "tiny": {"tiny": {"M": 200, "V": 5, "T": 256}},
        "adversarial": {"9973x7x8": "hardly any entries", "20011x1x32768": "one level"},
    },
    "families": "large nonfinite",
    "nrmse": 1e-4,
    "accuracy": "n = 16, s = sum over the corners of |entry| times weight, and times what (s[d] + "
    "1) / 16 is in place of a factor: f may be made of the product before it is rounded (a fused "
    "multiply-add), g of the rounded one. NaN is in tables alone; infinities are never drawn.",
}


def values(family: Family, rng: np.random.Generator, M: int, V: int, T: int) -> Inputs:
    """Points anywhere, of SORTED in order, and levels that grow as in the paper."""
    x = rng.random((M, 3), dtype=np.float32)
    if family is Family.SORTED:
        x.sort(axis=0)
    size = rng.integers(4, 33) * rng.uniform(1.26, 1.5) ** np.arange(V)
    table = draw(family, (V, T, 2), rng, varies=0)
    blemish(family, table.reshape(V * T, 2), rng, (np.nan,))
    return x, np.minimum(size, 1024).astype(np.int32), table


def oracle(x: np.ndarray, size: np.ndarray, table: np.ndarray, M: int, V: int, T: int) -> Expected:
    """Places by float32 products as the definition has them, all else in float64."""
    value, scale = np.zeros((2, M, V, 2))
    for v in range(V):
        s = x.astype(np.float32) * np.float32(size[v])
        for corner, factors in list_corners(s):
            key = np.bitwise_xor.reduce(corner * (1, 2654435761, 805459861), 1)
            entries = table[v, key % T].astype(np.float64)
            weight, law = weigh(s, factors)
            value[:, v] += weight[:, None] * entries
            scale[:, v] += law[:, None] * np.abs(entries)
    return Expected(value, scale, ROUNDINGS)


def by_compile(torch: Any, x: Any, size: Any, table: Any, V: int, T: int) -> Any:
    """Corner by corner, in float32 whatever the tensors are; products of int32 wrap around."""
    s = x.float()[:, None, :] * size[:, None]
    cell = s.floor().int()
    f, first = s - cell, torch.arange(V, dtype=torch.int32) * T
    flat, y = table.float().reshape(V * T, 2), 0.0
    for e in itertools.product((0, 1), repeat=3):
        a, b, c = (cell[..., d] + e[d] for d in range(3))
        key = (a ^ b * -1640531535 ^ c * 805459861) & (T - 1)
        p, q, r = (f[..., d] if e[d] else 1 - f[..., d] for d in range(3))
        y = y + (p * q * r)[..., None] * torch.nn.functional.embedding(key + first, flat)
    return y
