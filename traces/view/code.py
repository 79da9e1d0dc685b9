"""Sources as highlighted lines, and the difference of two sources with unchanged runs folded.

Knows Pygments and difflib. Everything it gives back is escaped HTML of single lines.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import lru_cache

from markupsafe import Markup, escape

_LEXERS = {"cpp": "cpp", "cuda": "cuda", "triton": "python", "python": "python"}
# Highlighting and comparing are for people; beyond these sizes lines are shown plain.
_MOST_HIGHLIGHTED = 300_000
_MOST_COMPARED_LINES = 4000
_CONTEXT = 3


@dataclass(frozen=True)
class Line:
    """One line of a difference."""

    kind: str
    """`same`, `add` or `del`."""
    old: int | None
    new: int | None
    html: Markup


@dataclass(frozen=True)
class Block:
    """Lines that are shown, or a fold of unchanged ones."""

    lines: tuple[Line, ...]
    is_folded: bool = False


@dataclass(frozen=True)
class Difference:
    """What changed from one source to the next."""

    blocks: tuple[Block, ...]
    added: int
    removed: int
    note: str = ""


@lru_cache(maxsize=64)
def highlighted(source: str, language: str) -> tuple[Markup, ...]:
    """The lines of the source as HTML with Pygments' classes."""
    if len(source) > _MOST_HIGHLIGHTED or language not in _LEXERS:
        return tuple(escape(line) for line in source.splitlines())
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    lines = source.splitlines()
    lexer = get_lexer_by_name(_LEXERS[language], stripnl=False, ensurenl=False)
    html = highlight("\n".join(lines), lexer, HtmlFormatter(nowrap=True)).split("\n")
    # Safe: Pygments escapes the text of every token.
    return tuple(Markup(line) for line in html[: len(lines)])


def difference(old: str, new: str, language: str) -> Difference:
    """The change from `old` to `new`, line by line."""
    before, after = old.splitlines(), new.splitlines()
    if max(len(before), len(after)) > _MOST_COMPARED_LINES:
        return Difference((), 0, 0, f"more than {_MOST_COMPARED_LINES} lines are not compared")
    old_html, new_html = highlighted(old, language), highlighted(new, language)
    blocks: list[Block] = []
    added = removed = 0
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    codes = matcher.get_opcodes()
    for index, (tag, i1, i2, j1, j2) in enumerate(codes):
        if tag == "equal":
            same = [
                Line("same", i + 1, j + 1, new_html[j])
                for i, j in zip(range(i1, i2), range(j1, j2), strict=True)
            ]
            blocks += _folded(same, is_first=index == 0, is_last=index == len(codes) - 1)
            continue
        lines = [Line("del", i + 1, None, old_html[i]) for i in range(i1, i2)]
        lines += [Line("add", None, j + 1, new_html[j]) for j in range(j1, j2)]
        removed, added = removed + i2 - i1, added + j2 - j1
        blocks.append(Block(tuple(lines)))
    return Difference(tuple(blocks), added, removed)


def _folded(same: list[Line], *, is_first: bool, is_last: bool) -> list[Block]:
    """Keeps a few lines beside each change open and folds the rest."""
    head = 0 if is_first else _CONTEXT
    tail = 0 if is_last else _CONTEXT
    if len(same) <= head + tail + 2:
        return [Block(tuple(same))]
    end = len(same) - tail
    parts = [
        Block(tuple(same[:head])),
        Block(tuple(same[head:end]), is_folded=True),
        Block(tuple(same[end:])),
    ]
    return [block for block in parts if block.lines]
