# SPDX-License-Identifier: Apache-2.0
"""Makes Triton's interpreter round as a GPU does where that decides whether an answer is right.

Exponentials are the hardware's approximate ones, atomic sums of float32 flush denormals, those of
16-bit floats do not and round each time. Products of tiles are in `products`, narrow types in
`narrow`. Everything else is IEEE arithmetic, which the hardware has too, or is nearer to it than
any gate looks (docs/triton.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .narrow import is_short

Array = np.ndarray[Any, Any]

EX2_ERROR = 0.9 * 2.0**-23
"""Relative; ex2.approx.f32 (PTX ISA) is off by two units in the last place at most. Rounding takes
half a unit, and __expf, which has two near 0 as well, a half for its argument."""
LOG2_E = np.float32(1.4426950408889634)
SMALLEST_NORMAL = np.float32(2.0**-126)


def round_alike(builder: Any, interpreter: Any) -> None:
    """Patches the interpreter's builder for good."""
    _exponentials(builder, interpreter)
    _atomic_sums(builder, interpreter)


def ex2(x: Array) -> Array:
    """2^x as ex2.approx.f32 may give it: off by a share of its documented error.

    The bits of the operand choose the share, so that the same call gives the same answer.
    """
    with np.errstate(all="ignore"):
        exact = np.exp2(x.astype(np.float64))
        is_exact = (exact == 0.0) | (exact == 1.0) | ~np.isfinite(exact)
        moved = exact * (1.0 + EX2_ERROR * _share(x))
        return np.asarray(np.where(is_exact, exact, moved).astype(np.float32))


def exp(x: Array) -> Array:
    """e^x as a GPU makes it: x log2(e) is rounded before the exponential to the base 2."""
    with np.errstate(all="ignore"):
        return ex2((x * LOG2_E).astype(np.float32))


def _share(x: Array) -> Array:
    """From -1 to 1, chosen by the bits."""
    with np.errstate(over="ignore"):
        mixed = np.ascontiguousarray(x).view(np.uint32) * np.uint32(0x9E3779B1)
        mixed = (mixed ^ mixed >> np.uint32(15)) * np.uint32(0x85EBCA77)
        mixed = (mixed ^ mixed >> np.uint32(13)) * np.uint32(0xC2B2AE3D)
    drawn = (mixed ^ mixed >> np.uint32(16)).astype(np.float64) / 2.0**31 - 1.0
    return np.asarray(drawn.reshape(x.shape))


def _exponentials(builder: Any, interpreter: Any) -> None:
    def make_approximate(known: Any, function: Any) -> Any:
        def create(self: Any, arg: Any) -> Any:
            if arg.data.dtype != np.float32:
                return known(self, arg)
            return interpreter.TensorHandle(function(arg.data), arg.dtype.scalar)

        return create

    builder.create_exp = make_approximate(builder.create_exp, exp)
    builder.create_exp2 = make_approximate(builder.create_exp2, ex2)


def _atomic_sums(builder: Any, interpreter: Any) -> None:
    """On global memory those of float32 take denormals for zeros and give none, those of 16-bit
    floats keep them (PTX ISA, atom: .noftz)."""
    update = builder.create_atomic_rmw
    total = interpreter._ir.ATOMIC_OP.FADD

    def create_atomic_rmw(
        self: Any, op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any
    ) -> Any:
        if op == total and is_short(val.data.dtype):
            before = _add_each(interpreter._interpreter, ptr.data, val.data, mask.data)
            return interpreter.TensorHandle(before, val.dtype)
        if op != total or val.data.dtype != np.float32:
            return update(self, op, ptr, val, mask, sem, scope)
        flushed = interpreter.TensorHandle(_flush(val.data), val.dtype)
        before = update(self, op, ptr, flushed, mask, sem, scope)
        zeros = np.zeros(ptr.data.shape, np.float32)
        there = interpreter._interpreter.load(ptr.data, mask.data, zeros, np.dtype(np.float32))
        kept = _flush(there)
        if (kept != there).any():
            interpreter._interpreter.store(ptr.data, kept, mask.data)
        return before

    builder.create_atomic_rmw = create_atomic_rmw


def _add_each(memory: Any, pointers: Array, values: Array, mask: Array) -> Array:
    """Adds one after the other where pointers are the same; what was there before each."""
    places, added = pointers.reshape(-1), np.broadcast_to(values, pointers.shape).reshape(-1)
    before = np.zeros(places.shape, added.dtype)
    left = np.flatnonzero(np.broadcast_to(mask, pointers.shape))
    while left.size:
        _, first = np.unique(places[left], return_index=True)
        now, whole = left[first], np.ones(first.size, bool)
        before[now] = memory.load(places[now], whole, before[now], added.dtype)
        with np.errstate(all="ignore"):
            memory.store(places[now], before[now] + added[now], whole)
        left = np.delete(left, first)
    return before.reshape(pointers.shape)


def _flush(x: Array) -> Array:
    return np.asarray(np.where(np.abs(x) < SMALLEST_NORMAL, np.copysign(np.float32(0), x), x))
