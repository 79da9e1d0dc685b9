# SPDX-License-Identifier: Apache-2.0
"""What host code computes with, as far as a launch plan can say it: symbols in place of sizes.

A size is an expression of the plan's language over axes and knobs (docs/launch-plans.md), a tensor
is one of the problem's or one that the host code makes. What is not known says why.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..front_matter import FilePlace
from ..plan.grammar import parse_expression

TIGHT = 9
"""The rank of what needs no brackets; see `_RANKS`."""
_RANKS = {
    "if": 0,
    "or": 1,
    "and": 2,
    "not": 3,
    "==": 4,
    "!=": 4,
    "<": 4,
    "<=": 4,
    ">": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "//": 6,
    "%": 6,
}
_COMPUTE: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    "<=": lambda a, b: int(a <= b),
    ">": lambda a, b: int(a > b),
    ">=": lambda a, b: int(a >= b),
    "and": lambda a, b: int(bool(a) and bool(b)),
    "or": lambda a, b: int(bool(a) or bool(b)),
    "min": min,
    "max": max,
    "cdiv": lambda a, b: -(-a // b),
}


_TAIL = re.compile(r"([^()+-]*) ([+-]) (\d+)")
"""A sum that ends in a number."""


class HostCodeError(Exception):
    """Host code that no plan can be written from, with the line of the file."""

    def __init__(self, reason: str, line: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


@dataclass(frozen=True)
class Unknown:
    """A value that a plan cannot say, and why."""

    why: str


@dataclass(frozen=True)
class Number:
    """An integer: an expression in the plan's language."""

    text: str
    rank: int = TIGHT
    knobs: frozenset[tuple[str, int]] = frozenset()
    """The named constants in it and what they are."""

    @property
    def value(self) -> int | None:
        """What it is, where that follows from the text and its constants alone."""
        if self.is_literal:
            return int(self.text)
        if not self.knobs:
            return None
        known = dict(self.knobs)
        formula = parse_expression(self.text, lambda _: FilePlace())
        if any(name not in known for name, _ in formula.names):
            return None
        return formula.integer(known)

    @property
    def is_literal(self) -> bool:
        """Whether it is written as a number."""
        return self.text.removeprefix("-").isdigit()


def number(value: int) -> Number:
    """A constant."""
    return Number(str(value), TIGHT if value >= 0 else _RANKS["-"])


def operate(sign: str, left: Number, right: Number) -> Number:
    """The two joined by an operator of the plan's language; constants are computed."""
    if left.is_literal and right.is_literal and not (sign in ("//", "%") and right.value == 0):
        return number(_COMPUTE[sign](int(left.text), int(right.text)))
    if sign in ("*", "//") and right.text == "1":
        return left
    if (sign == "*" and left.text == "1") or (sign == "+" and left.text == "0"):
        return right
    if sign in ("+", "-") and right.text == "0":
        return left
    if sign in ("+", "-") and right.is_literal and (split := _TAIL.fullmatch(left.text)):
        step = int(split[2] + split[3]) + int(sign + right.text.removeprefix("-")) * (
            -1 if right.text.startswith("-") else 1
        )
        base = Number(split[1], left.rank, left.knobs)
        base = replace(base, rank=TIGHT) if split[1].isidentifier() else base
        if step == 0:
            return base
        return Number(f"{split[1]} {'+' if step > 0 else '-'} {abs(step)}", left.rank, left.knobs)
    rank = _RANKS[sign]
    # Comparisons come in chains, so that both sides of one are bracketed.
    near = rank + 1 if rank == _RANKS["=="] else rank
    text = f"{_inside(left, near)} {sign} {_inside(right, rank + 1)}"
    return Number(text, rank, left.knobs | right.knobs)


def call(function: str, left: Number, right: Number) -> Number:
    """`min`, `max` or `cdiv` of two."""
    if left.is_literal and right.is_literal and not (function == "cdiv" and right.value == 0):
        return number(_COMPUTE[function](int(left.text), int(right.text)))
    return Number(f"{function}({left.text}, {right.text})", TIGHT, left.knobs | right.knobs)


def negate(value: Number) -> Number:
    """What is true where it is not."""
    if value.is_literal:
        return number(int(not int(value.text)))
    return Number(f"not {_inside(value, _RANKS['not'])}", _RANKS["not"], value.knobs)


def choose(condition: Number, one: Number, other: Number) -> Number:
    """One where the condition holds, else the other."""
    if one.text == other.text:
        return one
    if condition.is_literal:
        return one if int(condition.text) else other
    rank = _RANKS["if"]
    sides = f"{_inside(one, rank + 1)} if {_inside(condition, rank + 1)}"
    knobs = condition.knobs | one.knobs | other.knobs
    return Number(f"{sides} else {_inside(other, rank)}", rank, knobs)


def _inside(value: Number, least: int) -> str:
    return value.text if value.rank >= least else f"({value.text})"


def product(values: Sequence[Number]) -> Number:
    """All of them multiplied; 1 of none."""
    result = number(1)
    for each in values:
        result = operate("*", result, each)
    return result


@dataclass(frozen=True)
class Real:
    """A floating-point constant."""

    value: float


@dataclass(frozen=True)
class Ratio:
    """A quotient of integers with its fraction, which only rounding makes an integer again."""

    above: Number
    below: Number


@dataclass(frozen=True)
class TypeName:
    """A type: the name of a dtype of the problem's, or as it is written."""

    name: str


@dataclass(frozen=True)
class Words:
    """A string."""

    text: str


@dataclass(frozen=True)
class Several:
    """A list, a tuple or a shape."""

    items: tuple[Any, ...]


@dataclass(eq=False)
class Buffer:
    """Memory that kernels are given: one of the problem's tensors, or one that the host makes."""

    dtype: str
    shape: tuple[Number, ...]
    name: str = ""
    """Of the problem's tensor; empty until it is known what it is for."""
    is_zeroed: bool = False
    hint: str = ""
    """What the host code calls it."""
    number: int = field(default_factory=itertools.count().__next__)


@dataclass(frozen=True)
class Tensor:
    """A tensor as host code sees it."""

    buffer: Buffer
    shape: tuple[Number, ...]

    @property
    def count(self) -> Number:
        """Its elements."""
        return product(self.shape)


@dataclass(frozen=True)
class Pointer:
    """An address in a buffer."""

    buffer: Buffer
    offset: Number = field(default_factory=lambda: number(0))
    """In elements."""


@dataclass(frozen=True)
class Extent:
    """A `dim3`."""

    x: Number
    y: Number
    z: Number

    @property
    def parts(self) -> tuple[Number, ...]:
        """Its extents, without those at the end that are 1."""
        if self.z.text != "1":
            return (self.x, self.y, self.z)
        return (self.x, self.y) if self.y.text != "1" else (self.x,)


def as_extent(value: object) -> Extent | None:
    """A number or a `dim3` as the latter."""
    if isinstance(value, Number):
        return Extent(value, number(1), number(1))
    return value if isinstance(value, Extent) else None


@dataclass(frozen=True)
class Launched:
    """One launch, or a buffer that is set to zero."""

    line: int
    when: tuple[Number, ...]
    kernel: str = ""
    grid: Extent | None = None
    block: Extent | None = None
    shared: Number = field(default_factory=lambda: number(0))
    arguments: tuple[object, ...] = ()
    zero: Buffer | None = None


def merge(condition: Number, one: object, other: object) -> object:
    """What a variable is behind an `if` that gave it one value or the other."""
    if one == other or one is other:
        return one
    if isinstance(one, Number) and isinstance(other, Number):
        return choose(condition, one, other)
    first, second = as_extent(one), as_extent(other)
    if first and second:
        pairs = zip((first.x, first.y, first.z), (second.x, second.y, second.z), strict=True)
        return Extent(*(choose(condition, a, b) for a, b in pairs))
    return Unknown("it is one thing or another, as sizes are")
