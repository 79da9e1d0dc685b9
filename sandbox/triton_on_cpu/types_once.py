# SPDX-License-Identifier: Apache-2.0
"""Makes what Triton's interpreter says of a tensor's type once for each type, not for each value.

Its front end was written for a compiler, which meets each line once; interpreted, a line runs for
each program, and three quarters of the time went into shapes that were known. Types are the same
objects now wherever they are equal, and a tensor takes its shape from its type. What comes out is
the same: what is not a plain shape goes the way that Triton has for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

MOST_TYPES = 4096
"""Types that are kept; each launch makes pointer types of its own."""
LENGTHS = "_kernelwright_lengths"
TOLD = "_kernelwright_told"
OF_TENSORS = {"handle", "shape", "numel", "type", "dtype"}
"""What a tensor has of its own; a release in which it has more keeps Triton's way."""


def install(interpreter: Any) -> None:
    """Patches Triton's language for good, in a process that only interprets."""
    core = interpreter.tl.core
    _types(core)
    _tensors(core)
    _equality(core)
    _unwrap_once(core)
    _calls(interpreter)


def _types(core: Any) -> None:
    """Blocks of equal element type and shape are one object."""
    block, plain = core.block_type, core.block_type.__init__
    known: dict[tuple[int, tuple[int, ...]], Any] = {}
    shapes: dict[tuple[int, ...], Any] = {}

    def new(cls: Any, element_ty: Any = None, shape: Any = None) -> Any:
        values = _lengths(core, shape) if cls is block else None
        if values is None:
            return object.__new__(cls)
        key = (id(element_ty), values)
        if (found := known.get(key)) is not None:
            return found
        made = object.__new__(cls)
        # Before it is known: it raises what is wrong with the shape. It keeps its element type, so
        # that no other object can get that one's identity.
        plain(made, element_ty, shape)
        made.shape = shapes.setdefault(values, made.shape)
        setattr(made.shape, LENGTHS, values)
        if len(known) >= MOST_TYPES:
            known.clear()
        known[key] = made
        return made

    def init(self: Any, element_ty: Any, shape: Any) -> None:
        if "numel" not in self.__dict__:
            plain(self, element_ty, shape)

    block.__new__, block.__init__ = new, init


def _lengths(core: Any, shape: Any) -> tuple[int, ...] | None:
    """A shape as numbers, None where it is something else."""
    if type(shape) is core.tuple:
        known: tuple[int, ...] | None = shape.__dict__.get(LENGTHS)
        if known is not None:
            return known
        shape = shape.values
    if not isinstance(shape, list | tuple):
        return None
    found = [one.value if type(one) is core.constexpr else one for one in shape]
    return tuple(found) if all(type(one) is int for one in found) else None


def _tensors(core: Any) -> None:
    """A tensor takes all but its value from its type."""
    plain = core.tensor.__init__

    def init(self: Any, handle: Any, type: Any) -> None:
        known = type.__dict__.get(TOLD)
        if known is None:
            plain(self, handle, type)
            if vars(self).keys() == OF_TENSORS:
                setattr(type, TOLD, {k: v for k, v in vars(self).items() if k != "handle"})
            return
        self.__dict__.update(known)
        self.handle = handle

    core.tensor.__init__ = init


def _equality(core: Any) -> None:
    """Shapes are compared as numbers wherever both sides are numbers; types are what they are."""
    plain, alike = core.tuple.__eq__, core.dtype.__eq__

    def compare(self: Any, other: Any) -> Any:
        if _is_plain(self.values):
            theirs = other.values if type(other) is core.tuple else other
            if isinstance(theirs, list | tuple) and _is_plain(theirs):
                return core.constexpr(self.values == list(theirs))
        return plain(self, other)

    def same_type(self: Any, other: Any) -> Any:
        return self is other or alike(self, other)

    core.tuple.__eq__, core.dtype.__eq__ = compare, same_type


def _is_plain(values: Sequence[Any]) -> bool:
    return all(type(one) is int for one in values)


def _unwrap_once(core: Any) -> None:
    """What is no constant and holds none is what it is."""
    plain = core._unwrap_if_constexpr
    constant, whole = core.constexpr, frozenset({core.tensor, int, float, bool, str, type(None)})

    def unwrap(o: Any) -> Any:
        kind = type(o)
        if kind in whole:
            return o
        return o.value if kind is constant else plain(o)

    core._unwrap_if_constexpr = unwrap


def _calls(interpreter: Any) -> None:
    """An operation is given the interpreter's meaning without a copy of its arguments, and what has
    one shape is not broadcast."""
    semantic = interpreter.interpreter_semantic
    kind = type(semantic)
    broadcast = kind.broadcast_impl_value

    def broadcast_impl_value(self: Any, lhs: Any, rhs: Any) -> Any:
        one, other = lhs.type, rhs.type
        if one is other or (one.is_block() and other.is_block() and one.shape is other.shape):
            return lhs, rhs
        return broadcast(self, lhs, rhs)

    kind.broadcast_impl_value = broadcast_impl_value

    def patch_attr(obj: Any, name: str, member: Any, builder: Any, *scope: Any) -> None:
        def call_member(*args: Any, **kwargs: Any) -> Any:
            kwargs["_semantic"] = semantic
            return member(*args, **kwargs)

        scope[0].set_attr(obj, name, call_member) if scope else setattr(obj, name, call_member)

    interpreter._patch_attr = patch_attr
