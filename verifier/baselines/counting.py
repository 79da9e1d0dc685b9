# SPDX-License-Identifier: Apache-2.0
"""In the baseline process: how many operations a baseline by torch takes, counted as it runs.

By the rule that counts a traced module (`sandbox/definitions/trace_counts.py`): two for each
product and sum of a matrix product, a convolution or attention; of anything else one for each
element, or ten, as people count a function such as exp. Sparse operands have as many elements as
are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...kernelbench.problem import Prepared
from ...kernelbench.torch_modes import dispatching_class
from ...sandbox.definitions.trace_counts import count_call

FUNCTION = 10
"""Operations that an element of a function may be said to take."""
MOVES = {
    *("copy_", "empty", "empty_like", "fill_", "full", "gather", "index", "ones", "zero_", "zeros"),
}
"""Operations that place elements and compute none."""


@dataclass
class Counted:
    """Of one call."""

    least: int = 0
    """Each element of a function as one."""
    most: int = 0
    """Each as ten."""
    unknown: list[str] = field(default_factory=list)
    """Operations that are none of torch's own, and cannot be counted."""


def count_operations(compute: Prepared) -> Counted:
    """Calls it once; of what calls nothing of torch, nothing is counted."""
    found = Counted()

    class Count(dispatching_class()):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            del types
            result = func(*args, **(kwargs or {}))
            _add(found, func, args, result)
            return result

    with Count():
        compute()
    return found


def _add(found: Counted, func: Any, args: Sequence[Any], result: Any) -> None:
    space, _, name = func._schema.name.partition("::")
    if space != "aten":
        found.unknown.append(func._schema.name)
        return
    if name in MOVES:
        return
    operations, is_product = _count_sparse(name, args) or count_call(func, args, result)
    found.least += operations
    found.most += operations * (1 if is_product else FUNCTION)


def _count_sparse(name: str, args: Sequence[Any]) -> tuple[int, bool] | None:
    """Operations on a sparse operand, and whether they are a product; None: there is none."""
    import torch

    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    stored = [_count_stored(torch, each) for each in tensors if each.layout != torch.strided]
    if not stored:
        return None
    if not any(word in name for word in ("mm", "mv", "matmul")):
        return max(stored), False
    dense = [each for each in tensors if each.layout == torch.strided]
    if "sampled" in name:
        return 2 * stored[0] * int(dense[0].shape[-1]), True
    columns = int(dense[-1].shape[-1]) if dense[-1].ndim > 1 else 1
    return 2 * stored[0] * columns, True


def _count_stored(torch: Any, matrix: Any) -> int:
    """Elements of a sparse matrix that it stores: of one in blocks all that these have."""
    is_blocked = matrix.layout in (torch.sparse_bsr, torch.sparse_bsc)
    return int(matrix.values().numel() if is_blocked else matrix._nnz())
