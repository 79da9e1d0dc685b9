# SPDX-License-Identifier: Apache-2.0
"""What stands beside the events of a campaign so that nobody has to read them all: its line and
head, a row of each candidate, of each call of a model, and of each place of its workflow.

Events stay the truth: all of it is what their fold tells, written in the transaction of the event
that changed it, and `reindex` writes it anew. `sheet.py` reads it. The same tables are made in
memory of a campaign that an earlier version recorded, and of one whose events are made fit to leave
the machine.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable

from pydantic import TypeAdapter

from ..errors import StorageError
from .documents import line_document
from .events import Event
from .fold import Entry
from .head import head_of, write_head
from .history import History
from .outline import outline, write_outline
from .records import Verdict
from .transcript import CallRow, Step, Transcript

FORM = 2
"""Of what stands here: of another form it is not read."""

LINES = """
CREATE TABLE lines (
    campaign TEXT PRIMARY KEY NOT NULL REFERENCES campaigns (id),
    seq INTEGER NOT NULL,
    form INTEGER NOT NULL,
    document TEXT NOT NULL
);
"""

ROWS = """
ALTER TABLE lines ADD COLUMN head TEXT NOT NULL DEFAULT '';
CREATE TABLE candidates (
    campaign TEXT NOT NULL REFERENCES campaigns (id),
    candidate TEXT NOT NULL,
    number INTEGER NOT NULL,
    status TEXT NOT NULL,
    family TEXT NOT NULL,
    grade INTEGER NOT NULL,
    figure REAL NOT NULL,
    parents TEXT NOT NULL,
    outline TEXT NOT NULL,
    PRIMARY KEY (campaign, candidate)
);
CREATE INDEX candidates_by_number ON candidates (campaign, number);
CREATE INDEX candidates_by_status ON candidates (campaign, status, number);
CREATE INDEX candidates_by_family ON candidates (campaign, family, number);
CREATE INDEX candidates_by_grade ON candidates (campaign, grade, figure, number);
CREATE TABLE steps (
    campaign TEXT NOT NULL REFERENCES campaigns (id),
    number INTEGER NOT NULL,
    place TEXT NOT NULL,
    seqs TEXT NOT NULL,
    PRIMARY KEY (campaign, number)
);
CREATE INDEX steps_by_place ON steps (campaign, place);
CREATE TABLE calls (
    campaign TEXT NOT NULL REFERENCES campaigns (id),
    number INTEGER NOT NULL,
    call TEXT NOT NULL,
    step INTEGER NOT NULL,
    place TEXT NOT NULL,
    model TEXT NOT NULL,
    purpose TEXT NOT NULL,
    failures INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    usd REAL,
    is_estimated INTEGER NOT NULL,
    seconds REAL NOT NULL,
    row TEXT NOT NULL,
    PRIMARY KEY (campaign, number)
);
CREATE INDEX calls_by_step ON calls (campaign, step);
CREATE INDEX calls_by_key ON calls (campaign, call);
CREATE INDEX calls_by_place ON calls (campaign, place);
CREATE INDEX calls_by_share ON calls
    (campaign, model, purpose, failures, tokens, usd, is_estimated, seconds);
"""

TABLES = ("candidates", "steps", "calls")
"""Besides the lines."""

MEMORY = f"CREATE TABLE campaigns (id TEXT PRIMARY KEY NOT NULL);{LINES}{ROWS}"
"""What a sheet is read from that is kept nowhere."""

Read = Callable[[str, int], list[Event]]
"""The events of a campaign after a `seq`."""

_CALL = TypeAdapter(CallRow)

CREDITED, ESTIMATED, MODELLED, PASSED, REST = range(5)
"""Grades: what is credited ranks first, then what screenings estimate, what is only modelled, what
passed without a figure, and all else."""


def grade(verdict: Verdict | None) -> tuple[int, float]:
    """What a candidate is ranked by: its grade and, within it, the figure, the smaller the
    better."""
    if verdict is None or not verdict.status.is_pass:
        return REST, 0.0
    if verdict.credited is not None:
        return CREDITED, -verdict.credited
    if verdict.screen_estimate:
        return ESTIMATED, -verdict.screen_estimate.median
    return (MODELLED, verdict.modelled_us) if verdict.modelled_us else (PASSED, 0.0)


def write_index(connection: sqlite3.Connection, history: History, transcript: Transcript) -> None:
    """Writes all that stands beside a campaign's events, in place of what there was."""
    delete_rows(connection, history.campaign)
    write_line(connection, history)
    _write_candidates(connection, history.campaign, history.entries.values())
    _write_steps(connection, history.campaign, transcript.steps.values())


def delete_rows(connection: sqlite3.Connection, campaign: str) -> None:
    """Takes away what stands beside a campaign's events."""
    for table in ("lines", *TABLES):
        connection.execute(f"DELETE FROM {table} WHERE campaign = ?", (campaign,))


def write_line(connection: sqlite3.Connection, history: History) -> None:
    """Puts the line and the head of a campaign in place of those that there were."""
    document, head = json.dumps(line_document(history)), write_head(head_of(history))
    connection.execute(
        "INSERT OR REPLACE INTO lines (campaign, seq, form, document, head) VALUES (?, ?, ?, ?, ?)",
        (history.campaign, history.last_seq, FORM, document, head),
    )


def _write_candidates(
    connection: sqlite3.Connection, campaign: str, entries: Iterable[Entry]
) -> None:
    connection.executemany(
        "INSERT OR REPLACE INTO candidates VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                campaign,
                entry.candidate,
                entry.number,
                entry.verdict.status.value if entry.verdict else "",
                entry.family,
                *grade(entry.verdict),
                " ".join(entry.parents),
                write_outline(outline(entry)),
            )
            for entry in entries
        ),
    )


def _write_steps(connection: sqlite3.Connection, campaign: str, steps: Iterable[Step]) -> None:
    for step in steps:
        connection.execute(
            "INSERT OR REPLACE INTO steps VALUES (?, ?, ?, ?)",
            (campaign, step.number, str(step.place), json.dumps(step.seqs)),
        )
        connection.executemany(
            "INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                (
                    campaign,
                    row.number,
                    row.call,
                    step.number,
                    str(row.place),
                    row.model,
                    row.purpose,
                    row.failures,
                    row.tokens,
                    row.usd,
                    row.is_estimated,
                    row.seconds,
                    _CALL.dump_json(row).decode(),
                )
                for row in (call.row for call in step.calls)
            ),
        )


def read_call(text: str) -> CallRow:
    """A call's row as it was written here. ValueError where it is none."""
    return _CALL.validate_json(text)


class Told:
    """What the events of one campaign tell so far, whether or not they make sense."""

    def __init__(self) -> None:
        self.history, self.transcript = History(), Transcript()
        self.makes_sense = True
        """Where not, it is for the campaign's readers to say so."""

    @property
    def last_seq(self) -> int:
        """Of the last event that was taken in."""
        return self.history.last_seq

    def take(self, events: Iterable[Event]) -> None:
        """Takes in what was recorded since."""
        try:
            for event in events:
                self.history.apply(event)
                self.transcript.apply(event)
            _ = self.history.started
        except StorageError:
            self.makes_sense = False

    def write_changes(self, connection: sqlite3.Connection) -> None:
        """Writes what changed since this was done last."""
        history, transcript = self.history, self.transcript
        write_line(connection, history)
        changed = (history.entries[name] for name in history.touched)
        _write_candidates(connection, history.campaign, changed)
        places = (transcript.steps[place] for place in transcript.touched)
        _write_steps(connection, history.campaign, places)
        self.settle()

    def settle(self) -> None:
        """What there is so far is written."""
        self.history.touched.clear()
        self.transcript.touched.clear()


class IndexKeeper:
    """Keeps the index of the campaigns that one process writes to."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._told: dict[str, Told] = {}

    def begin(self, campaign: str) -> None:
        """A campaign that has no event yet."""
        self._told[campaign] = Told()

    def catch_up(self, campaign: str, is_indexed: Callable[[], bool]) -> None:
        """Reads what there is of a campaign, before the transaction that adds to it.

        Args:
            is_indexed: whether what there is stands in the index already.
        """
        if campaign not in self._told:
            told = self._told[campaign] = Told()
            told.take(self._read(campaign, 0))
            if is_indexed():
                told.settle()

    def take(self, connection: sqlite3.Connection, event: Event, before: int) -> None:
        """Writes what an event changes, within its transaction.

        Args:
            before: the `seq` of the campaign's event before it; 0: it is the first one.
        """
        told = self._told[event.campaign]
        if not told.makes_sense:
            return
        is_next = before == told.last_seq
        told.take([event] if is_next else self._read(event.campaign, told.last_seq))
        if told.makes_sense:
            told.write_changes(connection)
        else:
            delete_rows(connection, event.campaign)

    def forget(self, campaign: str) -> None:
        """What was recorded of it last was not kept."""
        self._told.pop(campaign, None)
