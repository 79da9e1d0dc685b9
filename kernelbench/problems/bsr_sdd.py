# SPDX-License-Identifier: Apache-2.0
"""Blocks of a dense product where a pattern has some: the first product of a mixture of experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dense import BLOCK_ELEMENTS
from ..families import blemish, draw_factors
from ..problem import Expected, Family, Pair, Structure
from ..sparse import live_rows, row_numbers

PROBLEM = {
    "title": "Dense product sampled at the blocks of a pattern (BSR)",
    "definition": "H[p,r,c] = sum over d of X[i,r,d] * W[indices[p],c,d], p of row i",
    "source": "MegaBlocks (sdd), arXiv 2211.15841",
    "headline": "1.40 times as fast training as with padded batches (A100), as reported",
    "tags": ["sparse", "pruned", "contraction"],
    "is_row_wise": True,
    "axes": {
        "M": "rows of blocks: tokens are B times as many",
        "K": "columns of blocks",
        "D": "features",
        "B": "rows and columns of a block: 16 or 32",
        "nnz": "blocks that are wanted",
    },
    "lengths": {"D": 4096, "B": [16, 32]},
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "X": "float32[M, B, D]: tokens, row-major",
        "W": "float32[K, B, D]: weights, a row for each column of the product",
    },
    "outputs": {"H": "float32[nnz, B, B]: blocks, each row-major"},
    "flops": "2 * nnz * B * B * D",
    "workloads": {
        "realistic": {
            "experts-b32": {"D": 256, "B": 32, "pattern": "experts 64", "note": "2048 tokens"},
            "experts-b16": {"D": 512, "B": 16, "pattern": "experts 96", "note": "small blocks"},
        },
        "tiny": {"tiny": {"D": 24, "B": 16, "pattern": "hub 8"}},
        "adversarial": {
            "hub-33": {"D": 33, "B": 16, "pattern": "hub 300", "note": "an odd depth"},
            "uneven-1": {"D": 1, "B": 32, "pattern": "uneven 200", "note": "one feature"},
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = D, s = sum over d of |X W|. {running sum} Zero times infinity is NaN.",
}


def values(
    structure: Structure, family: Family, rng: np.random.Generator, M: int, K: int, D: int, B: int
) -> Pair:
    """The two dense factors; one value per row where they are constant."""
    used = live_rows(structure), np.unique(structure.arrays["indices"])
    rows, columns = ((blocks[:, None] * B + np.arange(B)).reshape(-1) for blocks in used)
    x, w = draw_factors(family, (M * B, D), (K * B, D), rng, varies=(0, 0), live=rows)
    blemish(family, x, rng, places=rows)
    blemish(family, w, rng, places=columns)
    return x.reshape(M, B, D), w.reshape(K, B, D)


def oracle(
    structure: Structure, indices: np.ndarray, X: np.ndarray, W: np.ndarray, D: int, B: int
) -> Expected:
    """The products in float64; the scale is the sum of |terms|."""
    rows, left, right = row_numbers(structure), X.astype(np.float64), W.astype(np.float64)
    value, scale = np.empty((len(rows), B, B)), np.empty((len(rows), B, B))
    each = max(1, BLOCK_ELEMENTS // (B * D))
    for first in range(0, len(rows), each):
        part = slice(first, first + each)
        x, w = left[rows[part]], right[indices[part]].transpose(0, 2, 1)
        value[part], scale[part] = x @ w, np.abs(x) @ np.abs(w)
    return Expected(value, scale, float(D))


def by_compile(torch: Any, rows: Any, indices: Any, X: Any, W: Any, H: Any) -> Any:
    """A product for each block."""

    given = rows, indices, X, W, H
    return lambda r, c, x, w, h: h.copy_(torch.bmm(x[r].float(), w[c].float().mT)), given
