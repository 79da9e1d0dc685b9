# SPDX-License-Identifier: Apache-2.0
"""The lease of a campaign: only one process at a time may run it.

An advisory lock on a small file; the kernel drops it however its holder dies. Knows nothing of
events.
"""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import UsageError
from .faults import storage_faults

# A viewer looks for a fraction of a millisecond whether a lease is held, by taking a shared lock.
_PATIENCE_S = 0.5


@contextmanager
def hold(path: Path, campaign: str) -> Iterator[None]:
    """Holds the lease while the block runs.

    Raises:
        UsageError: another process holds it; the message says which.
    """
    with storage_faults("the lease could not be opened", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if not _try_lock(handle, time.monotonic() + _PATIENCE_S):
            holder = os.pread(handle, 200, 0).decode(errors="replace").strip()
            raise UsageError(
                f"campaign {campaign} is already being run by {holder or 'another process'}",
                hint="wait for it or end it; then `kernelwright run --resume` takes it up again",
            )
        with storage_faults("the lease could not be written", path):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """Whether some process holds the lease now."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(handle)


def _try_lock(handle: int, deadline: float) -> bool:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        else:
            return True
