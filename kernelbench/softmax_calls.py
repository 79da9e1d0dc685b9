# SPDX-License-Identifier: Apache-2.0
"""The baselines of a softmax over the entries of each row of a CSR pattern, in lanes beside each
other, as heads.

A problem has them by `"baselines": "sparse softmax"`; logits and answers may have any names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .problem import BaselineCall, Prepared, Tensor
from .sparse import INDICES, INDPTR
from .torch_calls import place_for_sums, views_beside_pattern

NEEDS = "inputs indptr and one more, [nnz, H] with any axis H; one output of the same shape"


def fits(
    inputs: tuple[Tensor, ...], outputs: tuple[Tensor, ...], _lengths: Mapping[str, object]
) -> bool:
    """Whether these are the tensors of such a softmax, as NEEDS says."""
    logits = [tensor.shape for tensor in inputs if not tensor.is_index]
    return (
        any(tensor == INDPTR for tensor in inputs)
        and len(logits) == 1
        and logits[0][:1] == INDICES.shape
        and len(logits[0]) == 2
        and [tensor.shape for tensor in outputs] == logits
    )


# scipy has nothing for it.
def by_torch(torch: Any, call: BaselineCall, indptr: Any, rows: Any) -> Prepared:
    """Segments reduced, and gathered."""
    logits, answers = views_beside_pattern(call)
    offsets, wide = indptr.long(), place_for_sums(torch, answers)
    gathered = torch.empty_like(wide)

    def per_row(entries: Any, reduce: str) -> Any:
        # unsafe: skips a check of the offsets that never change.
        rowwise = torch.segment_reduce(entries, reduce, offsets=offsets, axis=0, unsafe=True)
        return torch.index_select(rowwise, 0, rows, out=gathered)

    def compute() -> None:
        entries = logits.to(wide.dtype)
        torch.sub(entries, per_row(entries, "max"), out=wide)
        wide.exp_()
        torch.div(wide, per_row(wide, "sum"), out=answers)

    return compute


def by_compile(torch: Any, call: BaselineCall, rows: Any, M: int) -> Any:
    """Segments scattered, and gathered."""
    logits, answers = views_beside_pattern(call)
    rows = rows.long()
    wide = rows[:, None].expand(logits.shape).contiguous()

    def softmax(e: Any, rows: Any, wide: Any, a: Any) -> None:
        e = e.float()
        highest = e.new_full((M, e.shape[1]), -torch.inf).scatter_reduce(0, wide, e, "amax")
        risen = torch.exp(e - highest[rows])
        sums = e.new_zeros((M, e.shape[1])).scatter_add(0, wide, risen)
        a.copy_(risen / sums[rows])

    return softmax, (logits, rows, wide, answers)
