# SPDX-License-Identifier: Apache-2.0
"""Every campaign in a line, so that lists read no events (`index.py` keeps the lines).

One that is not up to date, of another form, or missing is told by the fold.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import suppress
from typing import Any, NamedTuple

from .documents import line_document
from .history import derive
from .index import FORM, Read
from .states import CampaignState, state_of

_READ = """
SELECT c.id, l.seq, l.form, {document},
       (SELECT max(e.seq) FROM events AS e WHERE e.campaign = c.id)
FROM campaigns AS c LEFT JOIN lines AS l ON l.campaign = c.id ORDER BY c.rowid DESC
"""


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
        return [_fold_line(read, str(name)) for (name,) in names]
    rows = connection.execute(_READ.format(document="l.document")).fetchall()
    return [
        _parse_line(str(campaign), newest, document if (seq, form) == (newest, FORM) else "")
        or _fold_line(read, str(campaign))
        for campaign, seq, form, document, newest in rows
    ]


def read_line(
    connection: sqlite3.Connection, read: Read, campaign: str, *, has_table: bool
) -> Line:
    """One campaign in a line. StorageError as of `read_lines`."""
    query = (
        "SELECT seq, document FROM lines WHERE campaign = ? AND form = ? AND seq ="
        " (SELECT max(seq) FROM events WHERE campaign = lines.campaign)"
    )
    found = connection.execute(query, (campaign, FORM)).fetchall() if has_table else []
    told = _parse_line(campaign, *found[0]) if found else None
    return told or _fold_line(read, campaign)


def _parse_line(campaign: str, seq: int, document: str) -> Line | None:
    """None where it is none, or damaged: events have it all."""
    with suppress(ValueError, TypeError):
        found = json.loads(document)
        return Line(campaign, seq, found) if isinstance(found, dict) else None
    return None


def list_stale(connection: sqlite3.Connection) -> list[str]:
    """The campaigns without a line that is up to date."""
    found = connection.execute(_READ.format(document="''")).fetchall()
    return [str(name) for name, seq, form, _, newest in found if seq != newest or form != FORM]


def _fold_line(read: Read, campaign: str) -> Line:
    history = derive(read(campaign, 0))
    return Line(history.campaign, history.last_seq, line_document(history))
