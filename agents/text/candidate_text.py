# SPDX-License-Identifier: Apache-2.0
"""Finds the one whole source in a Coder's reply, or says why there is none.

A reply that ended early is never searched. Of the closed fenced blocks whose info string fits the
language the last that holds front matter and code is taken; two that differ are ambiguous. Where a
language has front matter as an option and no block has any, a block that defines an entry point is
taken instead. A reply without fences is a source if it begins with front matter. What is returned
stands in the reply line by line.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

from ...kernelbench.languages import Language, language_of
from ...sandbox.front_matter import MalformedError
from ...sandbox.source_text import SOURCE_BYTES, encode_source
from ..model import Finish
from .code_blocks import CodeBlock, Markdown, split, unix_lines
from .found import FoundSource, ReplyOutcome, Unusable
from .shape import BEGINNINGS, PROGRAMMING, SHAPES, UNLABELLED, Head, body_of, head_of
from .thinking import without_thinking
from .untrusted import BIDIRECTIONAL, one_line

SEARCH_SIGN = "<<<<<<< SEARCH"
"""The line that an edit of a source starts with; a block with one is no whole source."""

THINKING, NO_FRONT_MATTER = "thinking left out", "it has no front matter"
ORDINARY = frozenset({THINKING, NO_FRONT_MATTER})
"""Notes that are of no interest to whoever mends a candidate."""


class ReplyText(NamedTuple):
    """A complete reply without its thoughts, with LF line ends."""

    text: str
    notes: tuple[str, ...]


def extract(reply_text: str, finish: Finish, language: str) -> FoundSource | Unusable:
    """The whole source in the reply.

    Raises:
        UnknownNameError: there are no candidates in `language`.
    """
    known = language_of(language)
    answer = clean_reply(reply_text, finish)
    if isinstance(answer, Unusable):
        return answer
    return whole_source(answer, known)


def clean_reply(reply_text: str, finish: Finish) -> ReplyText | Unusable:
    """The reply as it may be searched, or why it may not."""
    match finish:
        case Finish.LENGTH:
            return Unusable(ReplyOutcome.TRUNCATED, "the reply reached its limit of tokens")
        case Finish.REFUSED:
            return Unusable(ReplyOutcome.NO_CANDIDATE, "the model refused to answer")
        case Finish.EMPTY:
            return Unusable(ReplyOutcome.NO_CANDIDATE, "the reply is empty")
        case Finish.STOP:
            pass
    spoken = without_thinking(unix_lines(reply_text).removeprefix("\ufeff"))
    if spoken.is_unclosed:
        return Unusable(
            ReplyOutcome.TRUNCATED, "the reply ends in the middle of the model's thinking"
        )
    if not spoken.text.strip():
        what = "the reply has thoughts and no answer" if spoken.had_thoughts else "it is empty"
        return Unusable(ReplyOutcome.NO_CANDIDATE, what)
    return ReplyText(spoken.text, (THINKING,) if spoken.had_thoughts else ())


def whole_source(answer: ReplyText, language: Language) -> FoundSource | Unusable:
    """The whole source in an answer."""
    markdown = split(answer.text)
    if markdown.unclosed:
        return unclosed_fence(markdown.unclosed)
    chosen = _choose_block(markdown, answer.text, language)
    if isinstance(chosen, Unusable):
        return chosen
    return check_source(chosen.source, (*answer.notes, *chosen.notes))


def unclosed_fence(block: CodeBlock) -> Unusable:
    """What is said of a reply that ends inside a fenced block."""
    reason = f"the reply ends inside the fenced block that line {block.line} opens"
    return Unusable(ReplyOutcome.TRUNCATED, reason)


def check_source(source: str, notes: tuple[str, ...] = ()) -> FoundSource | Unusable:
    """The source with one line end at its end, if it can be stored, shown and compiled as it is."""
    source = source.strip("\n") + "\n"
    if hidden := next((c for c in source if c in BIDIRECTIONAL), None):
        name = unicodedata.name(hidden, "a bidirectional control")
        line = source[: source.index(hidden)].count("\n") + 1
        reason = f"line {line} of the source holds U+{ord(hidden):04X} ({name})"
        return Unusable(ReplyOutcome.FORBIDDEN_CHARACTERS, reason)
    try:
        encode_source(source)
    except MalformedError as error:
        if len(source.encode(errors="replace")) > SOURCE_BYTES:
            return Unusable(ReplyOutcome.TOO_LARGE, error.reason)
        reason = f"line {error.place.line} of the source holds {error.reason}"
        return Unusable(ReplyOutcome.FORBIDDEN_CHARACTERS, reason)
    return FoundSource(source, notes)


class _Offer(NamedTuple):
    """A block that may be the candidate."""

    source: str
    head: Head | None
    is_whole: bool
    """It has what every candidate of the language has, behind its front matter."""


def _choose_block(markdown: Markdown, text: str, language: Language) -> FoundSource | Unusable:
    if not markdown.blocks:
        return _take_bare(text, language)
    sources = [block for block in markdown.blocks if not holds_edits(block.text)]
    fitting = [block for block in sources if _fits(block, language)]
    offers = [_offer(block.text, language) for block in fitting]
    with_head = [offer for offer in offers if offer.head]
    if with_head:
        return _with_front_matter(with_head, len(fitting), language)
    if entry := SHAPES[language].entry:
        entries = [o.source for o in offers if o.is_whole and entry.search(o.source)]
        if entries:
            return _take_only(entries, len(fitting), (NO_FRONT_MATTER,))
    return _explain_none(sources, [b for b in fitting if b.label not in UNLABELLED], language)


def holds_edits(text: str) -> bool:
    """Whether an edit of a source starts in the text."""
    return any(line.rstrip() == SEARCH_SIGN for line in text.split("\n"))


def _fits(block: CodeBlock, language: Language) -> bool:
    return block.label in language.labels or block.label in UNLABELLED


def _offer(source: str, language: Language) -> _Offer:
    source = source.strip("\n") + "\n"
    head = head_of(source, language)
    behind = source if head and head.is_broken else body_of(source, head)
    return _Offer(source, head, bool(SHAPES[language].mark.search(behind)))


def _take_bare(text: str, language: Language) -> FoundSource | Unusable:
    if holds_edits(text):
        return Unusable(ReplyOutcome.NO_CANDIDATE, "the reply has edits and no whole source")
    if not BEGINNINGS[language.syntax].match(text):
        return Unusable(ReplyOutcome.NO_CANDIDATE, "the reply has no fenced block")
    offer = _offer(text, language)
    return _with_front_matter([offer], 1, language, ("without a fence",))


def _with_front_matter(
    offers: list[_Offer], of: int, language: Language, notes: tuple[str, ...] = ()
) -> FoundSource | Unusable:
    declared = {offer.head.language for offer in offers if offer.head}
    mine = [o for o in offers if o.head and o.head.language in ("", language.name)]
    if not mine:
        said = one_line(", ".join(sorted(declared)), 80)
        reason = f"the front matter says {said}, asked was for {language.name}"
        return Unusable(ReplyOutcome.WRONG_LANGUAGE, reason)
    if whole := [offer.source for offer in mine if offer.is_whole]:
        return _take_only(whole, of, notes)
    # The last may be half a candidate; the builder says best what it lacks.
    return FoundSource(mine[-1].source, (*notes, f"it lacks {SHAPES[language].lacks}"))


def _take_only(sources: list[str], of: int, notes: tuple[str, ...]) -> FoundSource | Unusable:
    different = {"\n".join(line.rstrip() for line in source.split("\n")) for source in sources}
    if len(different) > 1:
        reason = f"the reply has {len(different)} different whole sources; give exactly one"
        return Unusable(ReplyOutcome.AMBIGUOUS, reason)
    others = of - len(sources)
    if others:
        notes = (*notes, f"{others} other blocks passed over")
    return FoundSource(sources[-1], notes)


def _explain_none(
    sources: list[CodeBlock], labelled: list[CodeBlock], language: Language
) -> Unusable:
    foreign = [b.label for b in sources if b.label in PROGRAMMING - language.labels]
    if foreign and not labelled:
        said = one_line(", ".join(dict.fromkeys(foreign)), 80)
        reason = f"the reply holds {said}, asked was for {language.name}"
        return Unusable(ReplyOutcome.WRONG_LANGUAGE, reason)
    if labelled:
        return Unusable(
            ReplyOutcome.NO_CANDIDATE, f"no block of the reply has {SHAPES[language].lacks}"
        )
    return Unusable(ReplyOutcome.NO_CANDIDATE, f"the reply has no block in {language.name}")
