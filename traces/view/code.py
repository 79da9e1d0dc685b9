# SPDX-License-Identifier: Apache-2.0
"""Sources as highlighted lines, and the difference of two sources with unchanged runs folded.

Knows Pygments and difflib. Everything it gives back is escaped HTML of single lines.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from markupsafe import Markup, escape

from ...kernelbench.languages import LANGUAGES

COLOURED = frozenset(
    {
        "k",
        "kt",
        "kr",
        "kd",
        "kn",
        "kc",
        "ow",
        "s",
        "s1",
        "s2",
        "sd",
        "se",
        "sc",
        "c",
        "c1",
        "cm",
        "ch",
        "cp",
        "cpf",
        "nd",
        "mi",
        "mf",
        "mh",
        "mb",
        "nf",
        "nc",
        "fm",
    }
)
"""Pygments' short names of what the style sheet colours. All others, four tokens of five, would
only make a page several times as long."""

# Highlighting and comparing are for people; beyond these sizes lines are shown plain.
_MOST_HIGHLIGHTED = 300_000
_MOST_COMPARED_LINES = 4000
_CONTEXT = 3


@dataclass(frozen=True)
class DiffLine:
    """One line of a difference."""

    kind: str
    """`same`, `add` or `del`."""
    old: int | None
    new: int | None
    html: Markup


@dataclass(frozen=True)
class ShownLines:
    """Lines that are shown, or a fold of unchanged ones."""

    lines: tuple[DiffLine, ...]
    is_folded: bool = False


@dataclass(frozen=True)
class CodeDifference:
    """What changed from one source to the next."""

    blocks: tuple[ShownLines, ...]
    added: int
    removed: int
    note: str = ""


@lru_cache(maxsize=64)
def highlight(source: str, language: str) -> tuple[Markup, ...]:
    """The lines of the source as HTML with Pygments' classes, where the style sheet has them."""
    if len(source) > _MOST_HIGHLIGHTED or language not in LANGUAGES:
        return tuple(escape(line) for line in source.splitlines())
    from pygments.lexers import get_lexer_by_name

    lines = source.splitlines()
    lexer = get_lexer_by_name(LANGUAGES[language].markup, stripnl=False, ensurenl=False)
    html = [Markup("")]
    for kind, text in lexer.get_tokens("\n".join(lines)):
        first, *others = (_colour(part, kind) for part in text.split("\n"))
        html[-1] += first
        html += others
    return tuple(html[: len(lines)])


def _colour(text: str, kind: Any) -> Markup:
    from pygments.token import STANDARD_TYPES

    name = STANDARD_TYPES.get(kind, "")
    is_seen = name in COLOURED and not text.isspace() and text
    return Markup('<span class="{}">{}</span>').format(name, text) if is_seen else escape(text)


def difference(old: str, new: str, language: str) -> CodeDifference:
    """The change from `old` to `new`, line by line."""
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > _MOST_COMPARED_LINES:
        return CodeDifference((), 0, 0, f"more than {_MOST_COMPARED_LINES} lines are not compared")
    old_html, new_html = highlight(old, language), highlight(new, language)
    blocks: list[ShownLines] = []
    added = removed = 0
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    codes = matcher.get_opcodes()
    for index, (tag, i1, i2, j1, j2) in enumerate(codes):
        if tag == "equal":
            same = [
                DiffLine("same", i + 1, j + 1, new_html[j])
                for i, j in zip(range(i1, i2), range(j1, j2), strict=True)
            ]
            blocks += _fold_same(same, is_first=index == 0, is_last=index == len(codes) - 1)
            continue
        lines = [DiffLine("del", i + 1, None, old_html[i]) for i in range(i1, i2)]
        lines += [DiffLine("add", None, j + 1, new_html[j]) for j in range(j1, j2)]
        removed, added = removed + i2 - i1, added + j2 - j1
        blocks.append(ShownLines(tuple(lines)))
    return CodeDifference(tuple(blocks), added, removed)


def _fold_same(same: list[DiffLine], *, is_first: bool, is_last: bool) -> list[ShownLines]:
    """Keeps a few lines beside each change open and folds the rest."""
    head = 0 if is_first else _CONTEXT
    tail = 0 if is_last else _CONTEXT
    if len(same) <= head + tail + 2:
        return [ShownLines(tuple(same))]
    end = len(same) - tail
    parts = [
        ShownLines(tuple(same[:head])),
        ShownLines(tuple(same[head:end]), is_folded=True),
        ShownLines(tuple(same[end:])),
    ]
    return [block for block in parts if block.lines]
