# SPDX-License-Identifier: Apache-2.0
"""What the calls of torch and of the CUDA runtime mean in host code, in C++ as in Python.

A call that makes memory gives a buffer, one that only looks at a tensor's metadata gives symbols,
one that computes on a tensor is nothing that a launch plan can hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .values import (
    TIGHT,
    Buffer,
    Number,
    Pointer,
    Real,
    Several,
    Tensor,
    TypeName,
    Unknown,
    number,
    operate,
    product,
)

_DTYPES = {
    "kFloat32": "float32",
    "kFloat": "float32",
    "float32": "float32",
    "float": "float32",
    "kFloat64": "float64",
    "kDouble": "float64",
    "double": "float64",
    "float64": "float64",
    "kFloat16": "float16",
    "kHalf": "float16",
    "float16": "float16",
    "kBFloat16": "bfloat16",
    "bfloat16": "bfloat16",
    "kInt32": "int32",
    "kInt": "int32",
    "int": "int32",
    "int32_t": "int32",
    "int32": "int32",
    "unsigned int": "uint32",
    "kInt64": "int64",
    "kLong": "int64",
    "int64_t": "int64",
    "int64": "int64",
    "long": "int64",
    "kUInt8": "uint8",
    "uint8": "uint8",
}
SAME = frozenset(
    (
        "contiguous",
        "cuda",
        "to",
        "detach",
        "float",
        "requires_grad_",
        "cpu",
        "expect_contiguous",
        "type_as",
        "data",
    )
)
"""Methods that give the same elements at the same places, where all tensors are contiguous
float32 on one device."""
_TRUE = frozenset(["is_cuda", "is_contiguous", "defined", "is_non_overlapping_and_dense"])
_MAKES = {
    "empty": False,
    "zeros": True,
    "empty_like": False,
    "zeros_like": True,
    "new_empty": False,
    "new_zeros": True,
}
"""Calls that make a tensor, and whether its elements are zero."""


def dtype_of(value: object) -> str:
    """The dtype that a value of host code names; empty where it names none."""
    return _DTYPES.get(value.name.rpartition("::")[2], "") if isinstance(value, TypeName) else ""


def names_dtype(word: str) -> bool:
    """Whether a name of torch's is one of a dtype."""
    return word in _DTYPES


def is_maker(name: str) -> bool:
    """Whether a call of that name makes a tensor."""
    return name in _MAKES


def make(
    name: str,
    given: Sequence[object],
    named: Mapping[str, object],
    of: Tensor | None = None,
) -> Tensor | Unknown:
    """What `torch.empty(…)` and its like give.

    Args:
        of: The tensor whose method it is.
    """
    rest = list(given)
    if name.endswith("_like"):
        model = rest.pop(0) if rest else None
        if not isinstance(model, Tensor):
            return model if isinstance(model, Unknown) else Unknown(f"{name} of no tensor")
        shape, dtype = model.shape, model.buffer.dtype
    else:
        found = _shape(rest)
        if found is None:
            return Unknown(f"the shape given to {name} cannot be told")
        shape, dtype = found, of.buffer.dtype if of else "float32"
    for value in (*rest, named.get("dtype")):
        dtype = dtype_of(value) or (_options(value) or dtype)
    return Tensor(Buffer(dtype, shape, is_zeroed=_MAKES[name]), shape)


def _options(value: object) -> str:
    return value.items[0].name if _is_options(value) else ""  # type: ignore[attr-defined]


def _is_options(value: object) -> bool:
    return (
        isinstance(value, Several)
        and len(value.items) == 1
        and isinstance(value.items[0], TypeName)
    )


def options(dtype: str) -> Several:
    """`x.options()`: of it a plan needs the dtype."""
    return Several((TypeName(dtype),))


def _shape(rest: list[object]) -> tuple[Number, ...] | None:
    """The shape at the head of the arguments, which is taken off them."""
    if rest and isinstance(rest[0], Several) and not _is_options(rest[0]):
        items = rest.pop(0).items  # type: ignore[attr-defined]
        return items if all(isinstance(each, Number) for each in items) else None
    shape: list[Number] = []
    while rest and isinstance(rest[0], Number):
        shape.append(rest.pop(0))  # type: ignore[arg-type]
    return tuple(shape) if shape else None


def method(of: Tensor, name: str, given: Sequence[object]) -> object:
    """A method of a tensor that only looks at it; None where it is another one."""
    if name in SAME:
        return of
    if name in _TRUE:
        return number(1)
    if name in ("size", "sizes", "shape"):
        return _size(of, given)
    if name in ("numel", "nelement"):
        return of.count
    if name in ("dim", "ndim", "ndimension"):
        return number(len(of.shape))
    if name in ("stride", "strides"):
        return _stride(of, given)
    if name in ("data_ptr", "mutable_data_ptr", "const_data_ptr"):
        return Pointer(of.buffer)
    if name in ("scalar_type", "dtype", "options"):
        return options(of.buffer.dtype) if name == "options" else TypeName(of.buffer.dtype)
    if name in ("element_size", "itemsize"):
        return number(4 if of.buffer.dtype.endswith("32") else 8)
    if name in ("view", "reshape"):
        return _view(of, given)
    if name in ("squeeze", "unsqueeze", "flatten"):
        return Tensor(of.buffer, _reshape(of, name, given))
    if name in ("device", "get_device", "is_floating_point", "type"):
        return Unknown("a device")
    return None


def _size(of: Tensor, given: Sequence[object]) -> object:
    if not given:
        return Several(of.shape)
    at = given[0].value if isinstance(given[0], Number) else None
    if at is None or not -len(of.shape) <= at < len(of.shape):
        return Unknown(f"it has {len(of.shape)} dimensions, and size({at}) is asked for")
    return of.shape[at]


def _stride(of: Tensor, given: Sequence[object]) -> object:
    strides = tuple(product(of.shape[at + 1 :]) for at in range(len(of.shape)))
    if not given:
        return Several(strides)
    at = given[0].value if isinstance(given[0], Number) else None
    return strides[at] if at is not None and -len(strides) <= at < len(strides) else Unknown("")


def _view(of: Tensor, given: Sequence[object]) -> object:
    shape = _shape(list(given))
    if shape is None:
        return Unknown("the shape of a view cannot be told")
    if any(each.value == -1 for each in shape):
        known = product([each for each in shape if each.value != -1])
        rest = _divide(of.shape, known)
        shape = tuple(rest if each.value == -1 else each for each in shape)
    return Tensor(of.buffer, shape)


def _divide(shape: Sequence[Number], by: Number) -> Number:
    """The elements of a shape over some of its sizes."""
    left = list(shape)
    for each in list(left):
        if each.text == by.text:
            left.remove(each)
            return product(left)
    return operate("//", product(shape), by)


def _reshape(of: Tensor, name: str, given: Sequence[object]) -> tuple[Number, ...]:
    at = given[0].value if given and isinstance(given[0], Number) else None
    if name == "flatten":
        start = at or 0
        return (*of.shape[:start], product(of.shape[start:]))
    if name == "squeeze":
        kept = [s for i, s in enumerate(of.shape) if s.text != "1" or (at is not None and i != at)]
        return tuple(kept)
    place = 0 if at is None else at if at >= 0 else len(of.shape) + 1 + at
    return (*of.shape[:place], number(1), *of.shape[place:])


def allocate(pointer_type: str, size: object) -> Buffer | Unknown:
    """What `cudaMalloc` gives to a pointer of this type, for so many bytes."""
    dtype = _DTYPES.get(pointer_type.replace("const", "").replace("*", "").strip(), "")
    if not dtype:
        return Unknown(f"memory of the type {pointer_type}")
    width = 8 if dtype.endswith("64") else 4 if dtype.endswith("32") else 2
    if not isinstance(size, Number):
        return Unknown("memory of a size that cannot be told")
    count = operate("//", size, number(width))
    tail = f" * {width}"
    if size.text.endswith(tail):
        count = replace(size, text=size.text.removesuffix(tail))
    elif size.text.startswith(f"{width} * "):
        text = f"({size.text.removeprefix(f'{width} * ')})"
        count = replace(size, text=text, rank=TIGHT)
    return Buffer(dtype, (count,))


def sqrt(value: object) -> object:
    """A square root of a constant."""
    found = value.value if isinstance(value, Number | Real) else None
    return Real(float(found) ** 0.5) if found is not None and found >= 0 else Unknown("a root")
