# SPDX-License-Identifier: Apache-2.0
"""Baselines of cupy, where it is installed: cuSPARSE and cuBLAS by another way than torch's.

They work on the tensors that stand for a call's arrays on the device, through DLPack and without
copies. cupy keeps TF32 off unless it is asked for (CUPY_TF32).
"""

from __future__ import annotations

import numpy as np

from .problem import BaselineCall, Prepared
from .torch_calls import dense_view


def product(call: BaselineCall) -> Prepared:
    """C = A B of two dense matrices."""
    import cupy

    a, b = (cupy.from_dlpack(dense_view(call.inputs[name])) for name in ("A", "B"))
    c = cupy.from_dlpack(dense_view(call.outputs["C"]))

    def compute() -> None:
        cupy.matmul(a, b, out=c)

    return compute


def sparse_product(call: BaselineCall, dense: np.ndarray, product: np.ndarray) -> Prepared:
    """The product of the call's CSR matrix with a dense matrix or vector of it."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    values, indices, indptr = (
        cupy.from_dlpack(dense_view(call.inputs[name])) for name in ("values", "indices", "indptr")
    )
    b, c = (cupy.from_dlpack(dense_view(array)) for array in (dense, product))
    a = csr_matrix((values, indices, indptr), shape=(call.axes["M"], call.axes["K"]))

    def compute() -> None:
        cupy.copyto(c, a @ b)

    return compute
