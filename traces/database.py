# SPDX-License-Identifier: Apache-2.0
"""How the SQLite file is made and opened: schema, journal, versions, read-only folders.

Knows the tables and their pragmas. Knows nothing of what is read from or written to them.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ..errors import NoStoreError, StorageError, StorageRefusedError
from .events import Event, payload_adapter
from .faults import storage_faults
from .index import LINES, ROWS, delete_rows

FILE_NAME = "kernelwright.sqlite"
SCHEMA_VERSION = 3
WITH_LINES, WITH_ROWS = 2, 3
"""From here on there are lines, and the whole index (index.py)."""
# "kwrt": tells our file from any other SQLite database.
APPLICATION_ID = 0x6B777274
BUSY_TIMEOUT_S = 20.0

_SCHEMA = f"""
BEGIN IMMEDIATE;
CREATE TABLE campaigns (id TEXT PRIMARY KEY NOT NULL, at REAL NOT NULL);
CREATE TABLE events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    campaign TEXT NOT NULL REFERENCES campaigns (id),
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    payload TEXT NOT NULL
);
CREATE INDEX events_of_campaign ON events (campaign, seq);
CREATE TRIGGER events_stay BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
{LINES}{ROWS}
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {SCHEMA_VERSION};
COMMIT;
"""

_MIGRATIONS = {1: LINES, 2: ROWS}
"""What makes the next version of one. Only ever added to: stores of every version are about."""


class Database:
    """A connection for the threads of one process, which wait for each other."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.lock = threading.RLock()
        self._connection = connection
        self._path = path

    def query(self, text: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of a statement that changes nothing."""
        with self.reading():
            return self._connection.execute(text, values).fetchall()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Nobody else uses the connection, and what fails is told as a fault of the store."""
        with self.lock, storage_faults("the store could not be read", self._path):
            yield

    @contextmanager
    def standing_still(self) -> Iterator[None]:
        """One state of the store for all that is read meanwhile."""
        with self.lock:
            is_mine = not self._connection.in_transaction
            with self.reading():
                if is_mine:
                    self._connection.execute("BEGIN")
            try:
                yield
            finally:
                if is_mine and self._connection.in_transaction:
                    self._connection.execute("COMMIT")

    @contextmanager
    def writing(self, what: str) -> Iterator[sqlite3.Connection]:
        """One transaction: all of it, or nothing and an error."""
        with self.lock, storage_faults(what, self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                # After a full disk SQLite may have rolled back by itself.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def connect_writer(path: Path) -> sqlite3.Connection:
    """A connection that may write; makes the folder and the schema where they are missing."""
    with storage_faults("the store could not be opened for writing", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with _hold_setup_lock(path.parent):
            connection = _connect(path.as_uri())
            try:
                _prepare(connection, path)
            except BaseException:
                connection.close()
                raise
    return connection


def connect_reader(path: Path) -> tuple[sqlite3.Connection, bool]:
    """A connection that only reads, and whether it had to take the file as unchanging.

    In a folder where SQLite may not place its shared-memory file, a store whose journal is empty is
    read as immutable; one with an unmerged journal is an error, since events would be missing.
    """
    with storage_faults("the store could not be looked for", path):
        is_there = path.exists()
    if not is_there:
        raise _no_store_error(path)
    is_immutable = False
    with storage_faults("the store could not be opened for reading", path):
        connection = _connect(path.as_uri() + "?mode=ro")
        try:
            try:
                # Somebody is about to make it, or was killed as they did.
                if _is_blank(connection):
                    raise _no_store_error(path)
                _check_version(connection, path)
            except sqlite3.OperationalError as error:
                if not _may_be_immutable(path, error):
                    raise
                connection.close()
                connection = _connect(path.as_uri() + "?mode=ro&immutable=1")
                is_immutable = True
                _check_version(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection, is_immutable


def _no_store_error(path: Path) -> NoStoreError:
    return NoStoreError(
        f"there is no store at {path}",
        hint="`kernelwright run PROBLEM` makes one; --home or $KERNELWRIGHT_HOME names another",
    )


def _connect(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    journal = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if journal != "wal":
        raise StorageRefusedError(
            f"the file system of {path} does not allow SQLite's write-ahead log",
            hint="use a local disk: name its folder with --home or $KERNELWRIGHT_HOME",
        )
    connection.execute("PRAGMA synchronous = FULL")
    if _is_blank(connection):
        connection.executescript(_SCHEMA)
    _check_version(connection, path)
    for version in range(version_of(connection), SCHEMA_VERSION):
        connection.executescript(
            f"BEGIN IMMEDIATE; {_MIGRATIONS[version]} PRAGMA user_version = {version + 1}; COMMIT;"
        )


def version_of(connection: sqlite3.Connection) -> int:
    """Of its schema."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _is_blank(connection: sqlite3.Connection) -> bool:
    version = version_of(connection)
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return bool(version == 0 and tables == 0)


def _check_version(connection: sqlite3.Connection, path: Path) -> None:
    version = version_of(connection)
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    if application != APPLICATION_ID:
        raise StorageError(
            f"{path} is not a store of kernelwright, but another SQLite database",
            hint="choose another folder with --home or $KERNELWRIGHT_HOME",
        )
    if version > SCHEMA_VERSION:
        raise StorageError(
            f"{path} has schema version {version}; this kernelwright reads up to {SCHEMA_VERSION}",
            hint="upgrade kernelwright, or choose another folder with --home",
        )


def _may_be_immutable(path: Path, error: sqlite3.OperationalError) -> bool:
    journal = path.with_name(path.name + "-wal")
    code = int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
    if code not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return False
    return not journal.exists() or journal.stat().st_size == 0


@contextmanager
def _hold_setup_lock(folder: Path) -> Iterator[None]:
    """Only one process at a time sets up the file: switching the journal knows no waiting."""
    handle = os.open(folder / ".setup.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def delete_events(connection: sqlite3.Connection, campaign: str) -> int:
    """Takes a campaign's events and its index away within a transaction of the caller's, and tells
    how many events there were. The trigger that keeps events is put aside for so long."""
    query = "SELECT sql FROM sqlite_master WHERE type = 'trigger' AND name = ?"
    (trigger,) = connection.execute(query, ("events_remain",)).fetchone()
    connection.execute("DROP TRIGGER events_remain")
    delete_rows(connection, campaign)
    count = connection.execute("DELETE FROM events WHERE campaign = ?", (campaign,)).rowcount
    connection.execute("DELETE FROM campaigns WHERE id = ?", (campaign,))
    connection.execute(trigger)
    return count


def parse_event(path: Path, campaign: str, seq: int, at: float, text: str) -> Event:
    """An event as it stands in the file. StorageError where another version wrote it."""
    try:
        payload = payload_adapter.validate_json(text)
        return Event(seq=seq, campaign=campaign, at=at, payload=payload)
    except ValidationError as error:
        raise StorageError(
            f"event {seq} of campaign {campaign} in {path} cannot be understood: "
            f"{error.errors()[0]['msg']}",
            hint="it was written by another version of kernelwright; read it with that one",
        ) from error
