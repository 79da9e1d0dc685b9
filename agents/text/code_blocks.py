# SPDX-License-Identifier: Apache-2.0
"""Splits Markdown into fenced blocks and the lines around them, line by line.

The rules are CommonMark's where they matter to us: three or more backticks or tildes open a block;
the same sign, at least as many, and nothing else on the line close it; a fence inside a longer one
is content. A block may stand deeper in than CommonMark allows, since models write them under lists.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_FENCE = re.compile(r"([ \t]{0,12})(`{3,}|~{3,})(.*)\Z")
_CLOSER_DEPTH = 3
"""Columns that a closing fence may stand deeper than its opening one; more is content, such as a
fence in the docstring of a function."""


@dataclass(frozen=True)
class CodeBlock:
    """A closed fenced block."""

    info: str
    """What stands behind the opening fence, without white space around it."""
    text: str
    """Its lines, without the opening fence's indentation, each with its line end."""
    line: int
    """Of the opening fence, from 1."""

    @property
    def label(self) -> str:
        """The language that the info string names, in small letters: `cuda` for `{.cuda}`,
        `cuda title=x`, `cuda:kernel.cu`; `cu` for `kernel.cu`; empty where there is none."""
        words = self.info.strip("{} \t").split()
        word = re.split(r"[:,;({\[]", words[0].lstrip("."))[0] if words else ""
        return word.rpartition(".")[2].lower()


@dataclass(frozen=True)
class Markdown:
    """A text, split."""

    blocks: tuple[CodeBlock, ...]
    outside: str
    """The lines that are in no block."""
    unclosed: CodeBlock | None = None
    """The block that the text ends in, if it does."""


def unix_lines(text: str) -> str:
    """The text with LF as its only line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split(text: str) -> Markdown:
    """Takes the text apart; only LF ends a line."""
    blocks: list[CodeBlock] = []
    outside: list[str] = []
    inside: list[str] = []
    opened: _Opening | None = None
    for number, line in enumerate(text.split("\n"), 1):
        fence = _FENCE.match(line)
        if opened is None:
            opened = _opening(fence, number)
            if opened is None:
                outside.append(line)
        elif fence and opened.is_closed_by(fence):
            blocks.append(opened.block(inside))
            opened, inside = None, []
        else:
            inside.append(line)
    unclosed = opened.block(inside) if opened else None
    return Markdown(tuple(blocks), "\n".join(outside), unclosed)


@dataclass(frozen=True)
class _Opening:
    indent: int
    fence: str
    info: str
    line: int

    def is_closed_by(self, found: re.Match[str]) -> bool:
        indent, fence, rest = found.groups()
        return (
            fence[0] == self.fence[0]
            and len(fence) >= len(self.fence)
            and not rest.strip()
            and len(indent) <= self.indent + _CLOSER_DEPTH
        )

    def block(self, lines: list[str]) -> CodeBlock:
        text = "".join(self._outdent(line) + "\n" for line in lines)
        return CodeBlock(self.info, text, self.line)

    def _outdent(self, line: str) -> str:
        margin = len(line) - len(line.lstrip(" \t"))
        return line[min(margin, self.indent) :]


def _opening(fence: re.Match[str] | None, number: int) -> _Opening | None:
    if fence is None:
        return None
    indent, signs, info = fence.groups()
    if signs[0] == "`" and "`" in info:
        # Three backticks around something inside a line are no fence.
        return None
    return _Opening(len(indent), signs, info.strip(), number)
