# SPDX-License-Identifier: Apache-2.0
"""What every source must be before anything reads it: text of a sane size, with no null bytes."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings

from ..syntax import parse_python
from .front_matter import FilePlace, MalformedError, move_place

SOURCE_BYTES = 256 << 10


def encode_source(source: str) -> bytes:
    """The source as UTF-8.

    Raises:
        MalformedError: it is too large or cannot be a source.
    """
    try:
        raw = source.encode()
    except UnicodeEncodeError as error:
        place = move_place(FilePlace(), source[: error.start])
        raise MalformedError("a character that UTF-8 cannot hold", place) from error
    if len(raw) > SOURCE_BYTES:
        reason = f"the source has {len(raw)} bytes, at most {SOURCE_BYTES} are taken"
        raise MalformedError(reason, FilePlace())
    if "\0" in source:
        raise MalformedError("a null byte", move_place(FilePlace(), source[: source.index("\0")]))
    return raw


def python_tree(source: str) -> ast.Module:
    """The syntax tree of a Python source; nothing of it is executed.

    Raises:
        MalformedError: it is not one.
    """
    raw = encode_source(source)
    try:
        # A coding cookie would have Python read other text than people do.
        encoding, _ = tokenize.detect_encoding(io.BytesIO(raw).readline)
    except SyntaxError as error:
        raise MalformedError(str(error.msg), FilePlace()) from error
    if encoding not in ("utf-8", "utf-8-sig"):
        raise MalformedError(f"the source declares the encoding {encoding}, not utf-8", FilePlace())
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return parse_python(raw, "candidate.py")
    except SyntaxError as error:
        raise MalformedError(error.msg, FilePlace(error.lineno or 1, error.offset or 1)) from error
    except (RecursionError, MemoryError, ValueError) as error:
        reason = f"the source cannot be parsed: {type(error).__name__}: {error}"
        raise MalformedError(reason, FilePlace()) from error
