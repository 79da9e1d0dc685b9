# SPDX-License-Identifier: Apache-2.0
"""Baselines of MKL's inspector-executor, where the wheel `mkl` is installed.

What a user does once for a matrix that is multiplied many times is done outside of the timed call:
a handle is made of pattern and values, told how it will be used, and optimised. It is made anew
for each call's values, so it is never older than they are. The C interface of the oneMKL reference
("Inspector-executor Sparse BLAS Routines") is called by ctypes.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from importlib import metadata
from typing import Any

import numpy as np

from .problem import BaselineCall, Handle

_GNU_THREADS = 3
"""MKL_THREADING_GNU: the OpenMP that torch has started already."""
_PLAIN = 10
"""SPARSE_OPERATION_NON_TRANSPOSE."""
_ROW_MAJOR = 101
_CALLS = 100_000
"""That are expected of a handle: enough that every optimisation pays."""


class _General(ctypes.Structure):
    """struct matrix_descr of a general matrix."""

    _fields_ = (("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int))


_GENERAL = _General(20, 0, 0)


@lru_cache(maxsize=1)
def _library() -> Any:
    """MKL by its one dynamic library. Raises ImportError where the wheel is not installed."""
    try:
        files = metadata.files("mkl") or []
    except metadata.PackageNotFoundError as error:
        raise ImportError("mkl is not installed: pip install 'kernelwright[mkl]'") from error
    found = next((file for file in files if file.name.startswith("libmkl_rt.so")), None)
    if found is None:
        raise ImportError("the wheel `mkl` holds no libmkl_rt.so")
    library = ctypes.CDLL(str(found.locate()))
    library.MKL_Set_Threading_Layer(_GNU_THREADS)
    return library


def sparse_product(call: BaselineCall, dense: np.ndarray, product: np.ndarray) -> Handle:
    """The product of the call's CSR matrix with a dense matrix or vector of it, in float32."""
    return _Product(_library(), call, dense, product)


class _Product:
    """See problem.Handle."""

    def __init__(
        self, library: Any, call: BaselineCall, dense: np.ndarray, product: np.ndarray
    ) -> None:
        self._library = library
        self._call = call
        self._b, self._c = _address(dense), _address(product)
        columns = dense.shape[1:]
        self._columns = columns[0] if columns else 0
        self._handle: ctypes.c_void_p | None = None
        self.refresh()

    def refresh(self) -> None:
        """Makes the handle of the values that are there now."""
        library, call = self._library, self._call
        if self._handle is not None:
            _demand(library.mkl_sparse_destroy(self._handle), "mkl_sparse_destroy")
        self._handle = handle = ctypes.c_void_p()
        indptr = call.inputs["indptr"]
        made = library.mkl_sparse_s_create_csr(
            ctypes.byref(handle),
            0,
            call.axes["M"],
            call.axes["K"],
            _address(indptr),
            _address(indptr[1:]),
            _address(call.inputs["indices"]),
            _address(call.inputs["values"]),
        )
        _demand(made, "mkl_sparse_s_create_csr")
        if self._columns:
            hinted = library.mkl_sparse_set_mm_hint(
                handle, _PLAIN, _GENERAL, _ROW_MAJOR, self._columns, _CALLS
            )
        else:
            hinted = library.mkl_sparse_set_mv_hint(handle, _PLAIN, _GENERAL, _CALLS)
        _demand(hinted, "mkl_sparse_set_hint")
        _demand(library.mkl_sparse_optimize(handle), "mkl_sparse_optimize")

    def __call__(self) -> None:
        one, nothing, n = ctypes.c_float(1.0), ctypes.c_float(0.0), self._columns
        if n:
            done = self._library.mkl_sparse_s_mm(
                _PLAIN, one, self._handle, _GENERAL, _ROW_MAJOR, self._b, n, n, nothing, self._c, n
            )
        else:
            done = self._library.mkl_sparse_s_mv(
                _PLAIN, one, self._handle, _GENERAL, self._b, nothing, self._c
            )
        _demand(done, "mkl_sparse_s_mm")


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _demand(status: int, name: str) -> None:
    if status:
        raise RuntimeError(f"{name} failed with status {status}")
