# SPDX-License-Identifier: Apache-2.0
"""Y = W X where groups of V rows of W keep the same columns, whichever rows these are."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..blocks import block_factors, multiply_blocks, pruned_factors
from ..problem import Expected, Family, Inputs, Structure
from ..sparse import row_terms

PROBLEM = {
    "title": "Vector-wise sparse weights with shuffled rows times dense matrix",
    "definition": "Y[perm[V*i+r], n] = sum over p of row i of values[p,r] * X[indices[p],n], r < V",
    "source": "Shfl-BW, arXiv 2203.05016",
    "headline": "1.81, 4.18, 1.90 times as fast as dense (V100, T4, A100; 75 % zeros), as reported",
    "tags": ["sparse", "pruned", "contraction"],
    "axes": {
        "M": "groups of rows",
        "N": "columns of X and Y",
        "K": "columns of W, rows of X",
        "V": "rows of a group: 32 or 64",
        "nnz": "columns that groups keep, all together",
    },
    "lengths": {"N": 8192, "V": [32, 64]},
    "inputs": {
        "indptr": "csr",
        "indices": "csr",
        "values": "float32[nnz, V]: of a kept column the weights of its group's rows",
        "perm": "int32[M*V]: where rows of the groups stand in Y, each once",
        "X": "float32[K, N]: dense, row-major",
    },
    "bound": ["perm"],
    "outputs": {"Y": "float32[M*V, N]: row-major"},
    "flops": "2 * nnz * V * N",
    "workloads": {
        "realistic": {
            "8192x256-v32": {"N": 128, "V": 32, "pattern": "pruned 256", "note": "128 tokens"},
            "experts-v64": {"N": 64, "V": 64, "pattern": "experts 512", "note": "few weights"},
        },
        "tiny": {"tiny": {"N": 20, "V": 32, "pattern": "hub 12"}},
        "adversarial": {
            "hub-33": {"N": 33, "V": 32, "pattern": "hub 500", "note": "an odd width"},
            "vector": {"N": 1, "V": 64, "pattern": "uneven 200", "note": "one column"},
        },
    },
    "families": "denormal large nonfinite exact probe",
    "accuracy": "n = the columns that the group keeps, s = sum of |values X|. {running sum} Zero "
    "times infinity is NaN; X is always finite: kernels may multiply it with a dense W's zeros.",
}


def values(
    structure: Structure, family: Family, rng: np.random.Generator, M: int, N: int, V: int
) -> Inputs:
    """Rows in any order."""
    kept, dense = block_factors(structure, family, (V, 1), N, rng, pruned_factors)
    return kept[..., 0], rng.permutation(M * V).astype(np.int32), dense[:, 0]


def oracle(structure: Structure, values: np.ndarray, perm: np.ndarray, X: np.ndarray) -> Expected:
    """The product in float64, and its rows where they belong; the scale is |W||X|."""
    of_row, terms = np.argsort(perm), np.repeat(row_terms(structure), values.shape[1])
    value, scale = multiply_blocks(structure, values[..., None], X)
    value, scale = (each.reshape(len(perm), -1)[of_row] for each in (value, scale))
    return Expected(value, scale, terms[of_row, None])


def by_compile(torch: Any, rows: Any, indices: Any, values: Any, perm: Any, X: Any, Y: Any) -> Any:
    """Weights in a dense matrix, which is multiplied."""

    def compute(r: Any, c: Any, weights: Any, places: Any, x: Any, y: Any) -> None:
        size = weights.shape[1]
        dense = torch.zeros(len(places) // size, size, len(x), device=x.device)
        dense[r, :, c.long()] = weights.float()
        y[places.long()] = (dense.flatten(0, 1) @ x.float()).to(y.dtype)

    return compute, (rows, indices, values, perm, X, Y)
