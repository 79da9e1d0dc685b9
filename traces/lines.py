# SPDX-License-Identifier: Apache-2.0
"""A line for each campaign beside its events, so that lists need not read those.

Events stay the truth: a line is what their fold tells (`documents.line_document`), written in the
transaction of the event that changed it, with that event's `seq`. One that is not up to date, of
another form, or missing is told by the fold.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from ..errors import StorageError
from .documents import line_document
from .events import Event
from .history import History, derive
from .states import CampaignState, state_of

FORM = 1
"""Of what a line holds: of another form it is not read."""

TABLE = """
CREATE TABLE lines (
    campaign TEXT PRIMARY KEY NOT NULL REFERENCES campaigns (id),
    seq INTEGER NOT NULL,
    form INTEGER NOT NULL,
    document TEXT NOT NULL
);
"""

_READ = """
SELECT c.id, l.seq, l.form, l.document,
       (SELECT max(e.seq) FROM events AS e WHERE e.campaign = c.id)
FROM campaigns AS c LEFT JOIN lines AS l ON l.campaign = c.id ORDER BY c.rowid DESC
"""

Read = Callable[[str, int], list[Event]]
"""The events of a campaign after a `seq`."""


class Line(NamedTuple):
    """One campaign in a list."""

    campaign: str
    seq: int
    """Of its newest event."""
    document: dict[str, Any]
    """As of `documents.line_document`."""

    def state(self, *, is_running: bool) -> CampaignState:
        """What the campaign does now."""
        told = self.document
        workflow, evaluated, stopped_by = told["workflow"], told["evaluated"], told["stopped_by"]
        return state_of(self.campaign, workflow, evaluated, stopped_by, is_running=is_running)


def read_lines(connection: sqlite3.Connection, read: Read, *, has_table: bool) -> list[Line]:
    """A line of every campaign, the newest campaign first.

    Raises:
        StorageError: the events of one without an up-to-date line cannot be understood.
    """
    if not has_table:
        names = connection.execute("SELECT id FROM campaigns ORDER BY rowid DESC").fetchall()
        return [_fold_line(read(str(name), 0)) for (name,) in names]
    return [
        _parse_line(str(campaign), newest, document if (seq, form) == (newest, FORM) else "")
        or _fold_line(read(str(campaign), 0))
        for campaign, seq, form, document, newest in connection.execute(_READ).fetchall()
    ]


def _parse_line(campaign: str, seq: int, document: str) -> Line | None:
    """None where it is none, or damaged: events have it all."""
    with suppress(ValueError, TypeError):
        found = json.loads(document)
        return Line(campaign, seq, found) if isinstance(found, dict) else None
    return None


def list_stale(connection: sqlite3.Connection) -> list[str]:
    """The campaigns without a line that is up to date."""
    found = connection.execute(_READ).fetchall()
    return [str(name) for name, seq, form, _, newest in found if seq != newest or form != FORM]


def write_line(connection: sqlite3.Connection, history: History) -> None:
    """Puts the line of a campaign in place of the one that there was."""
    connection.execute(
        "INSERT OR REPLACE INTO lines (campaign, seq, form, document) VALUES (?, ?, ?, ?)",
        (history.campaign, history.last_seq, FORM, json.dumps(line_document(history))),
    )


class LineKeeper:
    """Keeps the lines of the campaigns that one process writes to."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._folds: dict[str, History | None] = {}
        """None of one whose events make no sense: it is for its readers to say so."""

    def begin(self, campaign: str) -> None:
        """A campaign that has no event yet."""
        self._folds[campaign] = History()

    def catch_up(self, campaign: str) -> None:
        """Reads what there is of a campaign, before the transaction that adds to it."""
        if campaign not in self._folds:
            self._folds[campaign] = _fold(History(), self._read(campaign, 0))

    def take(self, connection: sqlite3.Connection, event: Event, before: int) -> None:
        """Writes the line anew within the transaction of an event.

        Args:
            before: the `seq` of the campaign's event before it; 0: it is the first one.
        """
        history = self._folds[event.campaign]
        if history is None:
            return
        is_next = before == history.last_seq
        events = [event] if is_next else self._read(event.campaign, history.last_seq)
        history = self._folds[event.campaign] = _fold(history, events)
        if history is not None:
            write_line(connection, history)
        else:
            connection.execute("DELETE FROM lines WHERE campaign = ?", (event.campaign,))

    def forget(self, campaign: str) -> None:
        """What was recorded of it last was not kept."""
        self._folds.pop(campaign, None)


def _fold(history: History, events: list[Event]) -> History | None:
    try:
        for event in events:
            history.apply(event)
        _ = history.started
    except StorageError:
        return None
    return history


def _fold_line(events: list[Event]) -> Line:
    history = derive(events)
    return Line(history.campaign, history.last_seq, line_document(history))
