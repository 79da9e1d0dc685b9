# SPDX-License-Identifier: Apache-2.0
"""Views of a call's memory as torch tensors, for the baselines.

Nothing is copied: a baseline must see new inputs at the same addresses. The functions raise
SandboxError where torch would copy, since such a baseline would answer yesterday's question. For a
device, `place_with` says which tensor of it stands for which array.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import SandboxError
from .dtypes import DTYPES, FLOAT32
from .problem import BaselineCall
from .sparse import INDICES, INDPTR

EIGHT_BITS = 128
"""The largest size of an int8."""
Placement = Callable[[Any], Any]
"""The tensor that stands for one over an array of a call; what it holds is kept in step."""

_placements: list[Placement] = []


def place_with(placement: Placement) -> None:
    """From now on, in this process, baselines work on these tensors."""
    _placements[:] = [placement]


def is_placed() -> bool:
    """Whether baselines work on tensors of a device."""
    return bool(_placements)


def dense_view(array: np.ndarray) -> Any:
    """The array as a torch tensor over the same memory, read-only arrays included.

    Where tensors are placed on a device it is the one there, and a copy of an array of no call.
    """

    with warnings.catch_warnings():
        # Inputs may be mapped read-only; baselines only read them.
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        tensor = _tensor_over(array)
    return _placements[0](tensor) if _placements else tensor


def _tensor_over(array: np.ndarray) -> Any:
    """The same bytes; torch takes no array of a type that numpy lacks."""
    import torch

    if DTYPES[array.dtype.name].in_numpy:
        return torch.from_numpy(array)
    bits = torch.from_numpy(array.view(f"i{array.itemsize}"))
    return bits.view(getattr(torch, array.dtype.name))


def csr_view(call: BaselineCall, *, columns: int, values: np.ndarray) -> Any:
    """A torch CSR tensor on the call's pattern over the memory of `values`, int32 indices."""
    import torch

    entries = dense_view(values)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        matrix = torch.sparse_csr_tensor(
            dense_view(call.inputs["indptr"]),
            dense_view(call.inputs["indices"]),
            entries,
            (call.axes["M"], columns),
            check_invariants=False,
        )
    if entries.numel() and matrix.values().data_ptr() != entries.data_ptr():
        raise SandboxError(
            "torch copied the values of a CSR matrix; a baseline over a copy would go stale",
            hint="use a torch release that the project supports",
        )
    return matrix


def views_beside_pattern(call: BaselineCall) -> list[Any]:
    """All inputs but the index arrays of a sparse pattern, then all outputs, as tensors."""
    index = (INDPTR.name, INDICES.name)
    given = [array for name, array in call.inputs.items() if name not in index]
    return [dense_view(array) for array in (*given, *call.outputs.values())]


def demand_onednn(torch: Any, dtype: Any) -> None:
    """Raises ImportError where oneDNN has no product of this type by way of torch."""
    if not torch.backends.mkldnn.is_available():
        raise ImportError("this torch was built without oneDNN")
    asked = torch.ops.mkldnn
    halves = {
        torch.bfloat16: asked._is_mkldnn_bf16_supported,
        torch.float16: asked._is_mkldnn_fp16_supported,
    }
    if dtype != torch.float32 and not halves.get(dtype, bool)():
        kind = str(dtype).removeprefix("torch.")
        raise ImportError(f"torch calls no product of oneDNN with {kind} on this processor")


def turn(weights: Any) -> Any:
    """Weights [N, K] as [K, N], in the same memory. Of one column torch's product of int8 would
    take a turned one for rows that lie one element apart, and be wrong."""
    return weights.view(1, -1) if weights.shape[1] == 1 else weights.t()


def product_in_floats(torch: Any, a: Any, b: Any) -> Callable[[], Any]:
    """Gives the product of narrow factors, which are widened anew in each call: to float32, or to
    float64 where sums of integers may be beyond 2^24. Raises ImportError on a device."""
    if a.is_cuda:
        raise ImportError("devices multiply narrow types themselves")
    is_exact = a.is_floating_point() or a.shape[1] * EIGHT_BITS**2 < 2**FLOAT32.digits
    wide = torch.float32 if is_exact else torch.float64
    return lambda: torch.mm(a.to(wide), b.to(wide))


def place_for_sums(torch: Any, answers: Any) -> Any:
    """Where sums of halves are kept: torch would add them up in halves. Float32 stays as it is."""
    return answers if answers.dtype == torch.float32 else torch.empty(answers.shape)
