# SPDX-License-Identifier: Apache-2.0
"""The baselines of a dense-dense product that is sampled at the entries of a CSR pattern.

A problem has them by `"baselines": "sampled product"`; the factors and the answers may have any
names. torch's own writes the pattern of its result, which is the one it was given: a problem says
so (`writes_inputs`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from .problem import BaselineCall, Prepared, Tensor
from .sparse import INDICES, INDPTR
from .torch_calls import csr_view, views_beside_pattern

NEEDS = "inputs indptr, indices and two more, [M, D] and [K, D] with any axis D; one output [nnz]"


def fits(
    inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], _lengths: Mapping[str, object]
) -> bool:
    """Whether these are the tensors of such a product, as NEEDS says."""
    dense = [tensor.shape for tensor in inputs if not tensor.is_index]
    return (
        [tensor for tensor in inputs if tensor.is_index] == [INDPTR, INDICES]
        and [len(shape) for shape in dense] == [2, 2]
        and [shape[0] for shape in dense] == ["M", "K"]
        and dense[0][1] == dense[1][1]
        and [tensor.shape for tensor in outputs] == [INDICES.shape]
    )


# scipy has no sampled product; gathering with numpy would only be a slower torch.
def by_torch(torch: Any, call: BaselineCall, K: int, nnz: int) -> Prepared:
    """torch's sampled product; it has none of halves, which are multiplied as float32."""
    left, right, answers = views_beside_pattern(call)
    # The zeros are what beta multiplies: torch multiplies, so poison in the answers would survive
    # beta = 0.
    nothing = csr_view(call, columns=K, values=np.zeros(nnz, np.float32))
    multiply = partial(torch.sparse.sampled_addmm, beta=0.0)
    if answers.dtype != torch.float32:
        return lambda: answers.copy_(multiply(nothing, left.float(), right.float().t()).values())
    (output,) = call.outputs.values()
    return partial(multiply, nothing, left, right.t(), out=csr_view(call, columns=K, values=output))


def by_compile(call: BaselineCall, rows: Any, indices: Any) -> Any:
    """Gathered rows."""
    left, right, answers = views_beside_pattern(call)
    given = rows, indices, left, right, answers
    return lambda r, c, u, v, e: e.copy_((u[r] * v[c]).sum(1)), given
