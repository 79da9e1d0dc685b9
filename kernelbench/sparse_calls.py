# SPDX-License-Identifier: Apache-2.0
"""The baselines of every product of a CSR matrix with a dense matrix or vector.

A problem has them by `"baselines": "sparse product"`. They are such functions as a problem's file
has (library_calls.py); the dense factor and the product may have any names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from . import cupy_calls, mkl_calls
from .problem import BaselineCall, Handle, Pair, Prepared, Tensor
from .sparse import INDICES, INDPTR, VALUES
from .torch_calls import csr_view, dense_view, is_placed

MATRIX = {INDPTR.name: INDPTR.shape, INDICES.name: INDICES.shape, VALUES: INDICES.shape}
"""The inputs that are the CSR matrix, and their shapes."""
NEEDS = "inputs indptr, indices, values[nnz] and one more [K] or [K, N]; one output [M] or [M, N]"


def fits(
    inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], _lengths: Mapping[str, object]
) -> bool:
    """Whether these are the tensors of such a product, as NEEDS says."""
    given = {tensor.name: tensor.shape for tensor in inputs}
    dense = [shape for name, shape in given.items() if name not in MATRIX]
    return (
        all(given.get(name) == shape for name, shape in MATRIX.items())
        and len(dense) == 1
        and dense[0][:1] == ("K",)
        and len(dense[0]) <= 2
        and [tensor.shape for tensor in outputs] == [("M", *dense[0][1:])]
    )


def by_torch(torch: Any, call: BaselineCall, matrix: Any) -> Prepared:
    """MKL's sparse product, or torch's own; of halves in float32, on the CPUs."""
    dense, product = map(dense_view, factor_and_product(call))
    if product.dtype.itemsize < torch.float32.itemsize and not is_placed():
        return _by_torch_in_float32(torch, call, dense, product)
    if dense.ndim == 1:
        return lambda: torch.mv(matrix, dense, out=product)
    return lambda: torch.addmm(product, matrix, dense, beta=0, out=product)


def _by_torch_in_float32(torch: Any, call: BaselineCall, dense: Any, product: Any) -> Prepared:
    """What a user of halves does: all is widened, multiplied, and rounded."""
    narrow = dense_view(call.inputs[VALUES])
    entries = np.empty(narrow.numel(), np.float32)
    matrix = csr_view(call, columns=call.axes["K"], values=entries)
    values, factor = matrix.values(), torch.empty_like(dense, dtype=torch.float32)
    wide = torch.empty_like(product, dtype=torch.float32)
    multiply = torch.mv if dense.ndim == 1 else torch.mm

    def compute() -> None:
        values.copy_(narrow)
        factor.copy_(dense)
        product.copy_(multiply(matrix, factor, out=wide))

    return compute


def by_scipy(call: BaselineCall, matrix: Any) -> Prepared:
    """scipy's, on one thread."""
    dense, product = factor_and_product(call)
    return lambda: np.copyto(product, matrix @ dense)


def by_mkl(call: BaselineCall) -> Handle:
    """MKL's inspector-executor."""
    return mkl_calls.sparse_product(call, *factor_and_product(call))


def by_cupy(call: BaselineCall) -> Prepared:
    """cuSPARSE."""
    return cupy_calls.sparse_product(call, *factor_and_product(call))


def factor_and_product(call: BaselineCall) -> Pair:
    """The dense factor, and where the product belongs."""
    (dense,) = (array for name, array in call.inputs.items() if name not in MATRIX)
    (product,) = call.outputs.values()
    return dense, product
