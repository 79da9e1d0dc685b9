# SPDX-License-Identifier: Apache-2.0
"""Reads single values of a plan's front matter; every refusal has the value's place."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from typing import Any

from ...kernelbench.dtypes import (
    BOOL,
    DTYPES,
    FLOAT4_E2M1FN,
    FLOAT8_E4M3FN,
    FLOAT8_E5M2,
    FLOAT8_E8M0FNU,
)
from ..front_matter import FrontMatter, Path
from .declared import BufferPart, DeclaredArgument, Float, Value
from .dialects import Dialect
from .expressions import MAX_INTEGER, Expression, Literal
from .faults import SHOWN, PlanRefusedError, explain_missing, quote
from .grammar import parse_expression
from .model import Constant, Dtype

_FLOATS = {"f32": 32, "f64": 64}
_KERNEL = re.compile(r"(?:::)?[A-Za-z_][A-Za-z0-9_]*(?:::[A-Za-z_][A-Za-z0-9_]*)*", re.ASCII)
_TEMPLATE = re.compile(r"\s*<[A-Za-z0-9_:<>, *&().'+-]*>\Z", re.ASCII)
_KERNEL_CHARACTERS = 200
_DTYPE = re.compile(r"(?:tl\.)?(?P<name>[a-z0-9_]+)\Z", re.ASCII)
_FLOAT8 = {FLOAT8_E4M3FN.name: "float8e4nv", FLOAT8_E5M2.name: "float8e5"}
_NOT_IN_TRITON = {BOOL.name, FLOAT8_E8M0FNU.name, FLOAT4_E2M1FN.name, *_FLOAT8}
_TRITON_DTYPES = {*(DTYPES.keys() - _NOT_IN_TRITON), *_FLOAT8.values(), "int1"}
_OTHER_NAMES = {
    **{each.triton: each.name for each in DTYPES.values() if each.triton},
    **_FLOAT8,
    "fp8e4nv": "float8e4nv",
    "fp8e5": "float8e5",
}
"""Triton's short names, and torch's."""


class Fields:
    """The values of one front matter."""

    def __init__(self, matter: FrontMatter, dialect: Dialect) -> None:
        self.matter = matter
        self.dialect = dialect

    def refusal_error(self, reason: str, path: Path, *, of_key: bool = False) -> PlanRefusedError:
        """The error for the value at `path`, or for its key."""
        return PlanRefusedError(reason, self.matter.place(path, of_key=of_key))

    def keys(self, table: dict[str, Any], path: Path, known: Iterable[str]) -> None:
        """Refuses keys that are not known."""
        names = list(known)
        for key in table:
            if key not in names:
                raise self.refusal_error(
                    explain_missing("key", key, names), (*path, key), of_key=True
                )

    def table(self, parent: dict[str, Any], path: Path) -> dict[str, Any]:
        """The table at `path` in its parent; empty where there is none."""
        value = parent.get(str(path[-1]), {})
        if not isinstance(value, dict):
            raise self.refusal_error(f"[{path[-1]}] must be a table, not {quote(value)}", path)
        return value

    def string(self, value: object, path: Path) -> str:
        """A name in quotes."""
        if not isinstance(value, str) or not value:
            raise self.refusal_error(
                f"{path[-1]} must be a name in quotes, not {quote(value)}", path
            )
        return value

    def kernel(self, value: object, path: Path) -> str:
        """The name of a kernel or, in CUDA, of an instance of a template."""
        name = self.string(value, path).strip()
        found = _KERNEL.match(name)
        rest = name[found.end() :] if found else name
        is_sound = found and len(name) <= _KERNEL_CHARACTERS
        is_function = self.dialect.is_specialised
        if is_function and found and "::" in found[0]:
            is_sound = False
        if rest and (is_function or not _balanced(rest)):
            is_sound = False
        if not is_sound:
            instance = "" if is_function else " or an instance such as 'k<float, 4>'"
            raise self.refusal_error(f"{quote(name)} is not the name of a kernel{instance}", path)
        return name

    def optional_expression(self, table: dict[str, Any], path: Path, key: str) -> Expression | None:
        """The expression of a key that need not be there."""
        return self.expression(table[key], (*path, key)) if key in table else None

    def expression(self, value: object, path: Path) -> Expression:
        """An integer, or an expression in quotes."""
        if isinstance(value, str):
            return parse_expression(value, lambda at: self.matter.place_inside(path, at))
        if type(value) is not int or abs(value) > MAX_INTEGER:
            raise self.refusal_error(
                f"{quote(value)} is not an integer below 2^63 or an expression in quotes",
                path,
            )
        return Expression(str(value), Literal(value), lambda _: self.matter.place(path))

    def extents(self, value: object, path: Path, most: int) -> tuple[Expression, ...]:
        """A list of integers and expressions."""
        if not isinstance(value, list) or not 1 <= len(value) <= most:
            raise self.refusal_error(
                f"{path[-1]} must be a list of 1 to {most} integers or expressions, such as "
                f'["cdiv(M, 4)"], not {quote(value)}',
                path,
            )
        return tuple(self.expression(each, (*path, at)) for at, each in enumerate(value))

    def arguments(self, value: object, path: Path) -> tuple[DeclaredArgument, ...]:
        """What a launch gives its kernel."""
        if not isinstance(value, list):
            raise self.refusal_error(
                f'args must be a list such as ["M", "x"], not {quote(value)}', path
            )
        return tuple(self._argument(each, (*path, at)) for at, each in enumerate(value))

    def _argument(self, value: object, path: Path) -> DeclaredArgument:
        if not isinstance(value, dict):
            if type(value) is float:
                raise self.refusal_error(
                    f"say how wide the number {value!r} is: {{f32 = {value!r}}} for float, "
                    f"{{f64 = {value!r}}} for double",
                    path,
                )
            return Value(self.expression(value, path))
        if set(value) == {"buffer", "offset"}:
            name = self.string(value["buffer"], (*path, "buffer"))
            return BufferPart(name, self.expression(value["offset"], (*path, "offset")))
        if len(value) == 1 and (key := next(iter(value))) in _FLOATS:
            number = value[key]
            if type(number) not in (int, float):
                raise self.refusal_error(f"{key} takes a number, not {quote(number)}", (*path, key))
            return Float(self._float(number, _FLOATS[key], (*path, key)), _FLOATS[key])
        raise self.refusal_error(
            "an argument in braces is {f32 = 1e-5}, {f64 = 1e-5} or "
            '{buffer = "partial", offset = "M * N"}',
            path,
        )

    def _float(self, number: float, bits: int, path: Path) -> float:
        try:
            value = float(number)
            struct.pack("<f" if bits == 32 else "<d", value)
        except OverflowError:
            raise self.refusal_error(f"{quote(number)} does not fit {bits} bits", path) from None
        return value

    def constants(self, table: dict[str, Any], path: Path) -> dict[str, Expression | Constant]:
        """The tl.constexpr values of a Triton launch."""
        given = self.table(table, path)
        return {name: self._constant(value, (*path, name)) for name, value in given.items()}

    def _constant(self, value: object, path: Path) -> Expression | Constant:
        if isinstance(value, bool | float):
            return value
        if isinstance(value, str):
            if len(value) > 1 and value[0] == value[-1] == "'":
                if not value.isprintable() or len(value) > SHOWN:
                    raise self.refusal_error("a string constant is printable and short", path)
                return value[1:-1]
            if (found := _DTYPE.match(value)) and (name := _dtype(found["name"])):
                return Dtype(name)
        return self.expression(value, path)


def _dtype(name: str) -> str:
    name = _OTHER_NAMES.get(name, name)
    return name if name in _TRITON_DTYPES else ""


def _balanced(template: str) -> bool:
    """Whether it is one list of template arguments and nothing after it."""
    if not _TEMPLATE.match(template):
        return False
    depth = 0
    for at, character in enumerate(template):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if depth <= 0 and character == ">":
            return depth == 0 and at == len(template) - 1
    return False
