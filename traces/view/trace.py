# SPDX-License-Identifier: Apache-2.0
"""What the trace shows: each place of the workflow with its prompts, replies and what came of them.

Texts are capped, and a message that was sent many times is shown once, so that a page and a report
stay within bounds. Knows no HTML and no HTTP.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..conversation import (
    FullReply,
    Passage,
    Prompt,
    PromptMessage,
    read_answer,
    read_prompt,
    spell_controls,
)
from ..events import AdviceGiven, CandidateMissing, CandidateProposed, Decided
from ..fold import Entry
from ..place import Place
from ..records import Advice
from ..sheet import Sheet
from ..store import Store
from ..transcript import Call, Moment, Step
from .code import CodeDifference, difference
from .pages import source_of

MESSAGE_SHOWN = 12_000
"""Characters of one message or reply on a page of many; a call's own page has all of it."""
TRACE_SHOWN = 1_000_000
"""Characters of prompts, replies and differences in one file or page; then only facts follow."""
STEPS_PER_PAGE = 10
_LONG = 1200
"""Characters; longer messages and replies begin folded."""


def _keep_text(text: str) -> str:
    return text


@dataclass
class Book:
    """Reads and caps what is shown, and remembers what was shown before."""

    store: Store
    sheet: Sheet
    message_shown: int = MESSAGE_SHOWN
    left: int = TRACE_SHOWN
    clean: Callable[[str], str] = _keep_text
    shows_difference: Callable[[str], bool] = lambda _candidate: True
    shown: dict[str, int] = field(default_factory=dict)
    """Messages by their hash: the number of the call that they were shown with."""

    def spend(self, characters: int) -> bool:
        """Whether there is room for so many characters more; they are counted."""
        if characters > self.left:
            self.left = 0
            return False
        self.left -= characters
        return True


@dataclass(frozen=True)
class Text:
    """A message or a reply, perhaps cut."""

    role: str
    passages: tuple[Passage, ...]
    characters: int
    left_out: int = 0
    shown_with: int = 0
    """The number of the call with which the same words are shown; 0: here."""

    @property
    def is_folded(self) -> bool:
        """Whether it is long enough to begin folded."""
        return self.characters > _LONG


@dataclass(frozen=True)
class CallView:
    """One call with its words."""

    call: Call
    prompt: Prompt
    messages: tuple[Text, ...]
    answer: FullReply
    reply: Text | None
    reasoning: Text | None = None
    """What was thought before the reply, where it was recorded."""
    has_no_room: bool = False
    """The page is full: the facts stand here, the words elsewhere."""


@dataclass(frozen=True)
class CandidateView:
    """A proposal, what the referee found, and what was changed."""

    entry: Entry
    parent: Entry | None
    change: CodeDifference | None


@dataclass(frozen=True)
class MomentView:
    """One thing that happened; the one field that is set says what."""

    call: CallView | None = None
    advice: Advice | None = None
    candidate: CandidateView | None = None
    missing: CandidateMissing | None = None
    decided: Decided | None = None


@dataclass(frozen=True)
class StepView:
    """One place of the workflow."""

    place: Place
    moments: tuple[MomentView, ...]

    @property
    def tokens(self) -> int:
        """What its calls took."""
        return sum(m.call.call.tokens for m in self.moments if m.call)


def step_view(book: Book, step: Step) -> StepView:
    """The place with everything that was said and done there."""
    return StepView(step.place, tuple(_moment(book, moment) for moment in step.moments))


def _moment(book: Book, moment: Moment) -> MomentView:
    match moment:
        case Call():
            return MomentView(call=call_view(book, moment))
        case AdviceGiven(advice=advice):
            return MomentView(advice=advice)
        case CandidateProposed(candidate=candidate):
            return MomentView(candidate=_candidate(book, candidate))
        case CandidateMissing():
            return MomentView(missing=moment)
        case Decided():
            return MomentView(decided=moment)


def call_view(book: Book, call: Call) -> CallView:
    """The call with its prompt and its reply."""
    replied = call.replied
    prompt, answer = Prompt(), FullReply()
    if book.left:
        prompt = read_prompt(book.store.get_blob, call.requested.ask)
        answer = read_answer(book.store.get_blob, replied.reply) if replied else answer
    messages = tuple(
        _text(book, message.role, book.clean(message.text), call.number)
        for message in prompt.messages
    )
    reply = _clean_said(book, "reply", answer.text)
    reasoning = _clean_said(book, "reasoning", answer.reasoning)
    return CallView(call, prompt, messages, answer, reply, reasoning, has_no_room=not book.left)


def _clean_said(book: Book, role: str, text: str) -> Text | None:
    """What a model said, cleaned and cut; None where it said nothing."""
    if not text:
        return None
    passage = Passage(book.clean(text), is_untrusted=True)
    return _cap_passages(book, role, (passage,), len(passage.text))


def _text(book: Book, role: str, text: str, number: int) -> Text:
    sha = hashlib.sha256(f"{role}\0{text}".encode(errors="replace")).hexdigest()
    before = book.shown.setdefault(sha, number)
    if before != number:
        return Text(role, (), len(text), shown_with=before)
    return _cap_passages(book, role, PromptMessage(role, text).passages, len(text))


def _cap_passages(book: Book, role: str, parts: tuple[Passage, ...], characters: int) -> Text:
    """The passages up to the cap, cut within one but never across the border of one."""
    kept: list[Passage] = []
    room = min(book.message_shown, book.left)
    for part in parts:
        if room <= 0:
            break
        kept.append(Passage(part.text[:room], part.is_untrusted))
        room -= len(part.text)
    shown = sum(len(part.text) for part in kept)
    book.spend(shown)
    return Text(role, tuple(kept), characters, sum(len(p.text) for p in parts) - shown)


def _candidate(book: Book, candidate: str) -> CandidateView:
    entry = book.sheet.entries[candidate]
    parent = next(iter(book.sheet.entries.find(entry.parents).values()), None)
    change = None
    if parent and book.shows_difference(candidate):
        new, missing = source_of(book.store, candidate, book.clean)
        old, older_missing = source_of(book.store, parent.candidate, book.clean)
        if not (missing or older_missing) and book.spend(len(new)):
            change = difference(old, new, entry.language)
    return CandidateView(entry, parent, change)


@dataclass(frozen=True)
class TracePage:
    """Some of the places, and where the others are."""

    steps: tuple[StepView, ...]
    page: int
    pages: int


def trace_page(book: Book, *, page: int, at: Place) -> TracePage:
    """The places of one page, or of the page that holds the place `at`."""
    sheet = book.sheet
    number = sheet.number_of_step(at)
    if number is not None:
        page = (number - 1) // STEPS_PER_PAGE + 1
    count = max(1, -(-sheet.count_steps() // STEPS_PER_PAGE))
    page = min(max(page, 1), count)
    chosen = sheet.list_steps((page - 1) * STEPS_PER_PAGE, STEPS_PER_PAGE)
    return TracePage(tuple(step_view(book, step) for step in chosen), page, count)


def facts_of(view: CallView) -> list[tuple[str, Any]]:
    """What is known of a call beside its words."""
    parameters = {k.replace("_", " "): v for k, v in view.prompt.parameters.items()}
    told = {k.replace("_", " "): v for k, v in view.answer.facts.items()}
    told.pop("finish", None)
    told.pop("seconds", None)
    return [(k, spell_controls(str(v))) for k, v in (*parameters.items(), *told.items())]
