# SPDX-License-Identifier: Apache-2.0
"""From the text of an expression to its tree."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ..front_matter import FilePlace
from .expressions import (
    FUNCTIONS,
    MAX_INTEGER,
    WORDS,
    Chain,
    ChainTerm,
    Choice,
    Comparison,
    Expression,
    FailedError,
    FunctionCall,
    Literal,
    Logic,
    Node,
    Unary,
    Variable,
)
from .faults import PlanRefusedError, explain_missing, quote

MAX_TOKENS = 200
MAX_NESTING = 24
"""Brackets, signs and choices inside each other."""

_TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<sign>\*\*|//|<<|>>|<=|>=|==|!=|&&|\|\||[-+*%<>(),/!=?:&|^~])",
    re.ASCII,
)
_SPACE = re.compile(r"[ \t\r\n]*")
_REMEDIES = {
    "**": "there are no powers; multiply",
    "/": "use // (rounded down) or cdiv(a, b) (rounded up)",
    "=": "use == to compare",
    "&&": "use `and`",
    "||": "use `or`",
    "!": "use `not`",
    "?": "use `a if condition else b`",
    ":": "use `a if condition else b`",
    "<<": "multiply by a power of two",
    ">>": "use // with a power of two",
    "&": "use % for low bits",
    "|": "use +",
    "^": "there are no bitwise operators",
    "~": "there are no bitwise operators",
}
_COMPARING = ("<", "<=", ">", ">=", "==", "!=")


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse_expression(text: str, place: Callable[[int], FilePlace]) -> Expression:
    """The tree of `text`, whose characters stand at `place`.

    Raises:
        RefusedError: it is not an expression.
    """
    try:
        return Expression(text, _Parser(_tokens(text)).parse_whole(), place)
    except FailedError as error:
        raise PlanRefusedError(error.reason, place(error.at)) from None


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = _skip(text, 0)
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise FailedError(f"the character {quote(text[at])} has no meaning here", at)
        found.append(_Token(token.lastgroup or "", token[0], at))
        if len(found) > MAX_TOKENS:
            raise FailedError(f"the expression has more than {MAX_TOKENS} words and signs", at)
        at = _skip(text, token.end())
    found.append(_Token("end", "", len(text)))
    return found


def _skip(text: str, at: int) -> int:
    space = _SPACE.match(text, at)
    return space.end() if space else at


class _Parser:
    """Recursive descent; each method reads what its name says and everything that binds tighter."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens = tokens
        self.next = 0
        self.nesting = 0

    def parse_whole(self) -> Node:
        node = self._choice()
        if self._here.kind != "end":
            raise self._unexpected_error("an operator")
        return node

    @property
    def _here(self) -> _Token:
        return self.tokens[self.next]

    def _accept(self, *texts: str) -> _Token | None:
        token = self._here
        if token.kind in ("sign", "name") and token.text in texts:
            self.next += 1
            return token
        return None

    def _expect(self, text: str) -> None:
        if self._accept(text) is None:
            raise self._unexpected_error(f"'{text}'")

    def _unexpected_error(self, wanted: str) -> FailedError:
        token = self._here
        if token.kind == "end":
            reason = f"the expression ends where {wanted} should follow"
        else:
            reason = f"{quote(token.text)} stands where {wanted} should"
        if token.text in _REMEDIES and token.kind == "sign":
            reason += f"; {_REMEDIES[token.text]}"
        return FailedError(reason, token.at)

    def _enter_nesting(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise FailedError(f"the expression is nested deeper than {MAX_NESTING}", self._here.at)

    def _choice(self) -> Node:
        self._enter_nesting()
        node = self._disjunction()
        if self._accept("if"):
            condition = self._disjunction()
            self._expect("else")
            node = Choice(node, condition, self._choice())
        self.nesting -= 1
        return node

    def _disjunction(self) -> Node:
        return self._logic("or", lambda: self._logic("and", self._negation))

    def _logic(self, word: str, operand: Callable[[], Node]) -> Node:
        operands = [operand()]
        while self._accept(word):
            operands.append(operand())
        return Logic(word, tuple(operands)) if len(operands) > 1 else operands[0]

    def _negation(self) -> Node:
        if word := self._accept("not"):
            return self._apply_sign(word, self._negation)
        return self._comparison()

    def _apply_sign(self, sign: _Token, operand: Callable[[], Node]) -> Node:
        self._enter_nesting()
        node = Unary(sign.text, operand(), sign.at)
        self.nesting -= 1
        return node

    def _comparison(self) -> Node:
        first, rest = self._terms(self._sum, _COMPARING)
        return Comparison(first, rest) if rest else first

    def _sum(self) -> Node:
        return self._chain(lambda: self._chain(self._signed_operand, ("*", "//", "%")), ("+", "-"))

    def _chain(self, operand: Callable[[], Node], signs: tuple[str, ...]) -> Node:
        first, rest = self._terms(operand, signs)
        return Chain(first, rest) if rest else first

    def _terms(
        self, operand: Callable[[], Node], signs: tuple[str, ...]
    ) -> tuple[Node, tuple[ChainTerm, ...]]:
        first, rest = operand(), []
        while sign := self._accept(*signs):
            rest.append(ChainTerm(sign.text, operand(), sign.at))
        return first, tuple(rest)

    def _signed_operand(self) -> Node:
        if sign := self._accept("-", "+"):
            return self._apply_sign(sign, self._signed_operand)
        return self._operand()

    def _operand(self) -> Node:
        token = self._here
        if token.kind == "number":
            self.next += 1
            return Literal(_number(token))
        if token.kind == "name" and token.text not in WORDS:
            self.next += 1
            return self._call(token) if self._accept("(") else _name(token)
        if self._accept("("):
            node = self._choice()
            self._expect(")")
            return node
        raise self._unexpected_error("a number, a name or '('")

    def _call(self, name: _Token) -> Node:
        if name.text not in FUNCTIONS:
            raise FailedError(explain_missing("function", name.text, FUNCTIONS), name.at)
        arguments = [self._choice()]
        while self._accept(","):
            arguments.append(self._choice())
        self._expect(")")
        function = FUNCTIONS[name.text]
        if not function.fewest <= len(arguments) <= function.most:
            wanted = str(function.fewest)
            if function.most > function.fewest:
                wanted += f" to {function.most}"
            raise FailedError(
                f"{name.text} takes {wanted} value{'s' * (wanted != '1')}, not {len(arguments)}",
                name.at,
            )
        return FunctionCall(name.text, tuple(arguments), name.at)


def _name(token: _Token) -> Variable:
    if token.text in FUNCTIONS:
        raise FailedError(f"'{token.text}' is a function; call it: {token.text}(…)", token.at)
    return Variable(token.text, token.at)


def _number(token: _Token) -> int | float:
    text = token.text
    if not text.isdigit():
        if float(text) == float("inf"):
            raise FailedError(f"the number {quote(text)} is too large", token.at)
        return float(text)
    if len(text) > 1 and text[0] == "0":
        raise FailedError(f"the number {quote(text)} starts with a zero", token.at)
    if len(text) > 19 or int(text) > MAX_INTEGER:
        raise FailedError(f"the number {quote(text)} is beyond the 63 bits of an integer", token.at)
    return int(text)
