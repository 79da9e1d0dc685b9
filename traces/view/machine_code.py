# SPDX-License-Identifier: Apache-2.0
"""The machine code of a candidate's hot loops beside the lines of its source. Knows no HTML."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from ..records import HotCode, Profile


class Group(NamedTuple):
    """Instructions that follow each other and came of one line."""

    line: int
    """0: of none that is known."""
    source: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class ShownCode:
    """One loop."""

    what: str
    groups: tuple[Group, ...]
    left_out: int


def show_code(profile: Profile | None, source: str) -> tuple[ShownCode, ...]:
    """The loops of a profile with the source of each line."""
    lines = source.splitlines()
    return tuple(_show(each, lines) for each in (profile.code if profile else ()))


def _show(code: HotCode, lines: list[str]) -> ShownCode:
    groups = tuple(
        Group(line, _line_of(lines, line), tuple(each.text for each in of_line))
        for line, of_line in groupby(code.instructions, key=lambda each: each.line)
    )
    return ShownCode(code.what, groups, code.left_out)


def _line_of(lines: list[str], line: int) -> str:
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def list_hot_lines(shown: tuple[ShownCode, ...]) -> frozenset[int]:
    """The lines that have instructions in any of them."""
    return frozenset(group.line for code in shown for group in code.groups if group.line)
