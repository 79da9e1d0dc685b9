# SPDX-License-Identifier: Apache-2.0
"""Makes Triton's interpreter round as a GPU does where that decides whether an answer is right.

Exponentials are the hardware's approximate ones, atomic sums of float32 flush denormals, and
products of float32 are split as their `input_precision` says. Everything else is IEEE arithmetic,
which the hardware has too, or is nearer to it than any gate looks (docs/triton.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .watch import Watch

Array = np.ndarray[Any, Any]

EX2_ERROR = 0.9 * 2.0**-23
"""Relative; ex2.approx.f32 (PTX ISA) is off by two units in the last place at most. Rounding takes
half a unit, and __expf, which has two near 0 as well, a half for its argument."""
LOG2_E = np.float32(1.4426950408889634)
SMALLEST_NORMAL = np.float32(2.0**-126)


@dataclass(frozen=True)
class Split:
    """How a product of float32 is made of products of narrower numbers."""

    kept_bits: int
    """Of a part's mantissa."""
    parts: int
    products: tuple[tuple[int, int], ...]
    """Which part of the one operand meets which of the other, the smallest first."""


PRODUCTS = 256
"""Products of two numbers that take as long as an element of a tile that is loaded."""
SPLITS = {
    "TF32": Split(10, 1, ((0, 0),)),
    "TF32x3": Split(10, 2, ((1, 0), (0, 1), (0, 0))),
    "BF16x3": Split(7, 2, ((1, 0), (0, 1), (0, 0))),
    "BF16x6": Split(7, 3, ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0))),
}
"""By Triton's names of `input_precision`."""
PRECISIONS = tuple(name.lower() for name in SPLITS)
"""As kernels write them."""


def round_alike(builder: Any, interpreter: Any, watch: Watch) -> None:
    """Patches the interpreter's builder for good."""
    _exponentials(builder, interpreter)
    _atomic_sums(builder, interpreter)
    _products(builder, interpreter, watch)


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
    """On global memory they take denormals for zeros and give none (PTX ISA, atom)."""
    update = builder.create_atomic_rmw
    total = interpreter._ir.ATOMIC_OP.FADD

    def create_atomic_rmw(
        self: Any, op: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any
    ) -> Any:
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


def _flush(x: Array) -> Array:
    return np.asarray(np.where(np.abs(x) < SMALLEST_NORMAL, np.copysign(np.float32(0), x), x))


def _products(builder: Any, interpreter: Any, watch: Watch) -> None:
    dot = builder.create_dot
    kinds = interpreter._ir.INPUT_PRECISION
    splits = {getattr(kinds, name): split for name, split in SPLITS.items() if hasattr(kinds, name)}

    def create_dot(self: Any, a: Any, b: Any, d: Any, input_precision: Any, imprecise: Any) -> Any:
        watch.step(d.data.size * a.data.shape[-1] // PRODUCTS)
        split = splits.get(input_precision)
        if watch.story.is_told:
            watch.story.multiplies(str(input_precision).rpartition(".")[2] if split else "")
            split = None if watch.story.is_exact else split
        if split is None or a.data.dtype != np.float32 or b.data.dtype != np.float32:
            return dot(self, a, b, d, input_precision, imprecise)
        left, right = (
            [interpreter.TensorHandle(part, operand.dtype) for part in parts(operand.data, split)]
            for operand in (a, b)
        )
        total = np.zeros(d.data.shape, np.float32)
        for one, other in split.products:
            if one == other == 0:
                # What is not finite makes NaN of all small products, which Triton leaves out.
                total = np.where(np.isnan(total), np.float32(0), total)
            so_far = interpreter.TensorHandle(total, d.dtype)
            total = dot(self, left[one], right[other], so_far, kinds.IEEE, imprecise).data
        return interpreter.TensorHandle(total + d.data, d.dtype)

    builder.create_dot = create_dot


def parts(x: Array, split: Split) -> list[Array]:
    """The narrow numbers whose sum stands for x, the largest first."""
    found: list[Array] = []
    left = x
    with np.errstate(all="ignore"):
        for _ in range(split.parts):
            part = _round(left, split.kept_bits)
            found.append(part)
            left = np.asarray(left - part, np.float32)
    return found


def _round(x: Array, kept_bits: int) -> Array:
    """To the nearest number with so short a mantissa, ties to even."""
    dropped = 23 - kept_bits
    bits = np.ascontiguousarray(x).view(np.uint32).astype(np.uint64)
    half = (1 << (dropped - 1)) - 1
    kept = (bits + half + ((bits >> dropped) & 1)) & (0xFFFFFFFF << dropped & 0xFFFFFFFF)
    rounded = kept.astype(np.uint32).view(np.float32)
    return np.asarray(np.where(np.isfinite(x), rounded, x).reshape(x.shape))
