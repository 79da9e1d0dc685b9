# SPDX-License-Identifier: Apache-2.0
"""The numbers of a source that may be other numbers: tile sizes, unrolling, schedules.

A knob search needs no model where a source names its constants. Which of them are free is not
known here: one that is part of the meaning gives a wrong candidate, and the referee says so.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ...kernelbench.languages import Syntax, language_of

MOST = 1 << 20
"""Larger numbers are no knobs."""

_C = re.compile(
    r"^[ \t]*(?:#[ \t]*define[ \t]+(?P<macro>[A-Za-z_]\w*)[ \t]+(?P<is>\d+)[ \t]*$"
    r"|(?:static[ \t]+|inline[ \t]+)*(?:constexpr|const)[ \t]+"
    r"(?:static[ \t]+|unsigned[ \t]+|std::)*"
    r"(?:int|long|unsigned|size_t|u?int(?:8|16|32|64)_t|auto)[ \t]+"
    r"(?P<name>[A-Za-z_]\w*)[ \t]*=[ \t]*(?P<value>\d+)[uUlL]*[ \t]*;)",
    re.M,
)
_PYTHON = re.compile(
    r"^(?P<name>[A-Z][A-Z0-9_]*)[ \t]*(?::[^=\n]*)?=[ \t]*(?P<value>\d+)[ \t]*$", re.M
)
_PATTERNS = {Syntax.C: _C, Syntax.PYTHON: _PYTHON}


class ConstantVariant(NamedTuple):
    """A source with one number changed."""

    source: str
    change: str
    """In words: which, from what, to what."""


def variants(source: str, language: str) -> list[ConstantVariant]:
    """The source with each named constant doubled, then with each halved, in their order.

    Raises:
        UnknownNameError: there are no candidates in `language`.
    """
    pattern = _PATTERNS[language_of(language).syntax]
    found = [match for match in pattern.finditer(source) if 1 <= _value(match) <= MOST]
    doubled = [_make_variant(source, match, 2 * _value(match)) for match in found]
    halved = [
        _make_variant(source, match, _value(match) // 2) for match in found if _value(match) > 1
    ]
    return doubled + halved


def _group(match: re.Match[str]) -> str:
    return "is" if match.groupdict().get("macro") else "value"


def _value(match: re.Match[str]) -> int:
    digits = match[_group(match)]
    # An octal literal, or more digits than a knob has.
    return int(digits) if len(digits) < 9 and not (len(digits) > 1 and digits[0] == "0") else 0


def _make_variant(source: str, match: re.Match[str], value: int) -> ConstantVariant:
    start, end = match.span(_group(match))
    name = match.groupdict().get("macro") or match["name"]
    changed = f"{source[:start]}{value}{source[end:]}"
    return ConstantVariant(changed, f"{name} = {value} instead of {_value(match)}")
