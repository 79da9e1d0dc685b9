# SPDX-License-Identifier: Apache-2.0
"""Where each key and value of a TOML document stands, which tomllib does not tell.

The text must be a document that tomllib has read: what is checked there is not checked here, and
whatever this scanner cannot follow is left out.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field

Path = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t]*")
_GAP = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[^,\]}\n#]*")
_STRING = re.compile(
    r"'''(?:\r?\n)?(?P<rawlines>.*?)'{3,5}(?!')"
    r'|"""(?:\r?\n)?(?P<lines>(?:\\.|[^\\])*?)"{3,5}(?!")'
    r"|'(?P<raw>[^'\n]*)'"
    r'|"(?P<basic>(?:\\.|[^"\\\n])*)"',
    re.S,
)


@dataclass(frozen=True)
class Spots:
    """Offsets in the text by path."""

    keys: dict[Path, int] = field(default_factory=dict)
    values: dict[Path, int] = field(default_factory=dict)
    """Tables: their header."""
    contents: dict[Path, int] = field(default_factory=dict)
    """The first character inside a string's quotes, where the text holds it letter by letter."""


def spots(text: str) -> Spots:
    """The places of everything in a TOML document."""
    scanner = _Scanner(text)
    with contextlib.suppress(_LostError, RecursionError):
        scanner.document()
    return scanner.spots


class _LostError(Exception):
    """The scanner met what it does not know."""


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.spots = Spots()
        self.lengths: dict[Path, int] = {}
        """How many tables an array of tables has so far."""

    def document(self) -> None:
        table: Path = ()
        self._skip(_GAP)
        while self.at < len(self.text):
            if self._peek("["):
                table = self._header()
            else:
                self._pair(table)
            self._skip(_GAP)

    def _header(self) -> Path:
        start = self.at
        mark = "[[" if self._peek("[[") else "["
        self._take(mark)
        keys = self._keys()
        self._take("]" * len(mark))
        path = (*self._resolve_path(keys[:-1], start), keys[-1])
        if mark == "[[":
            self.spots.values.setdefault(path, start)
            self.lengths[path] = self.lengths.get(path, 0) + 1
        if path in self.lengths:
            path = (*path, self.lengths[path] - 1)
        self.spots.keys[path] = self.spots.values[path] = start
        return path

    def _resolve_path(self, keys: list[str], start: int) -> Path:
        """The path of a table: an array of tables on the way stands for its last one."""
        path: Path = ()
        for key in keys:
            path = (*path, key)
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
            self.spots.keys.setdefault(path, start)
            self.spots.values.setdefault(path, start)
        return path

    def _pair(self, table: Path) -> None:
        start = self.at
        keys = self._keys()
        for depth in range(1, len(keys) + 1):
            path = (*table, *keys[:depth])
            self.spots.keys.setdefault(path, start)
            self.spots.values.setdefault(path, start)
        self._take("=")
        self._skip(_SPACE)
        self._value((*table, *keys))

    def _keys(self) -> list[str]:
        keys = [self._key()]
        while self._peek("."):
            self._take(".")
            keys.append(self._key())
        return keys

    def _key(self) -> str:
        self._skip(_SPACE)
        if found := _BARE.match(self.text, self.at):
            key = found[0]
        elif (found := _STRING.match(self.text, self.at)) and found.lastgroup in ("raw", "basic"):
            key = found[found.lastgroup]
        else:
            raise _LostError
        self.at = found.end()
        self._skip(_SPACE)
        return key

    def _value(self, path: Path) -> None:
        self.spots.values[path] = self.at
        if self._peek("["):
            self._array(path)
        elif self._peek("{"):
            self._inline(path)
        elif found := _STRING.match(self.text, self.at):
            kind = found.lastgroup or ""
            if kind.startswith("raw") or "\\" not in found[kind]:
                self.spots.contents[path] = found.start(kind)
            self.at = found.end()
        else:
            self._skip(_PLAIN)

    def _array(self, path: Path) -> None:
        self._take("[")
        index = 0
        self._skip(_GAP)
        while not self._peek("]"):
            self._value((*path, index))
            index += 1
            self._skip(_GAP)
            if self._peek(","):
                self._take(",")
                self._skip(_GAP)
        self._take("]")

    def _inline(self, path: Path) -> None:
        self._take("{")
        self._skip(_GAP)
        while not self._peek("}"):
            self._pair(path)
            self._skip(_GAP)
            if self._peek(","):
                self._take(",")
                self._skip(_GAP)
        self._take("}")

    def _peek(self, mark: str) -> bool:
        return self.text.startswith(mark, self.at)

    def _take(self, mark: str) -> None:
        if not self._peek(mark):
            raise _LostError
        self.at += len(mark)

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
