# SPDX-License-Identifier: Apache-2.0
"""Puts what SQLite and the file system say into words: what happened, where, and what to do.

Knows error codes and remedies. Knows nothing of what was being stored.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import StorageError, StorageRefusedError

_ELSEWHERE = "choose another folder with --home or $KERNELWRIGHT_HOME"

_BY_ERRNO = {
    errno.ENOSPC: "free some space on that file system; everything recorded before is kept",
    errno.EDQUOT: "free some of your quota; everything recorded before is kept",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f); everything recorded before is kept",
    errno.EROFS: f"the file system is read-only: {_ELSEWHERE}",
    errno.EACCES: f"give yourself permission to that path, or {_ELSEWHERE}",
    errno.EPERM: f"give yourself permission to that path, or {_ELSEWHERE}",
    errno.ENOTDIR: f"a file stands where a folder is needed: move it away, or {_ELSEWHERE}",
    errno.EEXIST: f"a file stands where a folder is needed: move it away, or {_ELSEWHERE}",
}

_BY_SQLITE = {
    sqlite3.SQLITE_FULL: "free some space on that file system; everything recorded before is kept",
    sqlite3.SQLITE_READONLY: f"make the folder writable, or {_ELSEWHERE}",
    sqlite3.SQLITE_CANTOPEN: f"check that the folder exists and may be written, or {_ELSEWHERE}",
    sqlite3.SQLITE_PERM: f"give yourself permission to that path, or {_ELSEWHERE}",
    sqlite3.SQLITE_BUSY: "another process holds the store for long; end it or try again",
    sqlite3.SQLITE_LOCKED: "another process holds the store for long; end it or try again",
    sqlite3.SQLITE_CORRUPT: "move it aside and restore a copy; `sqlite3 FILE .recover` saves rows",
    sqlite3.SQLITE_NOTADB: f"the file is not an SQLite database: move it aside, or {_ELSEWHERE}",
    sqlite3.SQLITE_IOERR: "the disk may be full or failing; everything recorded before is kept",
}


_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def storage_fault(
    what: str, path: Path, error: sqlite3.Error | OSError | UnicodeDecodeError
) -> StorageError:
    """The error for people: `what` happened to `path`, the system's reason, the remedy."""
    code = 0
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        hint = _BY_ERRNO.get(error.errno or 0, f"check the path, or {_ELSEWHERE}")
    elif isinstance(error, UnicodeDecodeError):
        # SQLite quotes what it found damaged, and the module cannot read the quotation.
        reason = "the file is damaged: it holds bytes that are no text where text belongs"
        code = sqlite3.SQLITE_CORRUPT
        hint = _BY_SQLITE[code]
    else:
        reason = str(error)
        # The low byte of an extended code is the primary one.
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        hint = _BY_SQLITE.get(code, f"check the file, or {_ELSEWHERE}")
    is_refused = isinstance(error, OSError) or (code in _BY_SQLITE and code not in _DAMAGED)
    kind = StorageRefusedError if is_refused else StorageError
    return kind(f"{what}: {path}: {reason}", hint=hint)


@contextmanager
def storage_faults(what: str, path: Path) -> Iterator[None]:
    """Turns any fault of SQLite or the file system inside the block into a StorageError."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        raise storage_fault(what, path, error) from error
