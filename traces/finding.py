# SPDX-License-Identifier: Apache-2.0
"""Looks for words in what a campaign left: sources, claims and notes of candidates, what models
were asked and answered, what a Judge said and a workflow decided.

Nothing is indexed: candidates are read one after the other, for so many seconds, and whoever asked
is told how far it came. Knows no HTML.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from ..errors import KernelwrightError
from .conversation import read_answer, read_prompt
from .fold import Entry
from .sheet import Sheet
from .store import Store
from .transcript import CallRow

PATIENCE_S = 1.5
"""After which a search says how far it came."""
MOST_HITS = 100
"""Of one answer."""
_AROUND = 60
"""Characters before and behind what was found in a long line."""
_AT_ONCE = 100


class Hit(NamedTuple):
    """Where the words stand."""

    kind: str
    """`code`, `claim`, `prompt` or `reply`."""
    candidate: str
    """Empty: it is of a call."""
    number: int
    """The candidate's or the call's."""
    line: int
    """Of the source or the message, from 1 on."""
    before: str
    found: str
    behind: str


class Found(NamedTuple):
    """What a search found so far."""

    hits: tuple[Hit, ...]
    candidates: int
    """How many were looked at, from the first on."""
    calls: int
    is_whole: bool
    """Whether all of the campaign was looked at."""


class At(NamedTuple):
    """How far an earlier search had come."""

    candidates: int = 0
    calls: int = 0


BEGINNING = At()


def search(
    store: Store, sheet: Sheet, text: str, at: At = BEGINNING, patience_s: float = PATIENCE_S
) -> Found:
    """The places where the text stands, in any case of letters; of each source and message the
    first. Candidates come first, then calls.

    Args:
        at: where to begin, as an earlier answer told.
    """
    until = time.monotonic() + patience_s
    wanted = text.casefold().strip()
    hits: list[Hit] = []
    candidates, calls = at
    seen: set[str] = set()
    for hits_of in _look(store, sheet, wanted, at, seen) if wanted else ():
        if hits_of.call:
            calls += 1
        else:
            candidates += 1
        hits += hits_of.hits
        if len(hits) >= MOST_HITS or time.monotonic() > until:
            break
    is_whole = candidates >= sheet.head.proposed and calls >= sheet.count_calls()
    return Found(tuple(hits), candidates, calls, is_whole)


class _Looked(NamedTuple):
    hits: list[Hit]
    call: bool


def _look(store: Store, sheet: Sheet, wanted: str, at: At, seen: set[str]) -> Iterator[_Looked]:
    """What each candidate and each call has."""
    for skip in range(at.candidates, sheet.head.proposed, _AT_ONCE):
        for entry in sheet.list_entries(skip=skip, most=_AT_ONCE):
            yield _Looked(list(_look_at_candidate(store, entry, wanted)), call=False)
    for skip in range(at.calls, sheet.count_calls(), _AT_ONCE):
        for row in sheet.list_calls(skip, _AT_ONCE):
            yield _Looked(list(_look_at_call(store, sheet, row, wanted, seen)), call=True)


def _look_at_candidate(store: Store, entry: Entry, wanted: str) -> Iterator[Hit]:
    knobs = " ".join(f"{name}={value}" for name, value in entry.knobs.items())
    said = (entry.note, entry.family, entry.how, knobs, *_reasons(entry))
    yield from _first("claim", entry.candidate, entry.number, "\n".join(said), wanted)
    with suppress(KernelwrightError):
        source = store.get_blob(entry.candidate).decode(errors="replace")
        yield from _first("code", entry.candidate, entry.number, source, wanted)


def _reasons(entry: Entry) -> tuple[str, ...]:
    return entry.verdict.reasons if entry.verdict else ()


def _look_at_call(
    store: Store, sheet: Sheet, row: CallRow, wanted: str, seen: set[str]
) -> Iterator[Hit]:
    """A message that was sent before is told of the first call that sent it."""
    call = sheet.find_call(str(row.number))
    for message in read_prompt(store.get_blob, call.requested.ask).messages:
        if message.text not in seen:
            seen.add(message.text)
            yield from _first("prompt", "", row.number, message.text, wanted)
    if call.replied:
        answer = read_answer(store.get_blob, call.replied.reply).text
        yield from _first("reply", "", row.number, answer, wanted)


def _first(kind: str, candidate: str, number: int, text: str, wanted: str) -> Iterator[Hit]:
    """The first line of the text that has it."""
    # Where letters fold to several, what was found may be another line's; it is looked at below.
    if wanted not in text.casefold():
        return
    for at, line in enumerate(text.splitlines(), 1):
        begin = line.casefold().find(wanted)
        if begin >= 0:
            end = begin + len(wanted)
            before = line[max(0, begin - _AROUND) : begin].lstrip()
            yield Hit(kind, candidate, number, at, before, line[begin:end], line[end:][:_AROUND])
            return
