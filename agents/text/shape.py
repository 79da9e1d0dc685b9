# SPDX-License-Identifier: Apache-2.0
"""What a candidate in each language looks like from outside, by text alone; nothing is executed.

Front matter is required of CUDA. In C++ and Python it is optional, as it is of Triton with host
code: where it is missing, what a candidate must define tells it from an example.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...kernelbench.languages import (
    CPP,
    CUDA,
    LANGUAGES,
    PYTHON,
    TRITON,
    Language,
    Syntax,
)
from ...sandbox.front_matter import MATTER_CHARACTERS, MalformedError, read_comment

_DOCSTRING = re.compile(
    r"\A\ufeff?(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*[rRuU]?(?:\"\"\"|''')\s*?---[ \t]*\n"
    r"(?P<text>.*?)^[ \t]*---[ \t]*$",
    re.S | re.M,
)
_DOCSTRING_OPENING = re.compile(r"\A\s*[rRuU]?(?:\"\"\"|''')\s*?---[ \t]*(?:\n|\Z)")
_COMMENT_OPENING = re.compile(r"\A\s*/\*---[ \t]*(?:\n|\Z)")
_HOST = re.compile(r"^[ \t]*(?:(?:async[ \t]+)?def[ \t]+run|class[ \t]+ModelNew)\b", re.M)
UNLABELLED = frozenset({"", "text", "txt", "plaintext", "plain", "code"})
"""Info strings that say nothing of a language."""
_OTHERS = (
    "rust",
    "rs",
    "go",
    "java",
    "javascript",
    "js",
    "typescript",
    "ts",
    "julia",
    "fortran",
    "f90",
    "hip",
    "opencl",
    "cl",
    "metal",
    "hlsl",
    "glsl",
    "wgsl",
    "ptx",
    "asm",
    "llvm",
    "mojo",
    "sycl",
    "zig",
    "tilelang",
    "cutedsl",
)


@dataclass(frozen=True)
class Head:
    """Where a source's front matter stands."""

    text: str
    """Its TOML; empty where it cannot be read."""
    first: int
    """Its first line, from 0, its opening sign counted."""
    end: int
    """The line after its last."""
    is_broken: bool = False
    """It is there, but not where it must be, without an end, or not TOML."""

    @cached_property
    def facts(self) -> dict[str, Any] | None:
        """What it says; None where it is not TOML."""
        if len(self.text) > MATTER_CHARACTERS:
            return None
        try:
            return tomllib.loads(self.text)
        except (ValueError, RecursionError):
            return None

    @property
    def language(self) -> str:
        """The language it declares; empty where it says none."""
        said = (self.facts or {}).get("language", "")
        return said if isinstance(said, str) else ""


@dataclass(frozen=True)
class SourceShape:
    """How candidates in a language are told from other text."""

    mark: re.Pattern[str]
    """What every whole candidate has behind its front matter."""
    lacks: str
    """What is said of a block without the mark."""
    entry: re.Pattern[str] | None
    """What makes a source without front matter a candidate; None where front matter is required."""


_CPP_MARK = re.compile(r'extern\s+"C"')
SHAPES = {
    CPP: SourceShape(_CPP_MARK, 'an extern "C" entry point', _CPP_MARK),
    CUDA: SourceShape(
        re.compile(r"\b__global__\b"),
        "front matter /*--- … ---*/ and a __global__ kernel",
        None,
    ),
    TRITON: SourceShape(
        re.compile(r"^[ \t]*(?:def|class)[ \t]", re.M),
        "front matter in the module's docstring, or host code (run or ModelNew)",
        _HOST,
    ),
    PYTHON: SourceShape(_HOST, "def run(...) or class ModelNew", _HOST),
}
BEGINNINGS = {Syntax.C: _COMMENT_OPENING, Syntax.PYTHON: _DOCSTRING_OPENING}
"""A text that begins so is a source even without a fence around it."""

PROGRAMMING = frozenset(
    {*_OTHERS, *(each for known in LANGUAGES.values() for each in known.labels)}
)
"""Labels of blocks that hold a program in some language."""


def head_of(source: str, language: Language) -> Head | None:
    """The front matter of a source whose lines end with LF; None where it has none."""
    is_python = language.syntax is Syntax.PYTHON
    return _docstring_head(source) if is_python else _comment_head(source)


def _comment_head(source: str) -> Head | None:
    try:
        matter = read_comment(source)
    except MalformedError as error:
        return Head("", 0, error.place.line, is_broken=True)
    if not matter.text and matter.start.line == 1:
        return None
    # Its text starts on the line below the opening sign and ends where the closing line begins.
    first = matter.start.line - 2
    return Head(matter.text, first, first + matter.text.count("\n") + 2)


def _docstring_head(source: str) -> Head | None:
    found = _DOCSTRING.match(source)
    if found is None:
        broken = _DOCSTRING_OPENING.match(source)
        return Head("", 0, source[: broken.end()].count("\n"), is_broken=True) if broken else None
    first = source[: found.start("text")].count("\n") - 1
    return Head(found["text"], max(0, first), source[: found.end()].count("\n") + 1)


def body_of(source: str, head: Head | None) -> str:
    """What stands behind the front matter, from the next line on."""
    if head is None:
        return source
    return "\n".join(source.split("\n")[head.end :])
