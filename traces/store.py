# SPDX-License-Identifier: Apache-2.0
"""The store: one SQLite file per home, an append-only table of events, and blobs beside it.

Knows how events are kept durably and read while another process writes. What they mean together is
derived in `history.py`.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from ..errors import StorageError, StorageRefusedError, UnknownNameError, UsageError
from . import lease
from .blobs import Blobs
from .database import (
    FILE_NAME,
    WITH_LINES,
    WITH_ROWS,
    Database,
    connect_reader,
    connect_writer,
    delete_events,
    parse_event,
    version_of,
)
from .events import CampaignStarted, Event, Payload
from .faults import storage_faults
from .history import derive, the_only
from .index import IndexKeeper, write_index
from .lines import Line, list_stale, read_line, read_lines
from .names import LAST, new_id
from .sheet import Sheet
from .transcript import transcribe

_ID = re.compile(r"[\w.-]{1,100}", re.ASCII)
"""What an id may look like where it becomes the name of a file."""


class Store:
    """The record of all campaigns of one home.

    What everybody rests on, and `tests/traces/test_every_store.py` holds every one to:

    - Events are only ever added, and taken away with their whole campaign alone. One is durable
      when `append` returns; `seq` grows over the whole home, and a campaign's events come back in
      that order, equal to what was written, the first of them its start. `after` gives what was
      added since, and nothing else.
    - A write that is refused leaves nothing behind, and everything before it stays.
    - A blob is named by the SHA-256 of its bytes, and given only while it still is what its name
      says. It is stored before the event that names it.
    - Threads wait for each other. Several processes may read and write one home at the same time:
      a reader sees a prefix of what was written, which never shrinks.
    - One process at a time holds a campaign's lease, and it vanishes with the process.
    - Who opened it read-only changes nothing, and what an earlier version wrote can be read.
    """

    def __init__(
        self,
        home: Path,
        connection: sqlite3.Connection,
        *,
        is_read_only: bool = False,
        is_immutable: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.home = home
        self.path = home / FILE_NAME
        self.is_immutable = is_immutable
        """Read from a read-only folder: later writes by others are not seen."""
        self._is_read_only = is_read_only
        self._connection = connection
        self._clock = clock
        self._db = Database(connection, self.path)
        self._blobs = Blobs(home / "blobs")
        self._index = IndexKeeper(self.events)

    @classmethod
    def open(
        cls, home: Path, *, read_only: bool = False, clock: Callable[[], float] = time.time
    ) -> Self:
        """Opens the store of `home`, and makes it unless `read_only`.

        Raises:
            StorageError: it cannot be made, opened or understood; the hint has the remedy.
        """
        home = Path(os.path.abspath(home))
        if read_only:
            connection, is_immutable = connect_reader(home / FILE_NAME)
            return cls(home, connection, is_read_only=True, is_immutable=is_immutable, clock=clock)
        return cls(home, connect_writer(home / FILE_NAME), clock=clock)

    def close(self) -> None:
        """Lets go of the file. Closing twice is harmless."""
        with self._db.lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def create(self, started: CampaignStarted) -> str:
        """Begins a campaign with its first event and gives its id, which sorts by time."""
        with self._db.writing("the campaign could not be created") as connection:
            now = self._clock()
            campaign = new_id(now)
            connection.execute("INSERT INTO campaigns (id, at) VALUES (?, ?)", (campaign, now))
            self._index.begin(campaign)
            self._insert(connection, campaign, now, started)
        return campaign

    def append(self, campaign: str, payload: Payload) -> Event:
        """Records one event; it is on the disk when this returns.

        Raises:
            UnknownNameError: there is no such campaign.
            StorageError: nothing was recorded; everything recorded before is kept.
        """
        with self._db.lock:
            with self._db.reading():
                self._require(campaign)
                self._index.catch_up(campaign, lambda: campaign not in self.stale())
            try:
                with self._db.writing("the event could not be recorded") as connection:
                    return self._insert(connection, campaign, self._clock(), payload)
            except BaseException:
                self._index.forget(campaign)
                raise

    def adopt(self, campaign: str, events: Sequence[Event]) -> None:
        """Takes in a whole campaign of another store, under its id and with its times.

        Raises:
            UsageError: there is one of this id.
            StorageError: its events make no sense, or cannot be written; nothing was taken in.
        """
        self._check_id(campaign)
        if campaign in self.campaigns():
            raise UsageError(
                f"campaign {campaign} is in {self.home} already", hint="take it into another home"
            )
        derive([event.model_copy(update={"campaign": campaign}) for event in events])
        with self._db.writing("the campaign could not be taken in") as connection:
            at = events[0].at
            connection.execute("INSERT INTO campaigns (id, at) VALUES (?, ?)", (campaign, at))
            kept = [self._put(connection, campaign, e.at, e.payload) for e in events]
            write_index(connection, derive(kept), transcribe(kept))

    def delete(self, campaign: str) -> int:
        """Takes a whole campaign away, with all that this version keeps beside it, and tells how
        many events it had. Its blobs stay until they are collected: others may share them.

        Raises:
            UsageError: a process runs it.
            StorageError: nothing was taken away.
        """
        with (
            self.lease(campaign),
            self._db.writing("the campaign could not be deleted") as connection,
        ):
            count = delete_events(connection, campaign)
            self._index.forget(campaign)
        for path in (self.cursor_path(campaign), self._lease_path(campaign)):
            with suppress(OSError):
                path.unlink(missing_ok=True)
        return count

    def payloads(self, campaign: str) -> Iterator[str]:
        """The payload of each event as it is stored, understood or not."""
        with self._db.reading():
            self._require(campaign)
            rows = self._connection.execute(
                "SELECT payload FROM events WHERE campaign = ? ORDER BY seq", (campaign,)
            )
            for (text,) in rows:
                yield str(text)

    def vacuum(self) -> None:
        """Gives the room of what was deleted back to the disk.

        Raises:
            StorageError: another process is writing, or there is no room for a copy.
        """
        with self._db.lock, storage_faults("the store could not be made smaller", self.path):
            self._connection.execute("VACUUM")
            # What it wrote stands in the log until then.
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @property
    def blobs(self) -> Blobs:
        """The folder of sources, prompts and replies."""
        return self._blobs

    def events(self, campaign: str, after: int = 0) -> list[Event]:
        """The events of a campaign whose `seq` is above `after`, in order.

        Raises:
            UnknownNameError: there is no such campaign.
            StorageError: a record was written by a version that this one does not understand.
        """
        with self._db.reading():
            self._require(campaign)
            rows = self._connection.execute(
                "SELECT seq, at, payload FROM events WHERE campaign = ? AND seq > ? ORDER BY seq",
                (campaign, after),
            ).fetchall()
        return [parse_event(self.path, campaign, *row) for row in rows]

    def last_seq(self, campaign: str | None = None) -> int:
        """The `seq` of the newest event, of one campaign or of all."""
        return self._figure("max(seq)", campaign, 0)

    def count(self, campaign: str | None = None, after: int = 0) -> int:
        """How many events have a `seq` above `after`, in one campaign or in all."""
        return self._figure("count(*)", campaign, after)

    def _figure(self, what: str, campaign: str | None, after: int) -> int:
        query = f"SELECT {what} FROM events WHERE seq > ?"
        with self._db.reading():
            if campaign is None:
                row = self._connection.execute(query, (after,)).fetchone()
            else:
                self._require(campaign)
                row = self._connection.execute(
                    f"{query} AND campaign = ?", (after, campaign)
                ).fetchone()
        return int(row[0] or 0)

    def campaigns(self) -> list[str]:
        """The ids of all campaigns, newest first."""
        with self._db.reading():
            rows = self._connection.execute("SELECT id FROM campaigns ORDER BY rowid DESC")
            return [str(row[0]) for row in rows]

    def starts(self) -> Iterator[tuple[str, CampaignStarted]]:
        """Every campaign with its first event, oldest first; others' formats are passed over."""
        with self._db.reading():
            rows = self._connection.execute(
                "SELECT campaign, payload FROM events WHERE seq IN "
                "(SELECT min(seq) FROM events GROUP BY campaign) ORDER BY seq"
            ).fetchall()
        for campaign, text in rows:
            with suppress(ValidationError):
                yield str(campaign), CampaignStarted.model_validate_json(text)

    def lines(self) -> list[Line]:
        """Every campaign in a line, newest first.

        Raises:
            StorageError: the events of one that has no line cannot be understood.
        """
        with self._db.reading():
            has_table = version_of(self._connection) >= WITH_LINES
            return read_lines(self._connection, self.events, has_table=has_table)

    def line(self, campaign: str) -> Line:
        """One campaign in a line.

        Raises:
            UnknownNameError: there is no such campaign.
            StorageError: it has no line, and its events cannot be understood.
        """
        with self._db.reading():
            self._require(campaign)
            has_table = version_of(self._connection) >= WITH_LINES
            return read_line(self._connection, self.events, campaign, has_table=has_table)

    def stale(self) -> list[str]:
        """The campaigns whose index is not up to date: they are told from their events."""
        with self._db.reading():
            if version_of(self._connection) < WITH_ROWS:
                return self.campaigns()
            return list_stale(self._connection)

    def rebuild_index(self, campaigns: Iterable[str]) -> Iterator[str]:
        """Writes anew what stands beside the events of these; gives each as it is done.

        Raises:
            StorageError: the events of one cannot be understood.
        """
        for campaign in campaigns:
            events = self.events(campaign)
            history, transcript = derive(events), transcribe(events)
            with self._db.writing("the index could not be written") as connection:
                # Whoever has added to it meanwhile has written its index.
                if self.last_seq(campaign) == history.last_seq:
                    write_index(connection, history, transcript)
            yield campaign

    @contextmanager
    def sheet(self, campaign: str, fold: Callable[[str], Sheet] | None = None) -> Iterator[Sheet]:
        """A campaign as pages read it, as it is at this moment.

        Args:
            fold: makes it from the events of one that has no index; None: they are read anew.

        Raises:
            UnknownNameError: there is no such campaign.
            StorageError: its events make no sense, or those of another version do not.
        """
        with self._db.standing_still():
            self._require(campaign)
            found = self._find_sheet(campaign)
            if found is None:
                found = fold(campaign) if fold else Sheet.of_events(self.events(campaign))
            yield found

    def _find_sheet(self, campaign: str) -> Sheet | None:
        if version_of(self._connection) < WITH_ROWS:
            return None
        row = self._db.query(
            "SELECT seq, at, payload FROM events WHERE campaign = ? ORDER BY seq LIMIT 1",
            [campaign],
        )
        started = parse_event(self.path, campaign, *row[0]).payload if row else None
        if not isinstance(started, CampaignStarted):
            return None
        read = partial(self._events_at, campaign)
        return Sheet.of_store(self._db.query, campaign, started, read)

    def _events_at(self, campaign: str, seqs: Sequence[int]) -> list[Event]:
        rows: list[tuple[Any, ...]] = []
        for at in range(0, len(seqs), 500):
            some = seqs[at : at + 500]
            marks = ",".join("?" * len(some))
            rows += self._db.query(
                f"SELECT seq, at, payload FROM events WHERE seq IN ({marks}) ORDER BY seq", some
            )
        return [parse_event(self.path, campaign, *row) for row in rows]

    def resolve(self, text: str) -> str:
        """The campaign that `text` names: an id, its unique beginning or end, or `@last`.

        Raises:
            UnknownNameError: no campaign matches.
            UsageError: several match; the hint lists them.
        """
        known = self.campaigns()
        if text == LAST:
            if not known:
                raise UnknownNameError(
                    f"there is no campaign in {self.home}",
                    hint="`kernelwright run PROBLEM` makes the first one",
                )
            return known[0]
        if text in known:
            return text
        found = [c for c in known if text and (c.startswith(text) or c.endswith(text))]
        return the_only("campaign", text, found, known)

    def resolve_candidate(self, campaign: str, text: str) -> str:
        """The candidate that `text` names: its number, an id's unique beginning, or `@best`."""
        with self.sheet(campaign) as sheet:
            return sheet.find(text)

    def put_blob(self, content: bytes | str) -> str:
        """Keeps a source or a log and gives its SHA-256."""
        self._check_writable("the blob could not be written")
        return self._blobs.put(content)

    def get_blob(self, sha: str) -> bytes:
        """The bytes of a blob, verified against their name."""
        return self._blobs.get(sha)

    def lease(self, campaign: str) -> AbstractContextManager[None]:
        """Holds the right to run the campaign; it vanishes with the process however that dies.

        Raises:
            UsageError: another process runs it; the message says which.
        """
        with self._db.reading():
            self._require(campaign)
        self._check_writable("the lease could not be taken")
        return lease.hold(self._lease_path(campaign), campaign)

    def cursor_path(self, campaign: str) -> Path:
        """Where a workflow keeps where it stands; everything in it can be had from the events."""
        self._check_id(campaign)
        return self.home / "cursors" / f"{campaign}.sqlite"

    def is_running(self, campaign: str) -> bool:
        """Whether some process holds the campaign's lease now."""
        path = self._lease_path(campaign)
        with storage_faults("the lease could not be looked at", path):
            return lease.is_held(path)

    def _lease_path(self, campaign: str) -> Path:
        self._check_id(campaign)
        return self.home / "leases" / f"{campaign}.lock"

    def _check_writable(self, what: str) -> None:
        """Of files beside the database, which refuses by itself."""
        if self._is_read_only:
            raise StorageRefusedError(
                f"{what}: {self.home} was opened to be read", hint="open it for writing"
            )

    def _check_id(self, campaign: str) -> None:
        if not _ID.fullmatch(campaign):
            raise StorageError(
                f"'{campaign[:80]}' in {self.path} is not the id of a campaign",
                hint="the store was changed by something else than kernelwright",
            )

    def _insert(
        self, connection: sqlite3.Connection, campaign: str, at: float, payload: Payload
    ) -> Event:
        before = self.last_seq(campaign)
        event = self._put(connection, campaign, at, payload)
        self._index.take(connection, event, before)
        return event

    def _put(
        self, connection: sqlite3.Connection, campaign: str, at: float, payload: Payload
    ) -> Event:
        try:
            text = payload.model_dump_json()
        except PydanticSerializationError as error:
            raise StorageError(
                f"the event {payload.kind} cannot be written as JSON: {error}",
                hint="it holds half of a Unicode character; text of a model must be cleaned first",
            ) from error
        cursor = connection.execute(
            "INSERT INTO events (campaign, at, kind, payload) VALUES (?, ?, ?, ?)",
            (campaign, at, payload.kind, text),
        )
        return Event(seq=cursor.lastrowid or 0, campaign=campaign, at=at, payload=payload)

    def _require(self, campaign: str) -> None:
        found = self._connection.execute("SELECT 1 FROM campaigns WHERE id = ?", (campaign,))
        if found.fetchone() is None:
            raise UnknownNameError.for_name("campaign", campaign, self.campaigns())
