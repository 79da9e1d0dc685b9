# SPDX-License-Identifier: Apache-2.0
"""Narrow numbers in Triton's interpreter: bfloat16, float8, and casts as a GPU makes them.

The interpreter keeps bfloat16 and float8 in unsigned integers and computes with those. Here they
are arrays of ml_dtypes, so that every operation rounds once, to the nearest, ties to even, as the
hardware's do. What casts become was read in the PTX that Triton 3.9 writes for sm_80 and sm_90, and
is in the PTX ISA (cvt): to float8 they saturate, infinities included (.satfinite); to integers they
saturate at the register's width, and NaN is 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]

FOREIGN = ("fp8e4b15", "fp8e4b8", "fp8e5b16")
"""Float8 types that are none of OFP8's."""
LARGEST = {"float8_e4m3fn": 448.0, "float8_e5m2": 57344.0}
NATIVE = 90
"""The capability from which an integer becomes bfloat16 in one step, not by way of float32."""
REGISTER = 16
"""Bits of the smallest integer register: 8-bit integers are made in one and cut."""


class HeldTypes(NamedTuple):
    """The types that numpy lacks, as ml_dtypes has them."""

    bfloat16: np.dtype[Any]
    e4m3: np.dtype[Any]
    e5m2: np.dtype[Any]

    @property
    def float8(self) -> tuple[np.dtype[Any], ...]:
        """Those of one byte."""
        return self.e4m3, self.e5m2


@functools.cache
def load_held() -> HeldTypes:
    """Imported when it is first asked for, as everywhere outside of the codecs."""
    import ml_dtypes

    types = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
    return HeldTypes(*map(np.dtype, types))


def learn(interpreter: Any, capability: int, refuse: Callable[[str], Any]) -> None:
    """Patches the interpreter for good; `refuse` raises what is raised for a type that it lacks."""
    _types(interpreter, refuse)
    interpreter._interpreter = _Memory(interpreter._interpreter)
    _casts(interpreter, capability)
    _arithmetic(interpreter)
    _reductions(interpreter)


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether it has fractions: numpy takes those of ml_dtypes for anything."""
    return dtype.kind == "f" or dtype in load_held()


def is_short(dtype: np.dtype[Any]) -> bool:
    """Whether sums in it round where sums in float32 do not."""
    return is_float(dtype) and dtype.itemsize <= 2


def convert(x: Array, dtype: np.dtype[Any], capability: int = NATIVE) -> Array:
    """The values as a device casts them, without a rounding mode of its own."""
    if x.dtype == dtype:
        return x
    with np.errstate(all="ignore"):
        if is_float(x.dtype):
            return to_float(x, dtype) if is_float(dtype) else to_integer(x, dtype)
        if dtype != load_held().bfloat16:
            return x.astype(dtype)
        wide = np.float32 if capability < NATIVE else np.float64
        return to_float(x.astype(wide), dtype)


def to_float(x: Array, dtype: np.dtype[Any]) -> Array:
    """Floats in another type, rounded once to the nearest, ties to even."""
    with np.errstate(all="ignore"):
        if dtype in load_held().float8:
            largest = LARGEST[dtype.name]
            # minimum and maximum keep NaN.
            x = np.maximum(np.minimum(x.astype(np.float64), largest), -largest)
        if dtype in load_held():
            # ml_dtypes goes by way of float32, which must not round first.
            x = _sticky(x) if x.dtype == np.float64 else x.astype(np.float32)
        return np.asarray(x.astype(dtype))


def toward_zero(x: Array, dtype: np.dtype[Any]) -> Array:
    """Floats in another type, cut (`fp_downcast_rounding="rtz"`); infinity stays where there is
    one, and what is larger than the largest number becomes that."""
    near = to_float(x, dtype)
    with np.errstate(all="ignore"):
        if dtype == load_held().e5m2:
            near = np.where(np.isinf(x), x.astype(dtype), near)
        is_beyond = np.abs(near.astype(np.float64)) > np.abs(x.astype(np.float64))
    bits = near.view(f"u{dtype.itemsize}")
    return np.asarray((bits - is_beyond.astype(bits.dtype)).view(dtype))


def to_integer(x: Array, dtype: np.dtype[Any]) -> Array:
    """Floats as integers, cut; beyond the range of 32 bits or less the nearest there is."""
    if dtype.itemsize == 8 or dtype.kind not in "iu":
        return x.astype(dtype)
    register = np.iinfo(f"{dtype.kind}{max(dtype.itemsize, REGISTER // 8)}")
    cut = np.nan_to_num(np.trunc(x.astype(np.float64)), nan=0.0)
    return np.asarray(np.clip(cut, register.min, register.max).astype(np.int64).astype(dtype))


def _sticky(x: Array) -> Array:
    """float64 in float32 that rounds to fewer digits as the float64 would: cut, with the last bit
    set where something was cut off."""
    near = x.astype(np.float32)
    is_beyond = np.abs(near.astype(np.float64)) > np.abs(x)
    bits = near.view(np.uint32) - is_beyond.astype(np.uint32)
    is_inexact = (bits.view(np.float32).astype(np.float64) != x) & ~np.isnan(x)
    return np.asarray((bits | is_inexact.astype(np.uint32)).view(np.float32))


def _types(interpreter: Any, refuse: Callable[[str], Any]) -> None:
    plain, pointer = interpreter._get_np_dtype, interpreter.tl.pointer_type
    known = dict(zip(("bf16", "fp8e4nv", "fp8e5"), load_held(), strict=True))

    def kind_of(kind: Any) -> Any:
        if not isinstance(kind, pointer):
            element = getattr(kind, "element_ty", kind)
            name = getattr(element, "name", "")
            if not isinstance(element, pointer) and name in FOREIGN:
                refuse(name)
            if name in known:
                return known[name]
        return plain(kind)

    interpreter._get_np_dtype = kind_of


class _Memory:
    """Triton's access to memory, which knows numpy's own types, for the others by their bits."""

    def __init__(self, plain: Any) -> None:
        self._plain = plain

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)

    def load(self, pointers: Any, mask: Any, other: Any, dtype: Any) -> Any:
        """What lies at the pointers, or the other values."""
        if dtype not in load_held():
            return self._plain.load(pointers, mask, other, dtype)
        bits = np.dtype(f"u{dtype.itemsize}")
        return self._plain.load(pointers, mask, other.view(bits), bits).view(dtype)

    def store(self, pointers: Any, value: Any, mask: Any) -> Any:
        """Writes the values."""
        if value.dtype in load_held():
            value = value.view(f"u{value.dtype.itemsize}")
        return self._plain.store(pointers, value, mask)

    def atomic_cas(self, pointers: Any, expected: Any, value: Any, order: Any) -> Any:
        """Puts the values where the expected bits are; what was there before."""
        dtype = value.dtype
        if dtype in load_held():
            bits = f"u{dtype.itemsize}"
            expected, value = expected.view(bits), value.view(bits)
        return self._plain.atomic_cas(pointers, expected, value, order).view(dtype)


def _casts(interpreter: Any, capability: int) -> None:
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    zero = interpreter._ir.ROUNDING_MODE.RTZ

    def cast_impl(self: Any, src: Any, dst_type: Any) -> Any:
        dtype = interpreter._get_np_dtype(dst_type)
        return handle(convert(src.data, dtype, capability), dst_type.scalar)

    def create_fp_to_fp(self: Any, src: Any, dst_type: Any, rounding: Any) -> Any:
        dtype = interpreter._get_np_dtype(dst_type)
        cast = toward_zero if rounding == zero else to_float
        return handle(cast(src.data, dtype), dst_type.scalar)

    builder.cast_impl, builder.create_fp_to_fp = cast_impl, create_fp_to_fp


def _arithmetic(interpreter: Any) -> None:
    builder, handle = interpreter.InterpreterBuilder, interpreter.TensorHandle
    fma, clamp = builder.create_fma, builder.create_clampf

    def create_fma(self: Any, x: Any, y: Any, z: Any) -> Any:
        if z.data.dtype != load_held().bfloat16:
            return fma(self, x, y, z)
        return handle(fma_bfloat16(x.data, y.data, z.data), z.dtype.scalar)

    def create_clampf(self: Any, arg: Any, lo: Any, hi: Any, nans: Any) -> Any:
        if arg.data.dtype not in load_held():
            return clamp(self, arg, lo, hi, nans)
        # Every value of these is one of float32.
        wide = [one.data.astype(np.float32) for one in (arg, lo, hi)]
        handles = [handle(one, interpreter.tl.float32) for one in wide]
        clamped = clamp(self, *handles, nans).data
        return handle(clamped.astype(arg.data.dtype), arg.dtype.scalar)

    builder.create_fma, builder.create_clampf = create_fma, create_clampf


def fma_bfloat16(x: Array, y: Array, z: Array) -> Array:
    """x y + z of bfloat16, rounded once."""
    with np.errstate(all="ignore"):
        product, added = x.astype(np.float64) * y.astype(np.float64), z.astype(np.float64)
        total = product + added
        # What float64 lost (Knuth's two-sum), which decides where the rest is a tie.
        back = total - product
        lost = (product - (total - back)) + (added - back)
        is_even = np.isfinite(total) & (lost != 0) & (total.view(np.uint64) & 1 == 0)
        toward = np.where(lost > 0, np.inf, -np.inf)
        return to_float(np.where(is_even, np.nextafter(total, toward), total), load_held().bfloat16)


def _reductions(interpreter: Any) -> None:
    """Sums of 16-bit floats round at each addition, as a device's do, which numpy's do not."""
    reduce, scan = interpreter.ReduceOps, interpreter.ScanOps
    total, extreme = reduce.sum, reduce.min_max

    def rounded_sum(self: Any, input: Any) -> Any:
        if is_short(input.handle.data.dtype):
            return self.generic_reduce((input,))[0]
        return total(self, input)

    def min_max(self: Any, input: Any, *operations: Any, **named: Any) -> Any:
        tensor = input[0] if isinstance(input, tuple) else input
        data = tensor.handle.data
        if data.dtype not in load_held():
            return extreme(self, input, *operations, **named)
        # numpy looks for NaN in its own types alone; every value of these is one of float32.
        wide = SimpleNamespace(data=data.astype(np.float32))
        seen = SimpleNamespace(handle=wide, dtype=tensor.dtype)
        return extreme(self, seen, *operations, **named)

    def with_rounding(plain: Any) -> Any:
        def scan_rounding(self: Any, input: Any) -> Any:
            if is_short(input.handle.data.dtype):
                return self.generic_scan((input,))
            return plain(self, input)

        return scan_rounding

    reduce.sum, reduce.min_max = rounded_sum, min_max
    scan.cumsum, scan.cumprod = with_rounding(scan.cumsum), with_rounding(scan.cumprod)
