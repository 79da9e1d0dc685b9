"""Reads C-like and Python sources into tokens, so that what is changed is code and nothing else.

Comments, strings and, of C, the lines of the preprocessor are kept apart. It knows no grammar:
brackets are matched, and a statement is what stands between semicolons.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

_NUMBER = r"(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[uUlLfF]*"
_C = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<directive>^[ \t]*\#(?:\\\n|[^\n])*)"
    r"|(?P<string>\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    rf"|(?P<number>{_NUMBER})|(?P<name>[A-Za-z_]\w*)|(?P<space>\s+)"
    r"|(?P<op><<=|>>=|->|\+\+|--|&&|\|\||<=|>=|==|!=|[-+*/%&|^]=|<<|>>|::|.)",
    re.M | re.S,
)
_PYTHON = re.compile(
    r"(?P<comment>\#[^\n]*)"
    r"|(?P<string>\"\"\".*?\"\"\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    rf"|(?P<number>{_NUMBER})|(?P<name>[A-Za-z_]\w*)|(?P<space>\s+)"
    r"|(?P<op>//=|\*\*|//|->|<=|>=|==|!=|[-+*/%&|^]=|<<|>>|.)",
    re.M | re.S,
)
_PAIRS = {")": "(", "]": "[", "}": "{"}
ASSIGNMENTS = ("=", "+=", "-=", "*=", "/=")
_WORDS = frozenset(
    re.findall(
        r"\w+",
        "return break continue using typedef template case if for else while do switch goto new "
        "namespace class struct public private throw delete static const constexpr extern inline",
    )
)
_BEFORE_A_SIGN = ("const", "return", "operator", "in", "and", "or")
"""Names that a sign stands behind, and no operator between two operands."""


@dataclass(frozen=True)
class Token:
    """A name, a number, an operator or a directive, and where it stands."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


@dataclass(frozen=True)
class Edit:
    """What is written in place of a stretch of a source."""

    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Loop:
    """A `for` of C: where its three clauses and its body are, as positions in the source."""

    variable: str
    """Empty where it has none that can be told."""
    first: str
    """What the variable begins with; empty where the clause is."""
    init_end: int
    test: tuple[int, int]
    bound: tuple[int, int]
    """What is on the right of the comparison in the test; empty where there is none."""
    step: tuple[int, int]
    head: int
    body: int


@dataclass(frozen=True)
class Code:
    """One source."""

    source: str
    is_python: bool = False

    @cached_property
    def _all(self) -> list[Token]:
        pattern = _PYTHON if self.is_python else _C
        found = pattern.finditer(self.source)
        return [Token(str(m.lastgroup), m.group(), m.start()) for m in found]

    @cached_property
    def tokens(self) -> list[Token]:
        """Names, numbers and operators."""
        return [t for t in self._all if t.kind in ("name", "number", "op")]

    @cached_property
    def apart(self) -> list[Token]:
        """Comments and strings."""
        return [t for t in self._all if t.kind in ("comment", "string")]

    @cached_property
    def directives(self) -> list[Token]:
        """Lines of the preprocessor."""
        return [t for t in self._all if t.kind == "directive"]

    @cached_property
    def closing(self) -> dict[int, int]:
        """Number of an opening bracket → number of the one that closes it."""
        open_ones: list[int] = []
        found = {}
        for number, token in enumerate(self.tokens):
            if token.text in _PAIRS.values():
                open_ones.append(number)
            elif token.text in _PAIRS and open_ones:
                found[open_ones.pop()] = number
        return found

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self.source))]

    def line(self, position: int) -> int:
        """The line of a position, from 1."""
        return bisect.bisect_right(self._line_starts, position)

    def words(self, first: int, last: int) -> str:
        """Lines, as one line of words."""
        return " ".join(" ".join(self.source.split("\n")[first - 1 : last]).split())

    def apply(self, edit: Edit) -> str:
        """The source with one edit."""
        return self.source[: edit.start] + edit.text + self.source[edit.end :]

    def is_spaced(self, token: Token) -> bool:
        """Whether it stands between blanks: a comparison, a product, and no bracket or pointer."""
        before, behind = self.source[token.start - 1], self.source[token.end : token.end + 1]
        return before.isspace() and behind.isspace()

    def binary(self, *texts: str) -> Iterator[int]:
        """Numbers of operators between two operands."""
        for number, token in enumerate(self.tokens):
            if token.kind != "op" or token.text not in texts or not number:
                continue
            left = self.tokens[number - 1]
            ends = left.kind in ("name", "number") or left.text in ")]"
            if ends and left.text not in _BEFORE_A_SIGN and self.is_spaced(token):
                yield number

    def operand_end(self, number: int) -> int:
        """Where the operand ends that begins at this token: as a position in the source."""
        tokens = self.tokens
        while tokens[number].text in ("-", "!", "~", "*", "&"):
            number += 1
        if self._is_cast(number):
            return self.operand_end(self.closing[number] + 1)
        number = self.closing.get(number, number)
        while number + 1 < len(tokens):
            nxt = tokens[number + 1]
            if nxt.text in "([" and nxt.start == tokens[number].end:
                number = self.closing.get(number + 1, number + 1)
            elif nxt.text in (".", "->", "::") and number + 2 < len(tokens):
                number += 2
            else:
                break
        return tokens[number].end

    def _is_cast(self, number: int) -> bool:
        if self.tokens[number].text != "(" or number not in self.closing:
            return False
        close = self.closing[number]
        inner = self.tokens[number + 1 : close]
        behind = self.tokens[close + 1]
        return (
            bool(inner)
            and all(t.kind == "name" for t in inner)
            and behind.start == self.tokens[close].end
            and (behind.kind in ("name", "number") or behind.text == "(")
        )

    def statements(self) -> Iterator[tuple[int, int]]:
        """First and last token of what ends in a semicolon and is no declaration. Of C."""
        tokens = self.tokens
        for number, token in enumerate(tokens):
            before = tokens[number - 1].text if number else ";"
            if before not in (";", "{", "}", ")", "else") or token.text in _WORDS:
                continue
            if token.kind != "name" and token.text not in ("*", "(", "++"):
                continue
            if before == ";" and any(first < number < last for first, last in self._heads):
                continue
            if before == ")" and not self._closes_head(number - 1):
                continue
            end = self._semicolon(number)
            if end and self._does_something(number, end):
                yield number, end

    @cached_property
    def _heads(self) -> list[tuple[int, int]]:
        """The brackets behind `for`, `if` and `while`."""
        return [
            (opened, closed)
            for opened, closed in self.closing.items()
            if opened and self.tokens[opened - 1].text in ("for", "if", "while")
        ]

    def _closes_head(self, close: int) -> bool:
        return any(last == close for _, last in self._heads)

    def _semicolon(self, number: int) -> int:
        while number < len(self.tokens):
            text = self.tokens[number].text
            if text == ";":
                return number
            if text in ("{", "}"):
                return 0
            number = self.closing.get(number, number) + 1
        return 0

    def _does_something(self, first: int, end: int) -> bool:
        depth_free = []
        number = first
        while number < end:
            depth_free.append(self.tokens[number])
            number = self.closing.get(number, number) + 1
        names_before = 0
        for token in depth_free:
            if token.text in ASSIGNMENTS:
                return names_before == 1
            if token.text in (".", "->", "::"):
                names_before -= 1
            names_before += token.kind == "name"
        is_call = self.tokens[end - 1].text == ")"
        return names_before == 1 and (is_call or "++" in [t.text for t in depth_free])

    @cached_property
    def loops(self) -> list[Loop]:
        """Of C, those with three clauses."""
        return list(self._find_loops())

    def _find_loops(self) -> Iterator[Loop]:
        tokens = self.tokens
        for number, token in enumerate(tokens[:-1]):
            if token.text != "for" or tokens[number + 1].text != "(":
                continue
            close = self.closing[number + 1]
            cuts = [n for n in range(number + 2, close) if tokens[n].text == ";"]
            if len(cuts) == 2:
                yield self._loop(number + 2, cuts[0], cuts[1], close)

    def _loop(self, first: int, one: int, two: int, close: int) -> Loop:
        tokens, source = self.tokens, self.source
        equals = [n for n in range(first, one) if tokens[n].text == "="]
        begin = source[tokens[equals[0]].end : tokens[one].start].strip() if equals else ""
        if "," in begin:
            begin = ""
        names = [t.text for t in tokens[two + 1 : close] if t.kind == "name"]
        bound = (0, 0)
        for number in range(one + 1, two):
            if tokens[number].text in ("<", "<=") and self.is_spaced(tokens[number]):
                bound = (tokens[number + 1].start, tokens[two].start)
        return Loop(
            variable=names[0] if names else "",
            first=begin,
            init_end=tokens[one].start if begin else 0,
            test=(tokens[one].end, tokens[two].start),
            bound=bound,
            step=(tokens[two].end, tokens[close].start),
            head=tokens[first].start,
            body=tokens[close].end,
        )
