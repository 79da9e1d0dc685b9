# SPDX-License-Identifier: Apache-2.0
"""Gives Triton's interpreter a `watch.Watch`, and makes it stricter where a device would be.

Masked-off elements of a load without `other` hold garbage, not zeros; `narrow`, `rounding` and
`products` have the arithmetic. What the interpreter cannot do is told from what a candidate does
wrong.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from . import combining, library, narrow, reasons, types_once
from .products import PRECISIONS, multiply_alike
from .rounding import round_alike
from .watch import EnoughError, Watch

GARBAGE = {
    "f": (240.0, 3.0e4, 1.5e30, 1.5e30),
    "i": (0x5B, 0x5B, 0x3BADF00D, 0x3BADF00D),
    "u": (0x5B, 0x5B, 0x3BADF00D, 0x3BADF00D),
    "b": (True,),
}
"""By the kind of type and its bytes as a power of two: wrong wherever it is used, and finite, so
that a zero takes it away."""


class LimitError(Exception):
    """The interpreter lacks what a kernel asks for; the kernel may be right."""


_UNTOLD_PRECISION = {"cuda": "tf32", "hip": "ieee"}
"""What Triton's back ends make of a product of float32 whose kernel does not say."""


def open_eyes(watch: Watch, capability: int, backend: str = "cuda") -> None:
    """Patches the interpreter for good, to round as devices of a compute capability (90 is 9.0) do,
    of AMD's (0) as Triton's `hip` back end builds; called before there is any candidate."""
    from triton.runtime import interpreter

    types_once.install(interpreter)
    # Without `debug` its checks for overflow check nothing, and take half of the time.
    shown = interpreter.interpreter_builder
    shown.options = dataclasses.replace(
        shown.options,
        sanitize_overflow=False,
        allowed_dot_input_precisions=("ieee", *PRECISIONS),
        default_dot_input_precision=_UNTOLD_PRECISION[backend],
    )
    builder = type(shown)
    narrow.learn(interpreter, capability, _refuse_type)
    _order(builder, watch)
    _memory(builder, interpreter, watch)
    _atomics(builder, interpreter, watch)
    round_alike(builder, interpreter)
    multiply_alike(interpreter, watch, capability)
    _numbers(interpreter)
    combining.grow(interpreter)
    _patch_once(interpreter)
    builder.create_inline_asm = _refuse_assembly
    library.supply(interpreter, _refuse_symbol)
    executor = interpreter.GridExecutor
    called = executor.__call__

    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        watch.kernel = self.fn.__name__
        tensors = [getattr(one, "base", one) for one in (*args, *kwargs.values())]
        watch.given = [one.data_ptr() for one in tensors if hasattr(one, "data_ptr")]
        try:
            called(self, *args, **kwargs)
        except Exception as error:
            # Triton may have wrapped it in an exception of its own.
            if not reasons.find_beneath(error, EnoughError):
                raise
        watch.leave()

    executor.__call__ = call
    # All tensors are the CPU's already; a copy back would write to the inputs.
    executor._init_args_hst = lambda self, args, kwargs: (args, kwargs)
    executor._restore_args_dev = lambda self, *_: None


def _refuse_assembly(*_: Any) -> None:
    raise LimitError("the interpreter has no inline_asm_elementwise")


def _refuse_type(name: str) -> None:
    raise LimitError(f"the interpreter has no {name}: use tl.float8e4nv or tl.float8e5")


def _refuse_symbol(symbol: str) -> None:
    raise LimitError(f"the interpreter has no libdevice function {symbol}")


def _numbers(interpreter: Any) -> None:
    """Lets scalars bound loops: Triton 3.6 converts them as NumPy 2.4 no longer allows it."""
    dress = interpreter._patch_lang_tensor

    def dress_index(tensor: Any, *scope: Any) -> None:
        dress(tensor, *scope)
        tensor.__index__ = lambda self: int(self.handle.data.item())

    interpreter._patch_lang_tensor = dress_index


class _Lasting:
    """Stands for a patch that is not taken back."""

    def restore(self) -> None:
        return


def _patch_once(interpreter: Any) -> None:
    """Dresses the language for good: anew for each launch and each call of a helper takes 2 ms."""
    import inspect

    patch, kinds = interpreter._patch_lang, interpreter._get_np_dtype
    dressed: set[int] = set()
    lasting = _Lasting()
    seen: dict[int, Any] = {}

    def patch_lang(fn: Any) -> Any:
        if seen.get(id(fn.__globals__)) is fn.__globals__:
            return lasting
        seen[id(fn.__globals__)] = fn.__globals__
        found = {id(one) for one in fn.__globals__.values() if inspect.ismodule(one)}
        languages = found & {id(interpreter.tl), id(interpreter.tl.core)}
        if not languages or not languages <= dressed:
            patch(fn)
            dressed.update(languages)
        return lasting

    known: dict[str, Any] = {}
    plain = interpreter.tl.dtype

    def kind_of(kind: Any) -> Any:
        if type(kind) is not plain:
            return kinds(kind)
        if (found := known.get(kind.name)) is None:
            found = known[kind.name] = kinds(kind)
        return found

    interpreter._patch_lang, interpreter._get_np_dtype = patch_lang, kind_of


def _order(builder: Any, watch: Watch) -> None:
    dimensions, index = builder.set_grid_dim, builder.set_grid_idx

    def set_grid_dim(self: Any, x: Any, y: Any, z: Any) -> None:
        grid = int(x), int(y), int(z)
        if min(grid) < 0:
            raise ValueError(f"the grid {grid} is negative")
        watch.launch(grid)
        dimensions(self, *grid)

    def set_grid_idx(self: Any, x: int, y: int, z: int) -> None:
        index(self, *watch.turn(x, y, z))

    builder.set_grid_dim, builder.set_grid_idx = set_grid_dim, set_grid_idx


def _memory(builder: Any, interpreter: Any, watch: Watch) -> None:
    load, store = builder.create_masked_load, builder.create_masked_store

    # What follows the mask, hints for caches, differs between releases.
    def create_masked_load(
        self: Any, ptrs: Any, mask: Any, other: Any, *hints: Any, **more: Any
    ) -> Any:
        kind = ptrs.get_element_ty()
        dtype = np.dtype(interpreter._get_np_dtype(kind))
        watch.read(ptrs.data, mask.data, dtype.itemsize)
        given = other
        if other is None:
            other = interpreter.TensorHandle(_garbage(ptrs.data.shape, dtype), kind)
        if watch.story.is_told:
            told = None if given is None else given.data
            instead = watch.story.loads(mask.data, told, _kind(dtype))
            if instead is not None:
                held = np.full(ptrs.data.shape, instead, dtype)
                other = interpreter.TensorHandle(held, kind)
        loaded = load(self, ptrs, mask, other, *hints, **more)
        if dtype.kind in "iu":
            watch.note_integers(ptrs.data, loaded.data)
        return loaded

    def create_masked_store(
        self: Any, ptrs: Any, value: Any, mask: Any, *hints: Any, **more: Any
    ) -> Any:
        dtype = np.dtype(interpreter._get_np_dtype(ptrs.get_element_ty()))

        def compare_bits() -> Any:
            fill = np.zeros(ptrs.data.shape, dtype)
            there = interpreter._interpreter.load(ptrs.data, mask.data, fill, dtype)
            wanted = np.broadcast_to(value.data, there.shape).astype(dtype)
            # As bits: a NaN is the same as itself.
            bits = f"u{dtype.itemsize}"
            return np.ascontiguousarray(there).view(bits) == wanted.view(bits)

        watch.write(ptrs.data, mask.data, dtype.itemsize, compare_bits)
        return store(self, ptrs, value, mask, *hints, **more)

    builder.create_masked_load = create_masked_load
    builder.create_masked_store = create_masked_store


def _garbage(shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Large and of both signs, so that neither a sum, a maximum nor a minimum ignores it."""
    kind = _kind(dtype)
    made = np.full(shape, GARBAGE[kind][dtype.itemsize.bit_length() - 1], dtype=dtype)
    if kind in "if":
        flat = made.reshape(-1)
        flat[1::2] = -flat[1::2]
    return made


def _kind(dtype: np.dtype[Any]) -> str:
    """numpy's letter for it, which calls floats of ml_dtypes something else."""
    return "f" if narrow.is_float(dtype) else dtype.kind


def _atomics(builder: Any, interpreter: Any, watch: Watch) -> None:
    exchange, update = builder.create_atomic_cas, builder.create_atomic_rmw
    relaxed = interpreter._ir.MEM_SEMANTIC.RELAXED

    def create_atomic_cas(self: Any, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> Any:
        mask = np.ones_like(ptr.data, dtype=bool)
        watch.exchange(ptr.data, mask, cmp.data.dtype.itemsize, orders=sem != relaxed)
        return exchange(self, ptr, cmp, val, sem, scope)

    def create_atomic_rmw(
        self: Any, op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any
    ) -> Any:
        watch.exchange(ptr.data, mask.data, val.data.dtype.itemsize, orders=sem != relaxed)
        return update(self, op, ptr, val, mask, sem, scope)

    builder.create_atomic_cas, builder.create_atomic_rmw = create_atomic_cas, create_atomic_rmw
