# SPDX-License-Identifier: Apache-2.0
"""Finds and reads a candidate's front matter, and says where in the file each value stands.

Front matter is TOML: in a C++ or CUDA file between `/*---` and `---*/` in a comment before any
code, in a Python file between two lines of `---` at the head of the module's docstring. Nothing is
executed. What the keys mean is known to those who ask.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass, field
from typing import Any

from .toml_places import Spots, spots

MATTER_CHARACTERS = 32 << 10
"""A plan is a page; more is read by nobody."""

_BEFORE = re.compile(r"\ufeff?(?:\s+|//[^\n]*|/\*(?!---[ \t]*\r?\n).*?\*/)*", re.S)
_OPENING = re.compile(r"/\*---[ \t]*\r?\n")
_CLOSING = re.compile(r"(?<![^\n])[ \t]*---\*/")
_DOCSTRING = re.compile(r"\A\s*---[ \t]*\n(.*?)^[ \t]*---[ \t]*$", re.S | re.M)
_TOML_PLACE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


@dataclass(frozen=True)
class FilePlace:
    """A place in the candidate's file, counted from 1."""

    line: int = 1
    column: int = 1


class MalformedError(Exception):
    """Front matter that cannot be read; `place` says where in the file."""

    def __init__(self, reason: str, place: FilePlace) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


Path = tuple[str | int, ...]
"""Keys and list indices from the top of the document: ("launch", 0, "grid", 1)."""


@dataclass(frozen=True)
class FrontMatter:
    """The facts of a front matter; empty where a file has none."""

    facts: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    start: FilePlace = field(default_factory=FilePlace)
    """Where the text starts in the file."""
    is_verbatim: bool = True
    """Whether the file holds the text letter by letter; only the start is known where not."""
    spots: Spots = field(default_factory=Spots)

    def place(self, path: Path, *, of_key: bool = False) -> FilePlace:
        """Where the value at `path` stands, or its key; the nearest thing around it if unknown."""
        table = self.spots.keys if of_key else self.spots.values
        while path:
            if path in table:
                return self._at(table[path])
            path, table = path[:-1], self.spots.values
        return self.start

    def place_inside(self, path: Path, offset: int) -> FilePlace:
        """Where the character `offset` of the string at `path` stands."""
        at = self.spots.contents.get(path)
        return self.place(path) if at is None else self._at(at + offset)

    def _at(self, offset: int) -> FilePlace:
        if not self.is_verbatim:
            return self.start
        return move_place(self.start, self.text[:offset])


def move_place(start: FilePlace, text: str) -> FilePlace:
    """Where one is after `text` when it starts at `start`."""
    lines = text.count("\n")
    if not lines:
        return FilePlace(start.line, start.column + len(text))
    return FilePlace(start.line + lines, len(text) - text.rindex("\n"))


def read_comment(source: str) -> FrontMatter:
    """The front matter in the leading comment of a C++ or CUDA file.

    Raises:
        MalformedError: it is not where it must be, does not end, or is not TOML.
    """
    before = _BEFORE.match(source)
    opening = _OPENING.match(source, before.end() if before else 0)
    if opening is None:
        if late := _OPENING.search(source):
            place = move_place(FilePlace(), source[: late.start()])
            raise MalformedError("the front matter must stand before any code", place)
        return FrontMatter()
    end = source.find("*/", opening.end())
    closing = _CLOSING.search(source, opening.end())
    if closing is None or closing.end() != end + 2:
        place = move_place(FilePlace(), source[: end if end >= 0 else opening.start()])
        raise MalformedError(
            "the front matter must end with a line `---*/`"
            + ("; the comment ends here without it" if end >= 0 else ", and there is none"),
            place,
        )
    text = source[opening.end() : closing.start()]
    return _load_facts(text, move_place(FilePlace(), source[: opening.end()]), is_verbatim=True)


def read_docstring(tree: ast.Module, source: str) -> FrontMatter:
    """The front matter in the docstring of a Python module.

    Raises:
        MalformedError: it is not TOML.
    """
    value = ast.get_docstring(tree, clean=False) or ""
    found = _DOCSTRING.match(value)
    if found is None:
        return FrontMatter()
    statement = tree.body[0]
    start = FilePlace(statement.lineno, statement.col_offset + 1)
    written = ast.get_source_segment(source.replace("\r\n", "\n"), statement) or ""
    quotes = re.match(r"[A-Za-z]*(\"\"\"|'''|\"|')", written)
    inside = written[quotes.end() : -len(quotes[1])] if quotes else ""
    is_verbatim = inside == value
    if is_verbatim and quotes:
        start = move_place(start, quotes[0] + value[: found.start(1)])
    else:
        start = FilePlace(start.line + value.count("\n", 0, found.start(1)), 1)
    return _load_facts(found[1], start, is_verbatim=is_verbatim)


def _load_facts(text: str, start: FilePlace, *, is_verbatim: bool) -> FrontMatter:
    if len(text) > MATTER_CHARACTERS:
        raise MalformedError(
            f"the front matter has {len(text)} characters, at most {MATTER_CHARACTERS} are read",
            start,
        )
    try:
        facts = tomllib.loads(text)
    except RecursionError as error:
        raise MalformedError("the front matter is nested too deeply", start) from error
    except ValueError as error:
        # Not only TOMLDecodeError: an integer of thousands of digits is refused by int().
        raise _not_toml(str(error), text, start, is_verbatim=is_verbatim) from error
    return FrontMatter(facts, text, start, is_verbatim, spots(text))


def _not_toml(message: str, text: str, start: FilePlace, *, is_verbatim: bool) -> MalformedError:
    place = start
    if found := _TOML_PLACE.search(message):
        message = message[: found.start()]
        if is_verbatim and found[1]:
            lines = text.split("\n")[: int(found[1]) - 1]
            place = move_place(start, "".join(line + "\n" for line in lines))
            place = FilePlace(place.line, place.column + int(found[2]) - 1)
        elif is_verbatim:
            place = move_place(start, text.rstrip())
    return MalformedError(f"the front matter is not TOML: {message}", place)
