"""Starts a program that ends with its parent, and ends it with everything that it has started."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


class Ended(NamedTuple):
    """How a program ended."""

    status: int
    is_late: bool
    seconds: float


def start(
    command: Sequence[str], log: IO[bytes], environment: Mapping[str, str], folder: Path
) -> subprocess.Popen[bytes]:
    """In a session of its own; what it says goes into the log."""
    return subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_end_with_parent,
    )


def wait(process: subprocess.Popen[bytes], timeout_s: float) -> Ended:
    """Until it has ended, or its time is over: then it is killed with all below it."""
    begun = time.monotonic()
    try:
        status = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        end(process)
        return Ended(process.returncode, True, time.monotonic() - begun)
    return Ended(status, False, time.monotonic() - begun)


def end(process: subprocess.Popen[bytes]) -> None:
    """Kills it and all that it has started, in whatever session that is."""
    for pid in (process.pid, *_below(process.pid)):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _end_with_parent() -> None:
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _below(pid: int) -> list[int]:
    """All descendants, as they are now."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError, IndexError):
            # The name of a process may hold anything, its closing bracket is the last one.
            parent = int(place.read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(place.parent.name))
    found, waiting = [], [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found
