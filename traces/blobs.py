# SPDX-License-Identifier: Apache-2.0
"""Content-addressed files: sources and logs, each under the SHA-256 of its bytes.

Knows how a blob is written so that it is whole or absent, and verified when it is read. Knows
nothing of what a blob means or of the events that name it.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..errors import StorageError, UnknownNameError
from .faults import storage_fault

_SHA = re.compile(r"[0-9a-f]{64}")
_DRAFT = ".new-"


class Blobs:
    """The folder of blobs of one home; safe to use from several threads and processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, sha: str) -> Path:
        """Where the blob `sha` lies, whether it is there or not."""
        if not _SHA.fullmatch(sha):
            raise StorageError(
                f"'{sha[:80]}' is not the name of a blob: 64 hexadecimal digits are",
                hint="the name of a blob is the SHA-256 of its bytes",
            )
        return self.folder / sha[:2] / sha[2:]

    def put(self, content: bytes | str) -> str:
        """Keeps the bytes and gives their SHA-256; they are on the disk when it returns.

        Raises:
            StorageError: the folder cannot be written; no half-written blob is left behind.
        """
        data = content.encode() if isinstance(content, str) else content
        sha = hashlib.sha256(data).hexdigest()
        path = self.path(sha)
        try:
            if not path.exists() or path.read_bytes() != data:
                _write_whole(path, data)
        except OSError as error:
            raise storage_fault("a blob could not be written", path, error) from error
        return sha

    def get(self, sha: str) -> bytes:
        """The bytes of a blob, after checking that they still are what their name says.

        Raises:
            UnknownNameError: there is no such blob.
            StorageError: it cannot be read, or its bytes have changed.
        """
        path = self.path(sha)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise UnknownNameError(
                f"there is no blob '{sha[:12]}…' in {self.folder}",
                hint="was the home folder copied without its blobs?",
            ) from None
        except OSError as error:
            raise storage_fault("a blob could not be read", path, error) from error
        if hashlib.sha256(data).hexdigest() != sha:
            raise StorageError(
                f"the blob {path} was changed after it was written: its SHA-256 no longer matches",
                hint="restore the file from a copy; the events themselves are not affected",
            )
        return data

    def list_all(self) -> Iterator[tuple[str, Path]]:
        """The names of all blobs, each with where it lies."""
        for path in self.folder.glob("??/*"):
            if _SHA.fullmatch(path.parent.name + path.name):
                yield path.parent.name + path.name, path

    def list_drafts(self) -> Iterator[Path]:
        """What a process that died had begun to write."""
        return self.folder.glob(f"??/{_DRAFT}*")


def _write_whole(path: Path, data: bytes) -> None:
    """Writes beside the target, syncs, renames: a reader sees all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_DRAFT)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Makes the folder's entries durable: a rename is lost in a power cut without it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
