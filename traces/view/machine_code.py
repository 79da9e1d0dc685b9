# SPDX-License-Identifier: Apache-2.0
"""The machine code of a candidate's hot loops beside the lines of its source. Knows no HTML."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from ..records import HotCode, Instruction, Profile


class Group(NamedTuple):
    """Instructions that follow each other and came of one line."""

    line: int
    """0: of none that is known."""
    source: str
    texts: tuple[str, ...]
    warps: tuple[str, ...] = ()
    """How many execute each; empty where nobody counted."""
    heat: int = 0
    """The most of them, as a share of the loop's most: from 0 to HOTTEST."""


HOTTEST = 4


@dataclass(frozen=True)
class ShownCode:
    """One loop."""

    what: str
    groups: tuple[Group, ...]
    left_out: int
    is_counted: bool = False
    """Whether it is known how often its instructions execute."""


def show_code(profile: Profile | None, source: str) -> tuple[ShownCode, ...]:
    """The loops of a profile with the source of each line."""
    lines = source.splitlines()
    return tuple(_show(each, lines) for each in (profile.code if profile else ()))


def _show(code: HotCode, lines: list[str]) -> ShownCode:
    most = max((each.warps or 0.0 for each in code.instructions), default=0.0)
    groups = tuple(
        _group(line, _line_of(lines, line), tuple(of_line), most)
        for line, of_line in groupby(code.instructions, key=lambda each: each.line)
    )
    return ShownCode(code.what, groups, code.left_out, most > 0)


def _group(line: int, source: str, instructions: tuple[Instruction, ...], most: float) -> Group:
    texts = tuple(each.text for each in instructions)
    if not most:
        return Group(line, source, texts)
    counts = [each.warps for each in instructions]
    warps = tuple("" if each is None else f"{each:,.0f}" for each in counts)
    share = max(each or 0.0 for each in counts) / most
    return Group(line, source, texts, warps, math.ceil(HOTTEST * share))


def _line_of(lines: list[str], line: int) -> str:
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def list_hot_lines(shown: tuple[ShownCode, ...]) -> frozenset[int]:
    """The lines that have instructions in any of them."""
    return frozenset(group.line for code in shown for group in code.groups if group.line)
