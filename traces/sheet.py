# SPDX-License-Identifier: Apache-2.0
"""A campaign as pages and reports read it: its head, and of its candidates, calls and places only
those that are shown. Read from what stands beside its events (`index.py`), never from all of them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from ..errors import StorageError, UsageError
from .events import CampaignStarted, Event
from .fold import Entry
from .head import Head, head_of, read_head
from .history import derive, the_only
from .index import ESTIMATED, FORM, MEMORY, REST, read_call, write_index
from .names import BEST
from .outline import fill, read_outline
from .place import Place
from .transcript import Call, CallRow, Share, Step, name_call, transcribe


@contextmanager
def _understanding(campaign: str) -> Iterator[None]:
    """What stands in the index and makes no sense is an error that says how it is made anew."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise StorageError(
            f"what stands beside the events of campaign {campaign} cannot be understood "
            f"({type(error).__name__}); its events are another matter",
            hint="`kernelwright reindex --all` writes it anew from them",
        ) from error


Query = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]
"""Runs a statement and gives its rows."""
ReadSome = Callable[[Sequence[int]], list[Event]]
"""The events of these `seq`s, in order."""

SORTS = {
    "number": "number",
    "speedup": "grade, figure, number",
    "status": "CASE status WHEN '' THEN '~' ELSE status END, number",
    "family": "family, number",
}
"""What lists of candidates are sorted by."""
_MOST_SUGGESTED = 2000
"""Names among which one is looked for that is like a wrong one."""


class Branch(NamedTuple):
    """A candidate in the tree of all of them."""

    candidate: str
    parents: tuple[str, ...]
    is_pass: bool


class FamilyRow(NamedTuple):
    """The candidates of one family, or of one strategy."""

    family: str
    proposed: int
    passed: int
    best: str
    """The one that ranks first."""


class Entries(Mapping[str, Entry]):
    """The outlines of a campaign's candidates, each read when it is asked for."""

    def __init__(self, query: Query, campaign: str) -> None:
        self._query, self._campaign = query, campaign
        self._read: dict[str, Entry | None] = {}

    def __getitem__(self, candidate: str) -> Entry:
        if candidate not in self._read:
            self._fetch([candidate])
        entry = self._read[candidate]
        if entry is None:
            raise KeyError(candidate)
        return entry

    def __iter__(self) -> Iterator[str]:
        for (name,) in self._query(
            "SELECT candidate FROM candidates WHERE campaign = ? ORDER BY number", [self._campaign]
        ):
            yield str(name)

    def __len__(self) -> int:
        query = "SELECT count(*) FROM candidates WHERE campaign = ?"
        return int(self._query(query, [self._campaign])[0][0])

    def find(self, candidates: Iterable[str]) -> dict[str, Entry]:
        """Those of these that there are, in this order."""
        wanted = list(dict.fromkeys(candidates))
        missing = [name for name in wanted if name not in self._read]
        for at in range(0, len(missing), 500):
            self._fetch(missing[at : at + 500])
        return {name: entry for name in wanted if (entry := self._read[name])}

    def keep(self, outlines: Iterable[str]) -> list[Entry]:
        """Reads outlines as they are stored, and remembers them."""
        with _understanding(self._campaign):
            entries = [read_outline(text) for text in outlines]
        self._read |= {entry.candidate: entry for entry in entries}
        return entries

    def _fetch(self, candidates: Sequence[str]) -> None:
        self._read |= dict.fromkeys(candidates)
        marks = ",".join("?" * len(candidates))
        rows = self._query(
            f"SELECT outline FROM candidates WHERE campaign = ? AND candidate IN ({marks})",
            [self._campaign, *candidates],
        )
        self.keep(text for (text,) in rows)


@dataclass
class Sheet:
    """One campaign, to be read while the store stands still."""

    head: Head
    _query: Query
    _read: ReadSome

    def __post_init__(self) -> None:
        self.campaign = self.head.campaign
        self.entries = Entries(self._query, self.campaign)
        """The outlines of its candidates."""
        self._shares: list[Share] | None = None

    @classmethod
    def of_events(cls, events: Sequence[Event]) -> Self:
        """Of events that stand in no store, or in one without an index.

        Raises:
            StorageError: they make no sense.
        """
        history = derive(events)
        connection = sqlite3.connect(":memory:", check_same_thread=False)
        connection.executescript(MEMORY)
        write_index(connection, history, transcribe(events))
        by_seq = {event.seq: event for event in events}

        def query(text: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
            return connection.execute(text, values).fetchall()

        return cls(head_of(history), query, lambda seqs: [by_seq[seq] for seq in seqs])

    @classmethod
    def of_store(
        cls, query: Query, campaign: str, started: CampaignStarted, read: ReadSome
    ) -> Self | None:
        """From a store's index; None where it has none of this campaign that is up to date."""
        head = _read_head(query, campaign, started)
        return cls(head, query, read) if head else None

    def count(self, status: str = "") -> int:
        """How many candidates have this status; without one, how many there are."""
        counts = {each.value: count for each, count in self.head.by_status.items()}
        return counts.get(status, 0) if status else self.head.proposed

    def list_entries(
        self, status: str = "", sort: str = "number", skip: int = 0, most: int = -1
    ) -> list[Entry]:
        """Outlines of candidates.

        Args:
            status: of these alone; empty: of all.
            sort: one of `SORTS`.
        """
        where = "campaign = ?" + (" AND status = ?" if status else "")
        values = [self.campaign, *([status] if status else []), most, skip]
        return self._list_outlines(f"{where} ORDER BY {SORTS[sort]} LIMIT ? OFFSET ?", values)

    def _list_outlines(self, rest: str, values: Sequence[Any]) -> list[Entry]:
        rows = self._query(f"SELECT outline FROM candidates WHERE {rest}", values)
        return self.entries.keep(text for (text,) in rows)

    def thin_entries(self, most: int) -> list[Entry]:
        """At most so many outlines and the champions: all of few candidates, else evenly."""
        step = max(1, -(-self.head.proposed // most))
        kept = self._list_outlines(
            "campaign = ? AND number % ? = 0 ORDER BY number", [self.campaign, step]
        )
        champions = self.entries.find(each.candidate for each in self.head.crowned)
        found = {entry.candidate: entry for entry in (*kept, *champions.values())}
        return sorted(found.values(), key=lambda entry: entry.number)

    def list_children(self, candidate: str) -> list[Entry]:
        """Those that have it for a parent."""
        return self._list_outlines(
            "campaign = ? AND instr(parents, ?) > 0 ORDER BY number", [self.campaign, candidate]
        )

    def find_neighbours(self, entry: Entry) -> tuple[Entry | None, Entry | None]:
        """Who was proposed before it and after it."""
        found = []
        for sign, order in (("<", "DESC"), (">", "ASC")):
            rest = f"campaign = ? AND number {sign} ? ORDER BY number {order} LIMIT 1"
            found.append(next(iter(self._list_outlines(rest, [self.campaign, entry.number])), None))
        return found[0], found[1]

    def list_unconfirmed(self, above: float, most: int) -> tuple[list[Entry], int]:
        """Those that only a screening looked at, and which it estimates above a speed-up: the
        highest, and how many there are."""
        where = "campaign = ? AND grade = ? AND figure < ?"
        values = [self.campaign, ESTIMATED, -above]
        (count,) = self._query(f"SELECT count(*) FROM candidates WHERE {where}", values)[0]
        rest = f"{where} ORDER BY figure, number LIMIT ?"
        return self._list_outlines(rest, [*values, most]), int(count)

    def list_families(self) -> list[FamilyRow]:
        """Every family, the one with the best candidate first."""
        rows = self._query(
            "SELECT family, proposed, passed, candidate FROM ("
            " SELECT family, candidate, grade, figure, count(*) OVER mine AS proposed,"
            " sum(grade < ?) OVER mine AS passed,"
            " row_number() OVER (PARTITION BY family ORDER BY grade, figure, number) AS rank"
            " FROM candidates WHERE campaign = ? WINDOW mine AS (PARTITION BY family)"
            ") WHERE rank = 1 ORDER BY grade, figure, family",
            [REST, self.campaign],
        )
        return [FamilyRow(*row) for row in rows]

    def list_branches(self) -> list[Branch]:
        """Who came of whom, of all candidates in the order of their numbers."""
        rows = self._query(
            "SELECT candidate, parents, grade FROM candidates WHERE campaign = ? ORDER BY number",
            [self.campaign],
        )
        with _understanding(self.campaign):
            return [
                Branch(name, tuple(parents.split()), rank < REST) for name, parents, rank in rows
            ]

    def read_whole(self, candidates: Iterable[str]) -> dict[str, Entry]:
        """Candidates with all that was recorded of them, in this order; not those that there are
        none of."""
        found = self.entries.find(candidates)
        seqs = sorted({seq for entry in found.values() for seq in entry.seqs})
        events = {event.seq: event for event in self._read(seqs)}
        with _understanding(self.campaign):
            return {
                name: fill(entry, (events[seq] for seq in entry.seqs))
                for name, entry in found.items()
            }

    def find(self, text: str) -> str:
        """The candidate that `text` names: its number, an id's unique beginning, or `@best`.

        Raises:
            UnknownNameError: no candidate matches.
            UsageError: several match, or there is no best one.
        """
        if text == BEST:
            return self._find_best()
        where, values = "campaign = ? AND candidate = ?", [self.campaign, text]
        found = self._list_names(where, values)
        if not found and text.isdecimal():
            found = self._list_names("campaign = ? AND number = ?", [self.campaign, _number(text)])
        if not found and text:
            where = "campaign = ? AND candidate >= ? AND candidate < ?"
            found = self._list_names(where, [self.campaign, *_begins(text)])
        known = [] if found else self._list_numbers()
        return the_only(f"candidate of campaign {self.campaign}", text, found, known)

    def _find_best(self) -> str:
        if self.head.champion is None:
            leads = self.head.leader
            told = f": #{leads.number} leads by modelled time" if leads else ""
            raise UsageError(
                f"campaign {self.campaign} has no verified winner",
                hint=f"name a candidate by its number or the beginning of its id{told}",
            )
        return self.head.champion

    def _list_names(self, where: str, values: Sequence[Any]) -> list[str]:
        rows = self._query(f"SELECT candidate FROM candidates WHERE {where} LIMIT 9", values)
        return [str(name) for (name,) in rows]

    def _list_numbers(self) -> list[str]:
        text = "SELECT number FROM candidates WHERE campaign = ? ORDER BY number LIMIT ?"
        return [str(number) for (number,) in self._query(text, [self.campaign, _MOST_SUGGESTED])]

    def count_calls(self) -> int:
        """How many questions were asked of models."""
        # They have the numbers from 1 on: the last one is found at once.
        text = "SELECT max(number) FROM calls WHERE campaign = ?"
        return int(self._query(text, [self.campaign])[0][0] or 0)

    def list_calls(
        self, skip: int = 0, most: int = -1, place: Place | None = None
    ) -> list[CallRow]:
        """Calls of models in the order in which they were first asked.

        Args:
            place: round and slot, of which alone they are.
        """
        step = 0 if place is None else self.number_of_step(place) or 0
        at = "number > ?" if place is None else "step = ?"
        rows = self._query(
            f"SELECT row FROM calls WHERE campaign = ? AND {at} ORDER BY number LIMIT ?",
            [self.campaign, skip if place is None else step, most],
        )
        with _understanding(self.campaign):
            return [read_call(text) for (text,) in rows]

    def find_call(self, text: str) -> Call:
        """The call that `text` names, see `transcript.name_call`, with all that was recorded."""
        columns = "SELECT CAST(number AS TEXT), place, call FROM calls WHERE campaign = ?"
        rows: list[tuple[Any, ...]] = []
        if text.isdecimal():
            rows = self._query(f"{columns} AND number = ?", [self.campaign, _number(text)])
        elif text:
            for which, values in (("place = ?", [text]), ("call >= ? AND call < ?", _begins(text))):
                rows += self._query(f"{columns} AND {which} LIMIT 9", [self.campaign, *values])
        if not rows:
            rows = self._query(
                f"{columns} ORDER BY number LIMIT ?", [self.campaign, _MOST_SUGGESTED]
            )
        with _understanding(self.campaign):
            key = name_call(rows, text)
            ((number,),) = self._query(
                "SELECT step FROM calls WHERE campaign = ? AND call = ?", [self.campaign, key]
            )
            found = (call for step in self.list_steps(number - 1, 1) for call in step.calls)
            return {call.requested.call: call for call in found}[key]

    def share_spending(self) -> list[Share]:
        """The spending by model and purpose, the one with most tokens first."""
        if self._shares is None:
            self._shares = self._share_spending()
        return self._shares

    def _share_spending(self) -> list[Share]:
        rows = self._query(
            "SELECT model, purpose, count(*), sum(failures), sum(tokens),"
            " CASE WHEN count(*) = count(usd) THEN sum(usd) END, max(is_estimated), sum(seconds)"
            " FROM calls WHERE campaign = ? GROUP BY model, purpose"
            " ORDER BY sum(tokens) DESC, model, purpose",
            [self.campaign],
        )
        return [
            Share(model, purpose, calls, failures, tokens, usd, bool(is_estimated), seconds)
            for model, purpose, calls, failures, tokens, usd, is_estimated, seconds in rows
        ]

    def count_steps(self) -> int:
        """How many places of the workflow something happened at."""
        text = "SELECT max(number) FROM steps WHERE campaign = ?"
        return int(self._query(text, [self.campaign])[0][0] or 0)

    def list_places(self, slot: str) -> list[tuple[int, Place]]:
        """The places of this slot of all rounds, each with which of all places it is."""
        rows = self._query(
            "SELECT number, place FROM steps WHERE campaign = ? AND place LIKE ? ORDER BY number",
            [self.campaign, f"%/{slot}"],
        )
        return [(int(number), Place.parse(place)) for number, place in rows]

    def number_of_step(self, place: Place) -> int | None:
        """Which of all places this one is, from 1 on."""
        text = "SELECT number FROM steps WHERE campaign = ? AND place = ? LIMIT 1"
        rows = self._query(text, [self.campaign, str(place)])
        return int(rows[0][0]) if rows else None

    def list_steps(self, skip: int = 0, most: int = -1) -> list[Step]:
        """Places of the workflow with all that happened there, in the order they began."""
        rows = self._query(
            "SELECT number, place, seqs FROM steps WHERE campaign = ? AND number > ?"
            " ORDER BY number LIMIT ?",
            [self.campaign, skip, most],
        )
        with _understanding(self.campaign):
            seqs = sorted({int(seq) for _, _, text in rows for seq in json.loads(text)})
        told = transcribe(self._read(seqs))
        calls = self._query(
            "SELECT call, number FROM calls WHERE campaign = ? AND step BETWEEN ? AND ?",
            [self.campaign, rows[0][0] if rows else 0, rows[-1][0] if rows else -1],
        )
        with _understanding(self.campaign):
            for key, number in calls:
                told.calls[key].number = number
            found = [told.steps[Place.parse(place)] for _, place, _ in rows]
        for step, (number, _, _) in zip(found, rows, strict=True):
            step.number = number
        return found


def _number(text: str) -> int:
    """As a number that SQLite can hold; beyond those there is none."""
    return int(text) if len(text) < 18 else -1


def _begins(text: str) -> list[str]:
    """From where and up to where names begin so."""
    return [text, text + chr(0x10FFFF)]


def _read_head(query: Query, campaign: str, started: CampaignStarted) -> Head | None:
    rows = query(
        "SELECT head FROM lines WHERE campaign = ? AND form = ? AND seq ="
        " (SELECT max(seq) FROM events WHERE campaign = lines.campaign)",
        [campaign, FORM],
    )
    try:
        return read_head(rows[0][0], started) if rows else None
    except (ValueError, TypeError, RecursionError):
        return None  # damaged: events have it all
