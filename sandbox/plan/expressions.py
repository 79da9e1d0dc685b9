# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of launch plans: `cdiv(M, 4) * 2 if avg_row < 32 else N % 8`.

Numbers, names, `+ - * // %`, comparisons, `and or not`, `a if c else b` and six functions, with
the precedence and the meaning that Python gives them. Integers stay below 2^63 in magnitude. There
are no strings, attributes, indices, loops or definitions: an expression ends, and reaches nothing.
`parse_expression` makes a tree once; it is evaluated for every workload.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from ..front_matter import FilePlace
from .faults import PlanRefusedError, explain_missing, quote

Number = int | float
Values = Mapping[str, Number]

MAX_INTEGER = 2**63 - 1


class FailedError(Exception):
    """What is wrong in an expression, and at which character of it."""

    def __init__(self, reason: str, at: int) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at


class Node(Protocol):
    """A part of an expression."""

    def evaluate(self, values: Values) -> Number:
        """Its value; FailedError where it has none."""

    def names(self) -> Iterator[tuple[str, int]]:
        """The names in it and where they stand."""


@dataclass(frozen=True)
class Literal:
    """A number as written."""

    value: Number

    def evaluate(self, values: Values) -> Number:  # noqa: ARG002
        """The number."""
        return self.value

    def names(self) -> Iterator[tuple[str, int]]:
        """None."""
        return iter(())


@dataclass(frozen=True)
class Variable:
    """An axis, a feature of the workload or a knob."""

    name: str
    at: int

    def evaluate(self, values: Values) -> Number:
        """What the name stands for."""
        if self.name not in values:
            raise FailedError(explain_missing("axis, feature or knob", self.name, values), self.at)
        return values[self.name]

    def names(self) -> Iterator[tuple[str, int]]:
        """Itself."""
        yield self.name, self.at


@dataclass(frozen=True)
class Unary:
    """`-x`, `+x` or `not x`."""

    sign: str
    operand: Node
    at: int

    def evaluate(self, values: Values) -> Number:
        """The operand, turned."""
        value = self.operand.evaluate(values)
        if self.sign == "not":
            return not value
        return _ensure_bounded(-value if self.sign == "-" else +value, self.at)

    def names(self) -> Iterator[tuple[str, int]]:
        """Those of the operand."""
        return self.operand.names()


@dataclass(frozen=True)
class ChainTerm:
    """An operator of a chain with its right-hand side."""

    sign: str
    operand: Node
    at: int


@dataclass(frozen=True)
class Chain:
    """`a + b - c`: operators of one precedence, from left to right."""

    first: Node
    rest: tuple[ChainTerm, ...]

    def evaluate(self, values: Values) -> Number:
        """One operation after the other, each held to the range of integers."""
        value = self.first.evaluate(values)
        for term in self.rest:
            right = term.operand.evaluate(values)
            if right == 0 and term.sign in ("//", "%"):
                raise FailedError(f"division by zero: what follows {term.sign} is 0", term.at)
            value = _ensure_bounded(_ARITHMETIC[term.sign](value, right), term.at)
        return value

    def names(self) -> Iterator[tuple[str, int]]:
        """From left to right."""
        yield from self.first.names()
        for term in self.rest:
            yield from term.operand.names()


@dataclass(frozen=True)
class Comparison:
    """`a < b <= c`, true if each of them is."""

    first: Node
    rest: tuple[ChainTerm, ...]

    def evaluate(self, values: Values) -> Number:
        """As Python: what follows the first false one is not evaluated."""
        left = self.first.evaluate(values)
        for term in self.rest:
            right = term.operand.evaluate(values)
            if not _COMPARISONS[term.sign](left, right):
                return False
            left = right
        return True

    def names(self) -> Iterator[tuple[str, int]]:
        """From left to right."""
        yield from self.first.names()
        for term in self.rest:
            yield from term.operand.names()


@dataclass(frozen=True)
class Logic:
    """`a and b and c`, or with `or`."""

    word: str
    operands: tuple[Node, ...]

    def evaluate(self, values: Values) -> Number:
        """As Python: the operand that decides."""
        value: Number = False
        for operand in self.operands:
            value = operand.evaluate(values)
            if bool(value) is (self.word == "or"):
                break
        return value

    def names(self) -> Iterator[tuple[str, int]]:
        """From left to right."""
        for operand in self.operands:
            yield from operand.names()


@dataclass(frozen=True)
class Choice:
    """`then if condition else otherwise`."""

    then: Node
    condition: Node
    otherwise: Node

    def evaluate(self, values: Values) -> Number:
        """Only the chosen side is evaluated."""
        chosen = self.then if self.condition.evaluate(values) else self.otherwise
        return chosen.evaluate(values)

    def names(self) -> Iterator[tuple[str, int]]:
        """From left to right."""
        for part in (self.then, self.condition, self.otherwise):
            yield from part.names()


@dataclass(frozen=True)
class FunctionCall:
    """One of FUNCTIONS with its arguments."""

    function: str
    arguments: tuple[Node, ...]
    at: int

    def evaluate(self, values: Values) -> Number:
        """The function of the arguments' values."""
        taken = [argument.evaluate(values) for argument in self.arguments]
        function = FUNCTIONS[self.function]
        if function.is_integral and any(isinstance(value, float) for value in taken):
            raise FailedError(
                f"{self.function} takes integers, and one of {_list_values(taken)} is not; "
                "round it with ceil() or floor() first",
                self.at,
            )
        try:
            return _ensure_bounded(function.compute(*taken), self.at)
        except ZeroDivisionError:
            raise FailedError(
                f"division by zero: the second value of {self.function} is 0", self.at
            ) from None

    def names(self) -> Iterator[tuple[str, int]]:
        """From left to right."""
        for argument in self.arguments:
            yield from argument.names()


def _list_values(values: list[Number]) -> str:
    return ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in values)


def _ensure_bounded(value: Number, at: int) -> Number:
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise FailedError(f"the value {value:.4g} is beyond the 63 bits of an integer", at)
    if isinstance(value, float) and not math.isfinite(value):
        raise FailedError("the value is not a finite number", at)
    return value


_ARITHMETIC: dict[str, Callable[[Number, Number], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_COMPARISONS: dict[str, Callable[[Number, Number], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


@dataclass(frozen=True)
class Function:
    """What an expression may call."""

    compute: Callable[..., Number]
    fewest: int
    most: int
    is_integral: bool
    meaning: str


def _cdiv(a: int, b: int) -> int:
    return -(-a // b)


def _next_pow2(a: int) -> int:
    return 1 << (a - 1).bit_length() if a > 1 else 1


FUNCTIONS = {
    "cdiv": Function(_cdiv, 2, 2, True, "a divided by b, rounded up"),
    "min": Function(min, 2, 8, False, "the least of its values"),
    "max": Function(max, 2, 8, False, "the greatest of its values"),
    "next_pow2": Function(_next_pow2, 1, 1, True, "the least power of two that is not below a"),
    "ceil": Function(math.ceil, 1, 1, False, "the least integer that is not below a"),
    "floor": Function(math.floor, 1, 1, False, "the greatest integer that is not above a"),
}
WORDS = frozenset({"and", "or", "not", "if", "else"})
"""Names that mean something already, with those of FUNCTIONS."""


@dataclass(frozen=True)
class Expression:
    """An expression of a plan with its place in the file."""

    text: str
    node: Node
    place: Callable[[int], FilePlace]
    """Where a character of the text stands in the file."""

    @property
    def names(self) -> list[tuple[str, int]]:
        """Every name in it, with the character at which it stands."""
        return list(self.node.names())

    def evaluate(self, values: Values) -> Number:
        """Its value; RefusedError with the place and with what the names stand for."""
        try:
            return self.node.evaluate(values)
        except FailedError as error:
            reason = f"{error.reason}{self.bindings(values)}"
            raise PlanRefusedError(reason, self.place(error.at)) from None

    def integer(self, values: Values) -> int:
        """Its value as an integer; RefusedError where it is none."""
        value = self.evaluate(values)
        if isinstance(value, float):
            raise PlanRefusedError(
                f"{quote(self.text)} is {value!r}{self.bindings(values)}, which is not an integer; "
                "round it with ceil() or floor()",
                self.place(0),
            )
        return int(value)

    def bindings(self, values: Values) -> str:
        """` (with M = 5, avg_row = 2.5)`, for reasons; empty without names."""
        used = dict.fromkeys(name for name, _ in self.names if name in values)
        said = ", ".join(f"{name} = {_list_values([values[name]])}" for name in used)
        return f" (with {said})" if said else ""
