# SPDX-License-Identifier: Apache-2.0
"""The words of a C++ source, without comments, strings and preprocessor lines.

This is no compiler: macros are known by their definitions, conditional branches are all read, and
what headers say is not.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field
from typing import NamedTuple

_TOKEN = re.compile(
    r"(?P<space>\s+|\\(?=\r?\n))"
    r"|(?P<comment>//(?:[^\n\\]|\\.)*|/\*.*?(?:\*/|\Z))"
    r"|(?P<directive>\#(?:/\*.*?(?:\*/|\Z)|[^\n\\]|\\.)*)"
    r'|(?P<raw>(?:u8|[uUL])?R"(?P<tag>[^()\\\s]{0,16})\()'
    r'|(?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*"?)'
    r"|(?P<char>'(?:\\.|[^'\\\n])*'?)"
    r"|(?P<word>[A-Za-z_$][\w$]*)"
    r"|(?P<number>\.?\d(?:[eEpP][+-]|'?[\w.])*)"
    r"|(?P<mark>::|\.\.\.|.)",
    re.S,
)
_DEFINE = re.compile(r"#\s*define\s+([A-Za-z_]\w*)(\()?(.*)", re.S)


class Token(NamedTuple):
    """A word or a sign."""

    text: str
    at: int
    """Offset in the source."""
    is_word: bool = False


@dataclass(frozen=True)
class Macro:
    """What a `#define` says."""

    body: str
    is_function: bool


@dataclass(frozen=True)
class CppText:
    """A source, taken apart."""

    tokens: tuple[Token, ...]
    macros: dict[str, Macro | None] = field(default_factory=dict)
    """None where a name is defined in several ways."""


def read(source: str) -> CppText:
    """The tokens and macros of `source`; an unclosed string or comment lasts to the end."""
    tokens: list[Token] = []
    macros: dict[str, Macro | None] = {}
    at = 0
    while at < len(source):
        found = _TOKEN.match(source, at)
        if found is None:
            break
        kind, at = found.lastgroup, found.end()
        if kind == "raw":
            end = source.find(f'){found["tag"]}"', at)
            at = len(source) if end < 0 else end + len(found["tag"]) + 2
        elif kind == "directive":
            _define(found[0], macros)
        elif kind in ("word", "number", "mark"):
            tokens.append(Token(found[0], found.start(), kind == "word"))
        elif kind in ("string", "char"):
            tokens.append(Token('""', found.start()))
    return CppText(tuple(tokens), macros)


def words(text: str) -> list[str]:
    """The tokens of a piece of C++, as text."""
    return [token.text for token in read(text).tokens]


def _define(line: str, macros: dict[str, Macro | None]) -> None:
    found = _DEFINE.match(re.sub(r"\\\r?\n", " ", line))
    if not found:
        return
    name, macro = found[1], Macro(found[3].strip(), bool(found[2]))
    macros[name] = macro if macros.get(name, macro) == macro else None


CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def after_brackets(tokens: tuple[Token, ...], at: int, most: int = sys.maxsize) -> int:
    """The index behind the bracket that opens at `at`, or where looking for it ended.

    `<` counts only where it is the bracket that opens; at most `most` tokens are looked at.
    """
    opening = tokens[at].text
    pairs = {key: value for key, value in CLOSING.items() if key != "<" or opening == "<"}
    depth = 0
    end = min(len(tokens), at + most)
    while at < end:
        if tokens[at].text in pairs:
            depth += 1
        elif tokens[at].text in pairs.values():
            depth -= 1
        at += 1
        if depth == 0:
            break
    return at


def split_commas(parts: list[str]) -> list[list[str]]:
    """Tokens between the commas that stand in no bracket."""
    found: list[list[str]] = [[]]
    depth = 0
    for text in parts:
        if text in CLOSING:
            depth += 1
        elif text in CLOSING.values():
            depth -= 1
        if text == "," and depth <= 0:
            found.append([])
        else:
            found[-1].append(text)
    return [part for part in found if part] if len(found) == 1 else found
