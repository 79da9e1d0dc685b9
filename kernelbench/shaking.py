# SPDX-License-Identifier: Apache-2.0
"""A module's operations, each off by as much as float32 is: what a right kernel may lose within.

Where an answer's inputs tell nothing of it, its steps do: of x (1 + tanh x) at x = -5 a float32
kernel has half an ulp of 1 times x left, or nothing. The answers of each operation are off by u
times numbers of their own, in float64 (Parker, Monte Carlo Arithmetic, UCLA CSD-970002, 1997;
the numbers are Cauchy's, see cauchy.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any

from .cauchy import spread
from .torch_modes import dispatching_class

INNER = (
    *("gelu", "elu", "silu", "mish", "softplus", "log_sigmoid_forward", "hardswish"),
    *("hardsigmoid", "gelu_backward", "logaddexp"),
)
"""Operations that are taken apart, since their own steps lose something: kernels write these."""
BESIDE_ONE = ("expm1", "log1p")
"""Kernels write exp(x) - 1 and log(1 + x), which pass by 1."""
EXACT = frozenset(
    (
        *("abs", "neg", "sign", "relu", "maximum", "minimum", "amax", "amin", "max", "min"),
        *("clamp", "clamp_min", "clamp_max", "where", "masked_fill", "max_pool2d_with_indices"),
        *("cat", "stack", "clone", "copy", "gather", "index", "index_select", "constant_pad_nd"),
        *("full", "full_like", "ones", "ones_like", "zeros", "zeros_like", "new_full", "new_zeros"),
        *("scalar_tensor", "tril", "triu", "_to_copy"),
    )
)
"""Operations that round nothing."""

_draw: ContextVar[int | None] = ContextVar("draw", default=None)


@contextmanager
def shaken(draw: int) -> Iterator[None]:
    """Within it `shake_steps` shakes, by the numbers of this draw."""
    token = _draw.set(draw)
    try:
        yield
    finally:
        _draw.reset(token)


def shake_steps() -> AbstractContextManager[Any]:
    """What a module runs in: its operations are off within `shaken`, and as they are elsewhere."""
    draw = _draw.get()
    return nullcontext() if draw is None else _mode()(draw)


@cache
def _mode() -> Callable[[int], AbstractContextManager[Any]]:
    import torch
    from torch._decomp import decomposition_table
    from torch.utils._pytree import tree_map_only

    class Shaking(dispatching_class()):  # type: ignore[misc]
        """Multiplies what each operation gives by 1 + u times a number for each element."""

        def __init__(self, draw: int) -> None:
            super().__init__()
            self.draw, self.step = draw, 0

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
        ) -> Any:
            name = func.overloadpacket.__name__
            if name in INNER and func in decomposition_table:
                with self:
                    return decomposition_table[func](*args, **(kwargs or {}))
            found = func(*args, **(kwargs or {}))
            # A view is its base, and what was written in place is somebody's input.
            if name in EXACT or any(each.alias_info for each in func._schema.returns):
                return found
            self.step += 1
            off = 1.0 if name in BESIDE_ONE else 0.0
            return tree_map_only(torch.Tensor, lambda each: self._shake(each, off), found)

        def _shake(self, found: Any, off: float) -> Any:
            if not found.is_floating_point():
                return found
            numbers = torch.from_numpy(spread(self.draw, self.step, found.numel()))
            numbers = numbers.view(found.shape)
            # Times 1 + u c: an infinity stays what it is.
            return found * (1 + numbers.to(found.dtype)) + off * numbers

    return Shaking
