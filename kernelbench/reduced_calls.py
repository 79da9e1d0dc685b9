# SPDX-License-Identifier: Apache-2.0
"""The baselines of a CSR matrix times a dense one with the maximum or the mean in place of the sum.

A problem has them by `"baselines": "sparse reduction"`; its axis `reduce` says which one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import sparse_calls
from .problem import BaselineCall, Prepared, Structure, Tensor
from .sparse import row_maxima, row_terms
from .torch_calls import dense_view, place_for_sums

MAX, MEAN = 0, 1
"""Values of the axis."""
NEEDS = (
    "inputs indptr, indices, values[nnz] and one more [K, N]; one output [M, N]; and the axis "
    "reduce of the lengths [0, 1]"
)


def fits(
    inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], lengths: Mapping[str, object]
) -> bool:
    """Whether a problem has such tensors and such an axis, as NEEDS says."""
    is_matrix = all(len(tensor.shape) == 2 for tensor in outputs)
    is_product = sparse_calls.fits(inputs, outputs, lengths)
    return is_product and is_matrix and lengths.get("reduce") == (MAX, MEAN)


# torch.compile hands a sparse CSR product to the same library call as eager: left out.
def by_torch(
    torch: Any, call: BaselineCall, matrix: Any, rows: Any, indices: Any, values: Any, reduce: int
) -> Prepared:
    """torch's sparse product with a reduction, or what stands for it on a GPU."""
    dense, answers = map(dense_view, sparse_calls.factor_and_product(call))
    word = "amax" if reduce == MAX else "mean"
    if dense.is_cuda or (word == "mean" and answers.dtype != torch.float32):
        return reduce_scattered(torch, rows, indices, values, dense, answers, word)
    return lambda: answers.copy_(torch.sparse.mm(matrix, dense, reduce=word))


def by_scipy(
    call: BaselineCall, structure: Structure, matrix: Any, values: np.ndarray, reduce: int
) -> Prepared:
    """scipy's product and numpy's division; it has none with a maximum: numpy's segmented one."""
    dense, answers = sparse_calls.factor_and_product(call)
    if reduce == MAX:
        return lambda: np.copyto(answers, row_maxima(structure, values, dense))
    lengths = row_terms(structure).astype(np.float32)[:, None]
    return lambda: np.copyto(answers, np.divide(matrix @ dense, lengths))


def reduce_scattered(
    torch: Any, rows: Any, columns: Any, values: Any, b: Any, c: Any, reduce: str
) -> Prepared:
    """A sparse product with a reduction by gathered rows, scattered: torch has none on GPUs."""
    wide = rows.long()[:, None].expand(-1, b.shape[1])
    reduced = place_for_sums(torch, c)

    def compute() -> None:
        terms = values[:, None].to(reduced.dtype) * torch.index_select(b, 0, columns)
        reduced.zero_().scatter_reduce_(0, wide, terms, reduce, include_self=False)
        if reduced is not c:
            c.copy_(reduced)

    return compute
