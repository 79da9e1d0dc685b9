# SPDX-License-Identifier: Apache-2.0
"""Expressions of C++ host code as symbols."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from . import library
from .tree import Source
from .values import (
    Extent,
    Number,
    Pointer,
    Ratio,
    Real,
    Several,
    TypeName,
    Unknown,
    Words,
    as_extent,
    call,
    choose,
    negate,
    number,
    operate,
)

if TYPE_CHECKING:
    from tree_sitter import Node

_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)[uUlL]*\Z")
_REAL_TYPES = frozenset(("float", "double", "scalar_t"))
_WIDTHS = {"float": 4, "int": 4, "double": 8, "int32_t": 4, "int64_t": 8, "float4": 16, "half": 2}
_SIGNS = {"/": "//", "&&": "and", "||": "or"}
_SIZES = {"warpSize": 32, "WARP_SIZE": 32, "true": 1, "false": 0}


def join(sign: str, left: object, right: object) -> object:
    """Two values joined by an operator of C++."""
    for side in (left, right):
        if isinstance(side, Unknown):
            return side
    if isinstance(left, TypeName) and isinstance(right, TypeName) and sign in ("==", "!="):
        same = (library.dtype_of(left) or left.name) == (library.dtype_of(right) or right.name)
        return number(int(same == (sign == "==")))
    if isinstance(left, Pointer) and isinstance(right, Number) and sign in ("+", "-"):
        return Pointer(left.buffer, operate(sign, left.offset, right))
    if isinstance(left, Number) and isinstance(right, Number):
        return _join_integers(sign, left, right)
    if isinstance(left, Ratio) and isinstance(right, Number) and sign == "/":
        return Ratio(left.above, operate("*", left.below, right))
    if isinstance(right, Ratio) and right.below.text == "1" and sign == "/":
        if isinstance(left, Number):
            return Ratio(left, right.above)
        if isinstance(left, Ratio):
            return Ratio(left.above, operate("*", left.below, right.above))
    one, other = _real(left), _real(right)
    if one is not None and other is not None:
        return _join_reals(sign, one, other)
    return Unknown(f"'{sign}' of what is no integer follows from sizes")


def _real(value: object) -> float | None:
    if isinstance(value, Real):
        return value.value
    if isinstance(value, Number) and value.is_literal:
        return float(value.text)
    if isinstance(value, Ratio) and value.above.is_literal and value.below.is_literal:
        below = int(value.below.text)
        return int(value.above.text) / below if below else None
    return None


def _join_reals(sign: str, one: float, other: float) -> object:
    try:
        if sign in ("+", "-", "*", "/"):
            found = {"+": one + other, "-": one - other, "*": one * other}
            return Real(one / other if sign == "/" else found[sign])
    except ZeroDivisionError:
        return Unknown("a division by zero")
    return Unknown(f"'{sign}' of fractions")


def _join_integers(sign: str, left: Number, right: Number) -> object:
    if sign in ("<<", ">>") and right.value is not None and 0 <= right.value < 31:
        return operate("*" if sign == "<<" else "//", left, number(1 << right.value))
    if sign == "&" and right.is_literal:
        return _mask(left, int(right.text))
    if sign == "^" and left.is_literal and right.is_literal:
        return number(int(left.text) ^ int(right.text))
    if sign in ("|", "&", "^", "<<", ">>", ","):
        return right if sign == "," else Unknown(f"'{sign}' of sizes")
    return operate(_SIGNS.get(sign, sign), left, right)


def _mask(left: Number, mask: int) -> object:
    """`a & 31` and `a & ~31`."""
    if mask >= 0 and mask & (mask + 1) == 0:
        return operate("%", left, number(mask + 1))
    if mask < 0 and -mask & (-mask - 1) == 0:
        return operate("*", operate("//", left, number(-mask)), number(-mask))
    return Unknown("'&' of sizes")


def round_up(value: object, *, down: bool = False) -> object:
    """`ceil` and `floor`."""
    if isinstance(value, Ratio):
        return (
            operate("//", value.above, value.below)
            if down
            else call("cdiv", value.above, value.below)
        )
    if isinstance(value, Real):
        return number(int(math.floor(value.value) if down else math.ceil(value.value)))
    return value


def pick(several: Several, at: object) -> object | None:
    """One of several by a number; None where it cannot be told which."""
    place = at.value if isinstance(at, Number) else None
    if place is None or not -len(several.items) <= place < len(several.items):
        return None
    found: object = several.items[place]
    return found


class Expressions:
    """Evaluates expressions of one source; who runs statements brings names and calls."""

    source: Source
    names: dict[str, object]
    constants: dict[str, int]
    """Named constants that were met, in the whole source."""

    def count_step(self, node: Node) -> None:
        """Told of every expression; whoever runs statements ends what has no end."""

    def value(self, node: Node | None) -> object:
        """What an expression is."""
        if node is None:
            return Unknown("nothing")
        self.count_step(node)
        read = getattr(self, f"_{node.type}", None)
        if read is not None:
            return read(node)
        return Unknown(f"'{self.source.say(node)[:40]}' cannot be told from the text")

    def _number_literal(self, node: Node) -> object:
        text = self.source.say(node).replace("'", "")
        if found := _INTEGER.match(text):
            return number(int(found[1], 0) if found[1][:2] in ("0x", "0X") else int(found[1]))
        try:
            return Real(float(text.rstrip("fFlL")))
        except ValueError:
            return Unknown(f"the number {text}")

    def _true(self, _node: Node) -> object:
        return number(1)

    def _false(self, _node: Node) -> object:
        return number(0)

    def _identifier(self, node: Node) -> object:
        return self.look_up(self.source.say(node))

    def _qualified_identifier(self, node: Node) -> object:
        inner = node.child_by_field_name("name")
        while inner is not None and inner.type == "qualified_identifier":
            inner = inner.child_by_field_name("name")
        if inner is not None and inner.type == "template_function":
            return self.value(inner)
        return self.look_up(self.source.say(node).rpartition("::")[2])

    def look_up(self, name: str) -> object:
        """What a name means here."""
        if name in self.names:
            return self.names[name]
        if name in self.source.constants:
            found = self.value(self.source.constants[name])
            return self.as_knob(name, found)
        parameters, body = self.source.macros.get(name, ((), ""))
        if parameters is None and body:
            return self.as_knob(name, self.parse_text(body))
        if name in _SIZES:
            return number(_SIZES[name])
        if library.names_dtype(name):
            return TypeName(name)
        return Unknown(f"'{name}' is not known in the file")

    def as_knob(self, name: str, value: object) -> object:
        """A named integer constant as a knob of the plan."""
        if not isinstance(value, Number) or not value.is_literal or int(value.text) < 2:
            return value
        if self.constants.setdefault(name, int(value.text)) != int(value.text):
            return value
        return Number(name, knobs=frozenset({(name, int(value.text))}))

    def parse_text(self, text: str) -> object:
        """An expression that stands in a macro."""
        inner = Source(f"auto kw_value = ({text});")
        found = inner.root.named_children[0] if inner.root.named_children else None
        if inner.root.has_error or found is None or found.type != "declaration":
            return Unknown(f"'{text[:40]}' is no expression")
        declarator = found.child_by_field_name("declarator")
        return self.value(declarator.child_by_field_name("value") if declarator else None)

    def _parenthesized_expression(self, node: Node) -> object:
        return self.value(node.named_children[0] if node.named_children else None)

    _condition_clause = _parenthesized_expression

    def _cast_expression(self, node: Node) -> object:
        return self.cast(
            node.child_by_field_name("type"), self.value(node.child_by_field_name("value"))
        )

    def cast(self, type_node: Node | None, value: object) -> object:
        """A value as another type."""
        written = self.source.say(type_node).strip() if type_node else ""
        if "*" in written or "&" in written:
            return value
        if written.split("::")[-1] in _REAL_TYPES:
            return Ratio(value, number(1)) if isinstance(value, Number) else value
        if isinstance(value, Ratio | Real):
            return round_up(value, down=True)
        return value

    def _binary_expression(self, node: Node) -> object:
        sign = self.source.say(node.child_by_field_name("operator"))  # type: ignore[arg-type]
        left, right = (self.value(node.child_by_field_name(side)) for side in ("left", "right"))
        if sign in ("&&", "||"):
            for one, other in ((left, right), (right, left)):
                if isinstance(one, Number) and one.is_literal:
                    decides = (sign == "||") == bool(int(one.text))
                    return number(int(sign == "||")) if decides else other
        return join(sign, left, right)

    def _unary_expression(self, node: Node) -> object:
        sign = self.source.say(node.child_by_field_name("operator"))  # type: ignore[arg-type]
        value = self.value(node.child_by_field_name("argument"))
        if isinstance(value, Real) and sign == "-":
            return Real(-value.value)
        if not isinstance(value, Number):
            return value
        if sign == "~" and value.is_literal:
            return number(~int(value.text))
        if sign == "-":
            return operate("-", number(0), value)
        return negate(value) if sign == "!" else value

    def _pointer_expression(self, node: Node) -> object:
        return self.value(node.child_by_field_name("argument"))

    def _conditional_expression(self, node: Node) -> object:
        condition = self.value(node.child_by_field_name("condition"))
        one, other = (
            self.value(node.child_by_field_name(name)) for name in ("consequence", "alternative")
        )
        if not isinstance(condition, Number):
            return condition
        if condition.is_literal:
            return one if int(condition.text) else other
        if isinstance(one, Number) and isinstance(other, Number):
            return choose(condition, one, other)
        return Unknown("it is one thing or another, as sizes are")

    def _initializer_list(self, node: Node) -> object:
        return Several(tuple(self.value(child) for child in node.named_children))

    _argument_list = _initializer_list

    def _string_literal(self, node: Node) -> object:
        return Words(self.source.say(node).strip('"'))

    def _comma_expression(self, node: Node) -> object:
        return [self.value(child) for child in node.named_children][-1]

    def _sizeof_expression(self, node: Node) -> object:
        written = node.child_by_field_name("type") or node.child_by_field_name("value")
        name = self.source.say(written).strip("() ") if written else ""
        known = self.names.get(name)
        name = known.name if isinstance(known, TypeName) else name
        return number(_WIDTHS[name]) if name in _WIDTHS else Unknown(f"sizeof({name})")

    def _field_expression(self, node: Node) -> object:
        owner = self.value(node.child_by_field_name("argument"))
        name = self.source.say(node.child_by_field_name("field"))  # type: ignore[arg-type]
        if name in ("x", "y", "z") and (extent := as_extent(owner)):
            return getattr(extent, name)
        return Unknown(f"'{self.source.say(node)[:40]}' cannot be told from the text")

    def _subscript_expression(self, node: Node) -> object:
        owner = self.value(node.child_by_field_name("argument"))
        indices = node.child_by_field_name("indices")
        at = self.value(indices.named_children[0]) if indices and indices.named_children else None
        if isinstance(owner, Several) and (found := pick(owner, at)) is not None:
            return found
        if isinstance(owner, Pointer) and isinstance(at, Number):
            return Pointer(owner.buffer, operate("+", owner.offset, at))
        return Unknown(f"'{self.source.say(node)[:40]}' cannot be told from the text")

    def _type_descriptor(self, node: Node) -> object:
        name = self.source.say(node).strip()
        if name in self.names or name in self.source.constants or name in self.source.macros:
            known = self.look_up(name)
            return TypeName(name) if isinstance(known, Unknown) else known
        return TypeName(name)

    _primitive_type = _type_descriptor
    _type_identifier = _type_descriptor

    def _compound_literal_expression(self, node: Node) -> object:
        type_node = node.child_by_field_name("type")
        listed = self.value(node.child_by_field_name("value"))
        if type_node is not None and self.source.say(type_node) == "dim3":
            return self.extent(listed)
        return listed

    def extent(self, listed: object) -> object:
        """A `dim3` made of a list of up to three numbers."""
        items = listed.items if isinstance(listed, Several) else (listed,)
        if len(items) == 1 and isinstance(items[0], Extent):
            return items[0]
        bad = next((each for each in items if not isinstance(each, Number)), None)
        if bad is not None or len(items) > 3:
            return bad if isinstance(bad, Unknown) else Unknown("a dim3 of what is no integer")
        padded = (*items, *(number(1),) * (3 - len(items)))
        return Extent(*padded)
