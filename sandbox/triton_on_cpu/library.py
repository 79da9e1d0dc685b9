# SPDX-License-Identifier: Apache-2.0
"""CUDA's device functions in the interpreter: what `libdevice` calls, by the name of the symbol.

Full-precision functions are computed in float64 and rounded once, which is closer than the one or
two units in the last place that the CUDA Math API allows them. The fast ones are made as the API
documents their intrinsics: from an exact power or logarithm of two, with the argument or the result
multiplied in float32, and sines to a fixed absolute error; so their error is what a device has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from . import rounding

Array = Any
Function = Callable[..., Array]

LOG2_10, LN_2 = np.float32(3.321928094887362), math.log(2)
FAST_SINE = 2.0**-21
"""The documented absolute error of __sinf and __cosf is 2^-21.41 on [-pi, pi]."""
_FLOAT = re.compile(r"__nv_(?P<fast>fast_)?(?P<name>\w+)$")
_ROUNDED = re.compile(r"__nv_[fd](?P<name>add|sub|mul|div|rcp|sqrt|maf?|rsqrt)_(?P<to>r[nzdu])$")
_CONVERTED = re.compile(r"__nv_(?:float|double)2u?(?:int|ll)_(?P<to>r[nzdu])$")
_NARROWED = re.compile(r"__nv_double2float_(?P<to>r[nzdu])$")
_WIDENED = re.compile(r"__nv_u?(?:int|ll)2(?:float|double)(?:_r[nzdu])?$")


def _map_elements(function: Callable[..., float]) -> Function:
    """A function of the math module for arrays; what it refuses is NaN."""

    def call_one(*values: float) -> float:
        try:
            return function(*values)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return np.vectorize(call_one, otypes=[np.float64])


def _rounded_away(values: Array) -> Array:
    return np.where(np.isfinite(values), np.trunc(values + np.copysign(0.5, values)), values)


def _normal_share(values: Array) -> Array:
    return 0.5 * PLAIN["erfc"](-values / math.sqrt(2.0))


PLAIN: dict[str, Function] = {
    "abs": np.abs,
    "fabs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "rint": np.rint,
    "llrint": np.rint,
    "nearbyint": np.rint,
    "round": _rounded_away,
    "llround": _rounded_away,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "cbrt": np.cbrt,
    "rcbrt": lambda x: 1.0 / np.cbrt(x),
    "hypot": np.hypot,
    "rhypot": lambda x, y: 1.0 / np.hypot(x, y),
    "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z),
    "rnorm3d": lambda x, y, z: 1.0 / np.sqrt(x * x + y * y + z * z),
    "rnorm4d": lambda x, y, z, w: 1.0 / np.sqrt(x * x + y * y + z * z + w * w),
    "norm4d": lambda x, y, z, w: np.sqrt(x * x + y * y + z * z + w * w),
    "exp": np.exp,
    "exp2": np.exp2,
    "exp10": lambda x: np.power(10.0, x),
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "atan2": np.arctan2,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)),
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)),
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": _map_elements(math.erf),
    "erfc": _map_elements(math.erfc),
    "normcdf": _normal_share,
    "lgamma": _map_elements(math.lgamma),
    "tgamma": _map_elements(math.gamma),
    "pow": np.power,
    "powi": np.power,
    "fmod": np.fmod,
    "remainder": _map_elements(math.remainder),
    "fdim": lambda x, y: np.maximum(x - y, 0.0),
    "copysign": np.copysign,
    "fma": lambda x, y, z: x * y + z,
    "max": np.fmax,
    "min": np.fmin,
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int64)),
    "scalbn": lambda x, n: np.ldexp(x, n.astype(np.int64)),
    "saturate": lambda x: np.clip(np.nan_to_num(x, nan=0.0), 0.0, 1.0),
    "logb": lambda x: np.frexp(x)[1] - 1.0,
    "ilogb": lambda x: np.frexp(x)[1] - 1,
    "isnan": np.isnan,
    "isnand": np.isnan,
    "isinf": np.isinf,
    "isinfd": np.isinf,
    "finite": np.isfinite,
    "isfinited": np.isfinite,
    "signbit": np.signbit,
    "signbitd": np.signbit,
}
"""By the symbol's name without the letter of its type; arguments and results are float64."""

FAST: dict[str, Function] = {
    "exp": rounding.exp,
    "exp10": lambda x: rounding.ex2(x * LOG2_10),
    "log2": lambda x: np.log2(np.float64(x)),
    "log": lambda x: np.float64(np.float32(np.log2(np.float64(x)))) * LN_2,
    "log10": lambda x: np.float64(np.float32(np.log2(np.float64(x)))) * math.log10(2.0),
    "pow": lambda x, y: rounding.ex2(y * np.float32(np.log2(np.float64(x)))),
    "sin": lambda x: np.rint(np.sin(np.float64(x)) / FAST_SINE) * FAST_SINE,
    "cos": lambda x: np.rint(np.cos(np.float64(x)) / FAST_SINE) * FAST_SINE,
    "tan": lambda x: FAST["sin"](x) / FAST["cos"](x),
    "fdivide": lambda x, y: np.float64(x) * np.float64(np.float32(1.0 / np.float64(y))),
}
"""Arguments are float32."""

BASIC: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "rcp": lambda x: 1.0 / x,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "ma": lambda x, y, z: x * y + z,
    "maf": lambda x, y, z: x * y + z,
}
WHOLE: dict[str, Function] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}

BITS: dict[str, Function] = {
    "__nv_popc": lambda x: np.bitwise_count(x.view(np.uint32)),
    "__nv_popcll": lambda x: np.bitwise_count(x.view(np.uint64)),
    "__nv_int_as_float": lambda x: x.view(np.float32),
    "__nv_uint_as_float": lambda x: x.view(np.float32),
    "__nv_float_as_int": lambda x: x.view(np.int32),
    "__nv_float_as_uint": lambda x: x.view(np.uint32),
    "__nv_mulhi": lambda x, y: (x.astype(np.int64) * y) >> 32,
    "__nv_umulhi": lambda x, y: (x.astype(np.uint64) * y) >> np.uint64(32),
    "__nv_mul24": lambda x, y: x * y,
    "__nv_umul24": lambda x, y: x * y,
    "__nv_abs": np.abs,
    "__nv_llabs": np.abs,
    "__nv_clz": lambda x: 32 - np.frexp(x.view(np.uint32).astype(np.float64))[1],
    "__nv_hadd": lambda x, y: (x.astype(np.int64) + y) >> 1,
    "__nv_rhadd": lambda x, y: (x.astype(np.int64) + y + 1) >> 1,
}
"""On integers as they are."""


def function(symbol: str) -> Function | None:
    """What a symbol of libdevice computes, on arrays as they are; None: it is not known here."""
    if symbol == "__nv_exp2f":
        return rounding.ex2
    if symbol in BITS:
        return BITS[symbol]
    if known := _CONVERTED.match(symbol):
        whole = WHOLE[known["to"]]
        return lambda x: whole(x)
    if _WIDENED.match(symbol):
        return lambda x: x
    if known := _ROUNDED.match(symbol):
        return _round_directed(BASIC[known["name"]], known["to"])
    if known := _NARROWED.match(symbol):
        return _round_directed(lambda x: x, known["to"], np.float32)
    known = _FLOAT.match(symbol)
    if known is None:
        return None
    name = known["name"]
    if known["fast"]:
        return FAST.get(name.removesuffix("f"))
    plain = PLAIN.get(name) or PLAIN.get(name.removesuffix("f"))
    return None if plain is None else (lambda *values: plain(*map(_widen, values)))


def _widen(values: Array) -> Array:
    return values.astype(np.float64)


def _round_directed(basic: Function, to: str, kind: Any = None) -> Function:
    """Rounded as the name says; float64 holds sums and products of float32 to far below that."""

    def compute_rounded(*values: Array) -> Array:
        exact = basic(*map(_widen, values))
        near = exact.astype(kind or values[0].dtype)
        if to == "rn":
            return near
        target = {"rd": -np.inf, "ru": np.inf}.get(to)
        beyond = {
            "rd": near > exact,
            "ru": near < exact,
            "rz": np.abs(near) > np.abs(exact),
        }[to]
        toward = near.dtype.type(0.0 if target is None else target)
        return np.where(beyond, np.nextafter(near, toward), near)

    return compute_rounded


def supply(interpreter: Any, refuse: Callable[[str], Any]) -> None:
    """Gives the interpreter the library under every name that it is imported by, for good.

    `refuse` raises what is raised for a symbol that is not known here.
    """
    from triton.language.extra import libdevice as shown
    from triton.language.extra.cuda import libdevice as real

    def elementwise(
        self: Any, name: str, path: str, symbol: str, handles: Any, kind: Any, pure: Any
    ) -> Any:
        found = function(symbol)
        if found is None:
            refuse(symbol)
            return None
        scalar = kind.scalar
        with np.errstate(all="ignore"):
            values = found(*(handle.data for handle in handles))
        made = np.asarray(values).astype(interpreter._get_np_dtype(scalar))
        return interpreter.TensorHandle(made, scalar)

    interpreter.InterpreterBuilder.create_extern_elementwise = elementwise
    for name, member in vars(real).copy().items():
        if getattr(member, "__triton_builtin__", False):
            called = _with_semantic(member, interpreter.interpreter_semantic)
            setattr(real, name, called)
            setattr(shown, name, called)


def _with_semantic(member: Any, semantic: Any) -> Any:
    def call_member(*args: Any, **kwargs: Any) -> Any:
        kwargs.pop("_semantic", None)
        return member(*args, **kwargs, _semantic=semantic)

    call_member.__name__ = member.__name__
    return call_member
