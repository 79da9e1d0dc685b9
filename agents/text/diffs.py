# SPDX-License-Identifier: Apache-2.0
"""The difference of two sources as text, for records, prompts and the command line."""

from __future__ import annotations

import difflib
from collections import Counter
from typing import NamedTuple

from .code_blocks import unix_lines

MOST_LINES = 4000
"""Beyond this two sources are not aligned: it takes too long, and nobody reads it."""
CONTEXT = 3
"""Unchanged lines beside a change."""


class Changed(NamedTuple):
    """How many lines a change adds and takes away; a line that is altered counts as both."""

    added: int
    removed: int


def unified_diff(old: str, new: str, *, old_name: str = "base", new_name: str = "candidate") -> str:
    """The unified difference; empty where nothing differs but line ends."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > MOST_LINES:
        return f"(more than {MOST_LINES} lines are not compared)\n" if before != after else ""
    lines = difflib.unified_diff(before, after, old_name, new_name, n=CONTEXT, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def changed_lines(old: str, new: str) -> Changed:
    """How many lines differ; of very long sources, how many stand in one and not in the other."""
    before, after = _lines(old), _lines(new)
    if max(len(before), len(after)) > MOST_LINES:
        one, other = Counter(before), Counter(after)
        return Changed((other - one).total(), (one - other).total())
    codes = difflib.SequenceMatcher(None, before, after).get_opcodes()
    changes = [code for code in codes if code[0] != "equal"]
    return Changed(sum(j2 - j1 for *_, j1, j2 in changes), sum(c[2] - c[1] for c in changes))


def _lines(text: str) -> list[str]:
    """Lines as compilers count them: other characters that str.splitlines breaks at are text."""
    lines = unix_lines(text).split("\n")
    return lines[:-1] if lines[-1] == "" else lines
