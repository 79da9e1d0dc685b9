# SPDX-License-Identifier: Apache-2.0
"""One process at a time on a device, and devices that are kept out of use.

A lease is an advisory lock on a small file of the cache folder; the kernel drops it however its
holder dies. A device that hung or failed goes into quarantine: a file beside the lock, with the
reason. It comes out when a probe in a fresh process finds it well. Processes that do not ask here
(other users, other programs) are seen through NVML.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from ....errors import PrerequisiteError, StorageError
from .health import Health

_PAUSE_S = 0.05
_PATIENCE_S = 0.5
"""Whoever asks for the holder has the lock for a moment."""

Probe = Callable[[str], Health]
"""Tries the device of this uuid."""


@dataclass(frozen=True)
class Quarantine:
    """Why a device is out of use."""

    reason: str
    since: float
    """Unix time."""
    by: str
    """The process that found it."""


@dataclass(frozen=True)
class Lease:
    """A device that is ours while the block runs."""

    uuid: str
    _folder: Path

    def quarantine(self, reason: str) -> None:
        """Keeps the device out of use from now on, for everybody who asks here."""
        note = Quarantine(reason, time.time(), _me())
        place = _note(self._folder, self.uuid)
        beside = place.with_suffix(f".{os.getpid()}")
        beside.write_text(json.dumps(asdict(note)))
        os.replace(beside, place)

    def release(self) -> None:
        """Takes the device out of quarantine: a probe has found it well."""
        _note(self._folder, self.uuid).unlink(missing_ok=True)

    def recover(self, probe: Probe, why: str) -> Health:
        """After a hang or a failure: probes the device, and puts it into quarantine if need be."""
        health = probe(self.uuid)
        if not health.is_well:
            self.quarantine(f"{why}; {health.reason}")
        return health


@dataclass(frozen=True)
class DeviceBook:
    """Who holds which device, and which are out of use, for everybody of one cache folder."""

    folder: Path

    @classmethod
    def in_cache(cls, kept: Path) -> Self:
        """The one of a cache folder."""
        return cls(kept / "devices")

    def why_quarantined(self, uuid: str) -> Quarantine | None:
        """Why the device is out of use; None where it is not."""
        try:
            return Quarantine(**json.loads(_note(self.folder, uuid).read_text()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError) as error:
            return Quarantine(f"its note cannot be read ({error})", 0.0, "")

    def holder(self, uuid: str) -> str:
        """Who holds the device now; empty: nobody."""
        place = _lock(self.folder, uuid)
        try:
            handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return ""
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
        else:
            return ""
        finally:
            os.close(handle)

    @contextmanager
    def lease(
        self, uuids: Sequence[str], probe: Probe, *, timeout_s: float = _PATIENCE_S
    ) -> Iterator[Lease]:
        """Holds the first of these devices that is free and well; waits for one up to `timeout_s`.

        Raises:
            PrerequisiteError: all of them are taken or out of use; the message says which and why.
            StorageError: the cache folder cannot be written.
        """
        deadline = time.monotonic() + timeout_s
        ill: dict[str, str] = {}
        while True:
            for uuid in uuids:
                handle = None if uuid in ill else _take(self.folder, uuid)
                if handle is None:
                    continue
                try:
                    reason = _still_ill(self.folder, uuid, probe)
                    if reason:
                        ill[uuid] = reason
                        continue
                    yield Lease(uuid, self.folder)
                    return
                finally:
                    os.close(handle)
            if len(ill) == len(uuids) or time.monotonic() >= deadline:
                raise self._none_free(uuids, ill)
            time.sleep(_PAUSE_S)

    def _none_free(self, uuids: Sequence[str], ill: dict[str, str]) -> PrerequisiteError:
        if not uuids:
            return PrerequisiteError("there is no device to lease", hint="use --target cpu")
        told = []
        for uuid in uuids:
            note = self.why_quarantined(uuid)
            if uuid in ill and note:
                told.append(f"{uuid} is in quarantine ({note.reason}) and still ill: {ill[uuid]}")
            else:
                told.append(f"{uuid} is held by {self.holder(uuid) or 'nobody any more'}")
        return PrerequisiteError(
            f"no device is free: {'; '.join(told)}",
            hint="wait for it, or end that process; a device that stays ill needs its "
            "administrator",
        )


def _still_ill(folder: Path, uuid: str, probe: Probe) -> str:
    """Why a quarantined device stays so; empty: it never was, or is well again."""
    place = _note(folder, uuid)
    if not place.exists():
        return ""
    health = probe(uuid)
    if health.is_well:
        place.unlink(missing_ok=True)
    return health.reason


def _take(folder: Path, uuid: str) -> int | None:
    """The locked file, None where somebody else has it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(_lock(folder, uuid), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StorageError(
            f"the device's lock in {folder} cannot be opened: {error}",
            hint="check its permissions or give another cache folder",
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    os.ftruncate(handle, 0)
    os.pwrite(handle, _me().encode(), 0)
    return handle


def _me() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}"


def _lock(folder: Path, uuid: str) -> Path:
    return folder / f"{uuid}.lock"


def _note(folder: Path, uuid: str) -> Path:
    return folder / f"{uuid}.quarantine"
