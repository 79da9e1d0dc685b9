# SPDX-License-Identifier: Apache-2.0
"""Which calls of torch's an exported operator can stand in for, by problem."""

from __future__ import annotations

from typing import NamedTuple

from .bundle import Bundle


class Replaced(NamedTuple):
    """What a package's `apply()` replaces."""

    template: str
    """Of the module that recognises a call and binds its tensors."""
    calls: str
    """In words."""


_CSR, _ROWS, _GEMM = "calls_csr.py.j2", "calls_rows.py.j2", "calls_gemm.py.j2"

_BY_PROBLEM = {
    "spmm_csr": Replaced(_CSR, "products (`@`, mm, matmul, sparse.mm) of a CSR tensor with rows"),
    "spmv_csr": Replaced(_CSR, "products (`@`, mv, matmul) of a CSR tensor with a vector"),
    "softmax": Replaced(_ROWS, "softmax along the last axis"),
    "layernorm": Replaced(_ROWS, "layer_norm along the last axis, with weight and bias"),
    "rmsnorm": Replaced(_ROWS, "rms_norm along the last axis, with weight and eps 1e-6"),
    "gemm": Replaced(_GEMM, "products (`@`, mm, matmul) of two matrices"),
}


HALVES = ("_f16", "_bf16")
"""What is put behind the name of a problem whose tensors are halves."""


def plain_name(bundle: Bundle) -> str:
    """The problem's name, whatever its precision."""
    plain = bundle.problem
    for half in HALVES:
        plain = plain.removesuffix(half)
    return plain


def find_replaced(bundle: Bundle) -> Replaced | None:
    """What the operator may stand in for; None where no call of torch's means the same.

    Products of one type that are made of a narrower one (TF32, int8) mean something else.
    """
    return _BY_PROBLEM.get(plain_name(bundle))
