# SPDX-License-Identifier: Apache-2.0
"""Checks the head of a Matrix Market text, before a fast parser reads its entries.

It knows the header's grammar and where an entry's line is; entries themselves are parsed by scipy.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import MatrixError

FIELDS = ("real", "integer", "pattern", "double", "unsigned-integer")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")
_IN_NUMBERS = b"0123456789+-.eEinfatyINFATY \t\r\n"
"""Of finite numbers, and of `nan` and `infinity`, which are told apart later."""
_MAGIC = b"%%matrixmarket"


@dataclass(frozen=True)
class Header:
    """What the first lines of a Matrix Market file promise."""

    rows: int
    cols: int
    entries: int
    field: str
    symmetry: str

    @property
    def is_mirrored(self) -> bool:
        """Whether entries stand for their mirror images too."""
        return self.symmetry != "general"

    @staticmethod
    def line_of(message: str) -> str:
        """The line number that a parser's message names, or `?`."""
        found = re.search(r"[Ll]ine (\d+)", message)
        return found.group(1) if found else "?"


def check_text(text: bytes, name: str) -> Header:
    """The header of a Matrix Market text.

    Raises:
        MatrixError: if it is not a coordinate matrix of real numbers, with the line.
    """
    if not text.strip():
        raise MatrixError(f"{name}: the file is empty", hint="download or write it again")
    first, _, _ = text.partition(b"\n")
    words = first.decode("ascii", "replace").lower().split()
    if not first.lower().startswith(_MAGIC) or len(words) != 5:
        shown = first[:40].decode("ascii", "replace")
        raise MatrixError(
            f"{name}: line 1: not a Matrix Market file: '{shown}'",
            hint="it begins with '%%MatrixMarket matrix coordinate real general'",
        )
    _, kind, layout, field, symmetry = words
    _check_words(name, kind, layout, field, symmetry)
    rows, cols, entries, end = _size_line(text, name)
    _check_characters(text, end, name)
    if symmetry != "general" and rows != cols:
        raise MatrixError(
            f"{name}: line 1: {symmetry}, but {rows} x {cols}",
            hint="a symmetric matrix is square; declare it 'general'",
        )
    return Header(rows, cols, entries, field, symmetry)


def _check_words(name: str, kind: str, layout: str, field: str, symmetry: str) -> None:
    if kind != "matrix":
        raise MatrixError(f"{name}: line 1: holds a '{kind}'", hint="only 'matrix' can be used")
    if layout != "coordinate":
        raise MatrixError(
            f"{name}: line 1: '{layout}' is a dense format",
            hint="sparse problems take 'coordinate' files; write a scipy.sparse matrix",
        )
    if field == "complex" or symmetry == "hermitian":
        raise MatrixError(
            f"{name}: line 1: complex numbers",
            hint="kernels are real: take the real part or the modulus and write the file again",
        )
    if field not in FIELDS:
        raise MatrixError(
            f"{name}: line 1: unknown field '{field}'", hint=f"one of {', '.join(FIELDS)}"
        )
    if symmetry not in SYMMETRIES:
        raise MatrixError(
            f"{name}: line 1: unknown symmetry '{symmetry}'", hint=f"one of {', '.join(SYMMETRIES)}"
        )


class _Sizes(NamedTuple):
    rows: int
    cols: int
    entries: int
    end: int
    """Where the line ends."""


def _size_line(text: bytes, name: str) -> _Sizes:
    start, number = text.find(b"\n") + 1, 1
    while 0 < start <= len(text):
        end = text.find(b"\n", start)
        line = text[start : end if end >= 0 else len(text)].strip()
        number += 1
        if line and not line.startswith(b"%"):
            words = line.split()
            if len(words) == 3 and all(word.isdigit() and len(word) < 19 for word in words):
                rows, cols, entries = (int(word) for word in words)
                return _Sizes(rows, cols, entries, end if end >= 0 else len(text))
            shown = line[:40].decode("ascii", "replace")
            raise MatrixError(
                f"{name}: line {number}: '{shown}' is not a size line",
                hint="it holds three numbers: rows, columns, entries",
            )
        if end < 0:
            break
        start = end + 1
    raise MatrixError(
        f"{name}: ends before the size line", hint="the file is cut off; get it again"
    )


def _check_characters(text: bytes, start: int, name: str) -> None:
    """Only what numbers are written with: scipy's parser is killed by a zero byte among them."""
    strange = text[start:].translate(None, _IN_NUMBERS)
    if not strange:
        return
    at = text.index(strange[:1], start)
    line = text.count(b"\n", 0, at) + 1
    shown = text[text.rfind(b"\n", 0, at) + 1 :][:40].partition(b"\n")[0].decode("ascii", "replace")
    raise MatrixError(
        f"{name}: line {line}: '{shown}' is not an entry",
        hint="after the size line there are only lines of two indices and a value",
    )
