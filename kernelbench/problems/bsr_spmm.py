# SPDX-License-Identifier: Apache-2.0
"""Y = A X with A sparse in blocks: a pruned layer, the second product of a mixture of experts."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..blocks import block_factors, bsr_view, multiply_blocks
from ..problem import Expected, Family, Pair, Prepared, Structure
from ..sparse import row_terms

PROBLEM = {
    "title": "Block-sparse matrix (BSR) times dense matrix",
    "definition": "Y[i,r,n] = sum over p of row i, c < B of values[p,r,c] * X[indices[p],c,n]",
    "source": "MegaBlocks (dsd), arXiv 2211.15841; torch.sparse_bsr_tensor",
    "headline": "1.40 times as fast training as with padded batches (A100), as reported",
    "tags": ["sparse", "pruned", "contraction"],
    "is_row_wise": True,
    "axes": {
        "M": "rows of blocks",
        "N": "columns of X and Y",
        "K": "columns of blocks",
        "B": "rows and columns of a block: 16 or 32",
        "nnz": "blocks of A",
    },
    "lengths": {"N": 8192, "B": [16, 32]},
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "values": "float32[nnz, B, B]: blocks of A, each row-major",
        "X": "float32[K, B, N]: dense, row-major",
    },
    "outputs": {"Y": "float32[M, B, N]: row-major"},
    "flops": "2 * nnz * B * B * N",
    "workloads": {
        "realistic": {
            "1536-b16": {"N": 128, "B": 16, "pattern": "pruned 96", "note": "pruned by blocks"},
            "experts-b32": {"N": 256, "B": 32, "pattern": "experts 64", "note": "2048 tokens"},
        },
        "tiny": {"tiny": {"N": 20, "B": 16, "pattern": "pruned 12"}},
        "adversarial": {
            "hub-33": {"N": 33, "B": 16, "pattern": "hub 300", "note": "an odd width"},
            "vector": {"N": 1, "B": 32, "pattern": "uneven 200", "note": "one column"},
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = B times the blocks of the row, s = sum of |values X|. {running sum} Zero "
    "times infinity is NaN.",
}


def values(structure: Structure, family: Family, rng: np.random.Generator, B: int, N: int) -> Pair:
    """Blocks of A and the dense X."""
    return block_factors(structure, family, (B, B), N, rng)


def oracle(structure: Structure, values: np.ndarray, X: np.ndarray, B: int) -> Expected:
    """The product in float64; the scale is |A||X|."""
    return Expected(*multiply_blocks(structure, values, X), B * row_terms(structure)[:, None, None])


def by_torch(torch: Any, indptr: Any, indices: Any, values: Any, X: Any, Y: Any) -> Prepared:
    """torch's product of BSR, which is MKL's; of halves in float32."""
    shape = (len(Y) * X.shape[1], len(X) * X.shape[1])
    if X.dtype != torch.float32:
        widen = partial(bsr_view, torch, indptr, indices, shape=shape)
        return lambda: Y.copy_((widen(values.float()) @ X.float().flatten(0, 1)).view(Y.shape))
    matrix, dense = bsr_view(torch, indptr, indices, values, shape=shape), X.flatten(0, 1)
    return partial(torch.mm, matrix, dense, out=Y.flatten(0, 1))


def by_compile(torch: Any, rows: Any, indices: Any, values: Any, X: Any, Y: Any) -> Any:
    """A product for each block, and sums of rows."""

    def compute(r: Any, c: Any, a: Any, x: Any, y: Any) -> None:
        y.copy_(torch.zeros_like(y, dtype=torch.float32).index_add_(0, r, (a @ x[c]).float()))

    return compute, (rows, indices, values, X, Y)
