# SPDX-License-Identifier: Apache-2.0
"""Products of tiles (`tl.dot`) in Triton's interpreter, as exact as a GPU's tensor cores make them.

What Triton makes of a product was read in the PTX of Triton 3.9 for sm_80, sm_89, sm_90 and sm_100.

* `tf32` hands float32 to the instruction as it is: there is no cvt. That the instruction ignores
  the lower 13 bits is assumed, so operands are cut to 10 bits, not rounded.
* `tf32x3` rounds the large parts, ties away from zero (cvt.rna.tf32), and hands on what is left,
  which is cut. bf16x3 and bf16x6 round all parts to the nearest even (cvt.rn.bf16).
* float16 and bfloat16 are multiplied exactly and summed in float32. A float16 accumulator is
  rounded after each instruction, which takes 32 bytes of a row: 16 elements, or 32 of float8.
* float8 on sm_90 keeps few bits of its sums, see `sum_aligned`: that is an assumption.

Not emulated: in which order an instruction adds, and that it cuts what it adds in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from .narrow import is_float, load_held
from .watch import Watch

Array = np.ndarray[Any, Any]
Cut = Callable[[Array], Array]

PRODUCTS = 256
"""Products of two numbers that take as long as an element of a tile that is loaded."""
ROW_BYTES = 32
"""Of each operand that one instruction takes along the summed axis (PTX ISA, mma and wgmma)."""
MULTIPLIES_FLOAT8 = 89
"""The capability from which float8 is multiplied as it is; before, Triton makes float16 of it."""
ALIGNED = 90
"""The capability whose float8 products are summed with few bits."""
KEPT_BITS = 13
"""Fraction bits of such a sum, counted from its largest term."""


def _cut_bits(x: Array, kept_bits: int) -> Array:
    """The nearest number toward zero with so short a mantissa."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    kept = (bits & np.uint32(0xFFFFFFFF << (23 - kept_bits) & 0xFFFFFFFF)).view(np.float32)
    return np.asarray(np.where(np.isfinite(x), kept, x).reshape(x.shape))


def _round(x: Array, kept_bits: int, *, away: bool) -> Array:
    """The nearest number with so short a mantissa, ties to even or away from zero."""
    dropped = 23 - kept_bits
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32).astype(np.uint64)
    half = 1 << (dropped - 1)
    added = half if away else half - 1 + ((bits >> dropped) & 1)
    kept = (bits + added) & (0xFFFFFFFF << dropped & 0xFFFFFFFF)
    rounded = kept.astype(np.uint32).view(np.float32)
    return np.asarray(np.where(np.isfinite(x), rounded, x).reshape(x.shape))


def cut_tf32(x: Array) -> Array:
    """What an instruction sees of a float32 in the place of a .tf32 operand."""
    return _cut_bits(x, 10)


def round_tf32(x: Array) -> Array:
    """cvt.rna.tf32.f32."""
    return _round(x, 10, away=True)


def round_bf16(x: Array) -> Array:
    """cvt.rn.bf16.f32, in float32."""
    return _round(x, 7, away=False)


@dataclass(frozen=True)
class Split:
    """How a product of float32 is made of products of narrower numbers."""

    parts: tuple[Cut, ...]
    """What makes each part of what is left of the number, the largest first."""
    products: tuple[tuple[int, int], ...]
    """Which part of the one operand meets which of the other, the smallest first."""


SPLITS = {
    "TF32": Split((cut_tf32,), ((0, 0),)),
    "TF32x3": Split((round_tf32, cut_tf32), ((1, 0), (0, 1), (0, 0))),
    "BF16x3": Split((round_bf16,) * 2, ((1, 0), (0, 1), (0, 0))),
    "BF16x6": Split((round_bf16,) * 3, ((1, 1), (2, 0), (0, 2), (1, 0), (0, 1), (0, 0))),
}
"""By Triton's names of `input_precision`."""
PRECISIONS = tuple(name.lower() for name in SPLITS)
"""As kernels write them."""


def multiply_alike(interpreter: Any, watch: Watch, capability: int) -> None:
    """Patches the interpreter's products for good."""
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    kinds = interpreter._ir.INPUT_PRECISION
    aligns = capability == ALIGNED
    splits = {getattr(kinds, name): split for name, split in SPLITS.items() if hasattr(kinds, name)}

    def create_dot(self: Any, a: Any, b: Any, d: Any, input_precision: Any, imprecise: Any) -> Any:
        watch.step(d.data.size * a.data.shape[-1] // PRODUCTS)
        split = splits.get(input_precision) if a.data.dtype == np.float32 else None
        if watch.story.is_told:
            watch.story.multiplies(str(input_precision).rpartition(".")[2] if split else "")
            split = None if watch.story.is_exact else split
        left, right = a.data, b.data
        if left.dtype in load_held().float8 and capability < MULTIPLIES_FLOAT8:
            left, right = left.astype(np.float16), right.astype(np.float16)
        with np.errstate(all="ignore"):
            if split is not None:
                made = multiply_split(left, right, split) + d.data
            elif aligns and left.dtype in load_held().float8 and d.data.dtype == np.float32:
                made = sum_aligned(left, right, d.data, imprecise)
            else:
                made = multiply(left, right, d.data)
        return handle(made, d.dtype.scalar)

    builder.create_dot = create_dot
    if hasattr(interpreter, "_dot_scaled_scale_to_f32"):
        _widen_scaled(interpreter, watch)


def multiply(a: Array, b: Array, d: Array) -> Array:
    """a b + d in the type of d: integers wrap, float16 is rounded after each instruction."""
    if d.dtype.kind in "iu":
        # float64 holds the sums of tiles that anything could hold.
        product = np.matmul(a.astype(np.float64), b.astype(np.float64))
        return np.asarray((product.astype(np.int64) + d).astype(d.dtype))
    if d.dtype != np.float16:
        return np.asarray(np.matmul(a.astype(d.dtype), b.astype(d.dtype)) + d)
    total, step = d, ROW_BYTES // a.dtype.itemsize
    for at in range(0, a.shape[-1], step):
        left, right = a[..., at : at + step], b[..., at : at + step, :]
        product = np.matmul(left.astype(np.float32), right.astype(np.float32))
        total = (product + total.astype(np.float32)).astype(np.float16)
    return total


def multiply_split(a: Array, b: Array, split: Split) -> Array:
    """a b of float32, made of products of narrower numbers."""
    left, right = parts(a, split), parts(b, split)
    total = np.zeros((*a.shape[:-1], b.shape[-1]), np.float32)
    for one, other in split.products:
        if one == other == 0:
            # What is not finite makes NaN of all small products, which Triton leaves out.
            total = np.where(np.isnan(total), np.float32(0), total)
        total = np.matmul(left[one], right[other]) + total
    return total


def parts(x: Array, split: Split) -> list[Array]:
    """The narrow numbers whose sum stands for x, the largest first."""
    found: list[Array] = []
    left = x
    with np.errstate(all="ignore"):
        for cut in split.parts:
            part = cut(left)
            found.append(part)
            left = np.asarray(left - part, np.float32)
    return found


def sum_aligned(a: Array, b: Array, d: Array, imprecise: int) -> Array:
    """a b + d of float8 as sm_90 is assumed to make it: each instruction aligns 32 products and
    what it adds them to with the largest of them and cuts them to 13 fraction bits.

    That the accumulator keeps some 14 bits is what DeepSeek-V3 (arXiv 2412.19437, 3.3.2) measured;
    NVIDIA documents nothing. Triton (`max_num_imprecise_acc`) adds what that many products came to
    in float32 and begins anew where the tile's rows are longer; without it all is summed so.
    """
    length = a.shape[-1]
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    is_partial = 0 < imprecise <= length
    total = np.zeros(d.shape) if is_partial else d.astype(np.float64)
    done, summed = d, 0
    for at in range(0, length, ROW_BYTES):
        piece = slice(at, at + ROW_BYTES)
        total = _add_aligned(wide_a[..., piece], wide_b[..., piece, :], total)
        summed += ROW_BYTES
        if is_partial and (summed >= imprecise or at + ROW_BYTES >= length):
            done = done + total.astype(np.float32)
            total, summed = np.zeros(d.shape), 0
    return done if is_partial else total.astype(np.float32)


def _add_aligned(a: Array, b: Array, total: Array) -> Array:
    _, exponents = np.frexp(total)
    largest = np.where(total == 0, np.iinfo(np.int32).min // 2, exponents)
    for at in range(a.shape[-1]):
        product = a[..., at, None] * b[..., at, None, :]
        exponents = np.frexp(product)[1]
        largest = np.maximum(largest, np.where(product == 0, largest, exponents))
    shift = KEPT_BITS + 1 - np.maximum(largest, -1000)
    summed = np.trunc(np.ldexp(total, shift))
    for at in range(a.shape[-1]):
        summed = summed + np.trunc(np.ldexp(a[..., at, None] * b[..., at, None, :], shift))
    return np.asarray(np.ldexp(summed, -shift))


def _widen_scaled(interpreter: Any, watch: Watch) -> None:
    """Operands and scales of `tl.dot_scaled` that are no codes are numbers here already."""
    builder = interpreter.InterpreterBuilder
    operand, scale = interpreter._mxfp_value_handle_to_float32, interpreter._dot_scaled_scale_to_f32
    dot = builder.create_dot_scaled

    def to_float32(plain: Any) -> Any:
        def widen(value: Any, *more: Any) -> Any:
            if is_float(value.data.dtype):
                return value.data.astype(np.float32)
            return plain(value, *more)

        return widen

    def create_dot_scaled(self: Any, lhs: Any, *rest: Any) -> Any:
        watch.step(rest[-1].data.size * lhs.data.shape[-1] // PRODUCTS)
        return dot(self, lhs, *rest)

    interpreter._mxfp_value_handle_to_float32 = to_float32(operand)
    interpreter._dot_scaled_scale_to_f32 = to_float32(scale)
    builder.create_dot_scaled = create_dot_scaled
