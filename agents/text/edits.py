# SPDX-License-Identifier: Apache-2.0
"""Search/replace edits of a source, in the one form that a reply may have them:

    <<<<<<< SEARCH
    whole lines of the base, letter by letter
    =======
    the lines that stand in their place; none deletes
    >>>>>>> REPLACE

Each sign stands alone on its line; fences around the edits don't matter. Every search must stand
in the base exactly once, edits may not overlap, and either all are made or none. An edit may not
touch the front matter, nor a fixed region, which is everything from a comment `kernelwright: fixed`
to a comment `kernelwright: end fixed`: whoever wants to change these gives a whole source.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from ...kernelbench.languages import Language, language_of
from ..model import Finish
from .candidate_text import (
    SEARCH_SIGN,
    ReplyText,
    check_source,
    clean_reply,
    holds_edits,
    unclosed_fence,
    whole_source,
)
from .code_blocks import split, unix_lines
from .found import FoundSource, ReplyOutcome, Unusable
from .shape import head_of
from .untrusted import one_line

DIVIDER = "======="
REPLACE_SIGN = ">>>>>>> REPLACE"
MOST_EDITS = 64
_SHOWN = 120
"""Characters of a line that a reason shows."""

_FIXED = re.compile(r"[ \t]*(?://|#)[ \t]*kernelwright:[ \t]*(?P<end>end[ \t]+)?fixed\b")
_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Edit:
    """One search and what takes its place; both end with a line end unless they are empty."""

    search: str
    replace: str
    line: int
    """Of the reply, where it starts, from 1."""


class Edits(NamedTuple):
    """The edits of a reply, and the lines around them."""

    edits: tuple[Edit, ...]
    around: str


def revise_source(
    reply_text: str, finish: Finish, language: str, base: str
) -> FoundSource | Unusable:
    """The source that a reply makes of the base: with its edits, or the whole source that it holds.

    Both at once are ambiguous.

    Raises:
        UnknownNameError: there are no candidates in `language`.
    """
    known = language_of(language)
    answer = clean_reply(reply_text, finish)
    if isinstance(answer, Unusable):
        return answer
    if not holds_edits(answer.text):
        return whole_source(answer, known)
    read = parse(answer.text)
    if isinstance(read, Unusable):
        return read
    if unclosed := split(read.around).unclosed:
        return unclosed_fence(unclosed)
    if isinstance(whole_source(ReplyText(read.around, ()), known), FoundSource):
        reason = "the reply has both edits and a whole source; give one of them"
        return Unusable(ReplyOutcome.AMBIGUOUS, reason)
    changed = apply(base, read.edits, language)
    if isinstance(changed, Unusable):
        return changed
    return FoundSource(changed.source, (*answer.notes, *changed.notes))


def parse(text: str) -> Edits | Unusable:
    """The edits in a text with LF line ends."""
    edits: list[Edit] = []
    around: list[str] = []
    search: list[str] = []
    replace: list[str] = []
    into, start = around, 0
    for number, line in enumerate(text.split("\n"), 1):
        sign = line.rstrip()
        if into is around and sign == SEARCH_SIGN:
            search, replace, start = [], [], number
            into = search
        elif into is search and sign == DIVIDER:
            into = replace
        elif into is replace and sign == REPLACE_SIGN:
            edits.append(Edit(_join_lines(search), _join_lines(replace), start))
            into = around
        elif into is not around and sign in (SEARCH_SIGN, DIVIDER, REPLACE_SIGN):
            return _edit_fault(f"the edit at line {start} of the reply has a second {sign}")
        else:
            into.append(line)
    if into is not around:
        reason = f"the reply ends inside the edit that line {start} starts"
        return Unusable(ReplyOutcome.TRUNCATED, reason)
    return Edits(tuple(edits), "\n".join(around))


def apply(base: str, edits: tuple[Edit, ...], language: str) -> FoundSource | Unusable:
    """The base with every edit made, or what is wrong with the first that cannot be.

    Raises:
        UnknownNameError: there are no candidates in `language`.
    """
    known = language_of(language)
    base = unix_lines(base).strip("\n") + "\n"
    if not 0 < len(edits) <= MOST_EDITS:
        return _edit_fault(f"there are {len(edits)} edits; give between 1 and {MOST_EDITS}")
    protected = _find_protected(base, known)
    if isinstance(protected, Unusable):
        return protected
    spans: list[_Span] = []
    for number, edit in enumerate(edits, 1):
        span = _place(base, edit, number)
        if isinstance(span, Unusable):
            return span
        spans.append(span)
    spans.sort()
    if problem := _overlap(spans) or _explain_touch(spans, protected):
        return _edit_fault(problem)
    lines = base.split("\n")
    for span in reversed(spans):
        lines[span.first : span.end] = span.lines
    changed = "\n".join(lines)
    return _unchanged_where_it_must(base, changed, known) or check_source(
        changed, (f"{len(edits)} edits of the base",)
    )


class _Span(NamedTuple):
    """Lines of the base, from 0, and what takes their place."""

    first: int
    end: int
    number: int
    lines: tuple[str, ...]


class _Region(NamedTuple):
    first: int
    end: int
    name: str


def _place(base: str, edit: Edit, number: int) -> _Span | Unusable:
    if not edit.search.strip():
        return _edit_fault(f"edit {number} searches for nothing")
    # Only whole lines match: with a line end before them, too.
    around, wanted = "\n" + base, "\n" + edit.search
    at = around.find(wanted)
    if at < 0:
        return _edit_fault(f"edit {number} does not match: {_describe_nearest(base, edit.search)}")
    again = around.find(wanted, at + 1)
    first = around.count("\n", 0, at)
    if again >= 0:
        other = around.count("\n", 0, again)
        return _edit_fault(
            f"edit {number} matches more than once, at lines {first + 1} and {other + 1} of the "
            f"base; search for more lines around the place"
        )
    end = first + edit.search.count("\n")
    return _Span(first, end, number, tuple(edit.replace.split("\n")[:-1]))


def _describe_nearest(base: str, search: str) -> str:
    """Says which line of the search is not in the base, and which line of the base is nearest."""
    lines = base.split("\n")
    known = set(lines)
    wanted = search.split("\n")[:-1]
    missing = next((line for line in wanted if line not in known), None)
    if missing is None:
        first = lines.index(wanted[0])
        return (
            "its lines stand in the base, but not one after another; line "
            f"{first + 1} is {_quote(lines[first])}"
        )
    squeezed = "".join(missing.split())
    for number, line in enumerate(lines, 1):
        if squeezed and "".join(line.split()) == squeezed:
            return f"line {number} of the base differs in white space only: {_quote(line)}"
    number = _most_alike(missing, lines)
    return (
        f"the base has no line {_quote(missing)}; nearest is line {number + 1}, "
        f"{_quote(lines[number])}"
    )


def _most_alike(wanted: str, lines: list[str]) -> int:
    """The line that shares most words and signs; time grows with the text only, not its square."""
    words = Counter(_WORD.findall(wanted))
    total = words.total()

    def likeness(number: int) -> float:
        other = Counter(_WORD.findall(lines[number]))
        return 2 * (other & words).total() / max(1, total + other.total())

    return max(range(len(lines)), key=likeness)


def _find_protected(base: str, language: Language) -> list[_Region] | Unusable:
    head = head_of(base, language)
    if head and head.is_broken:
        return _edit_fault("the front matter of the base cannot be read; give a whole source")
    regions = [_Region(head.first, head.end, "the front matter")] if head else []
    return regions + _find_fixed(base.split("\n"))


def _find_fixed(lines: list[str]) -> list[_Region]:
    """The fixed regions with their marks; an open one lasts to the end."""
    regions = []
    start: int | None = None
    for number, line in enumerate(lines):
        mark = _FIXED.match(line)
        if mark and mark["end"] and start is not None:
            regions.append(_Region(start, number + 1, "a fixed region"))
            start = None
        elif mark and not mark["end"] and start is None:
            start = number
    if start is not None:
        regions.append(_Region(start, len(lines), "a fixed region"))
    return regions


def _overlap(spans: list[_Span]) -> str:
    for one, next_one in pairwise(spans):
        if next_one.first < one.end:
            line = next_one.first + 1
            return f"edits {one.number} and {next_one.number} overlap at line {line} of the base"
    return ""


def _explain_touch(spans: list[_Span], protected: list[_Region]) -> str:
    for span in spans:
        for region in protected:
            if span.first < region.end and region.first < span.end:
                return (
                    f"edit {span.number} touches {region.name} (lines {region.first + 1} to "
                    f"{region.end} of the base); only a whole source may change it"
                )
    return ""


def _unchanged_where_it_must(base: str, changed: str, language: Language) -> Unusable | None:
    """Edits beside the protected lines can still move or forge them: what counts is the result."""
    if changed == base:
        return _edit_fault("the edits change nothing")
    before, after = head_of(base, language), head_of(changed, language)
    if (before and before.text) != (after and after.text) or (after and after.is_broken):
        return _edit_fault("the edits change the front matter; only a whole source may")
    if _fixed_texts(base) != _fixed_texts(changed):
        return _edit_fault("the edits change a fixed region; only a whole source may")
    return None


def _fixed_texts(source: str) -> list[list[str]]:
    lines = source.split("\n")
    return [lines[region.first : region.end] for region in _find_fixed(lines)]


def _join_lines(lines: list[str]) -> str:
    return "".join(line + "\n" for line in lines)


def _quote(line: str) -> str:
    return f"`{one_line(line, _SHOWN)}`"


def _edit_fault(reason: str) -> Unusable:
    return Unusable(ReplyOutcome.EDIT_FAILED, reason)
