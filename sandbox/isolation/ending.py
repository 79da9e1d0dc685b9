# SPDX-License-Identifier: Apache-2.0
"""Ends a process and everything below it, whatever sessions and groups they made for themselves.

For trusted processes of ours that are to go at once; what a jail holds is ended by its supervisor.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from .tree import descendants

_STILL_S = 0.1
"""A thread that waits for its new child to execute something does not stop before that one does."""
_GONE_S = 10.0
"""A killed process that is not gone by then hangs in the kernel, on a device for example."""


def end_tree(pid: int) -> None:
    """Kills `pid` and all its descendants, and returns once none of them runs any more."""
    held: dict[int, int] = {}
    try:
        # Whoever stands still makes no more children, so that there comes a round without new ones.
        while found := {pid, *descendants(pid)} - held.keys():
            held |= {each: _open_pidfd(each) for each in found}
            stopped = [each for each in found if _send(held[each], signal.SIGSTOP)]
            _await_stops(stopped)
        _await_ends([fd for fd in held.values() if _send(fd, signal.SIGKILL)])
    finally:
        for fd in held.values():
            if fd >= 0:
                os.close(fd)


def has_ended(process: int, within_s: float) -> bool:
    """Whether a process that is held by a descriptor has, reaped or not; waits so long for it."""
    watched = select.poll()
    watched.register(process, select.POLLIN)
    return bool(watched.poll(within_s * 1e3))


def _open_pidfd(pid: int) -> int:
    """By what a process is held, so that no later one of its number is met; -1: it is gone."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        return -1


def _send(process: int, number: signal.Signals) -> bool:
    """Whether there was somebody to hear it, and we may tell them."""
    if process < 0:
        return False
    try:
        signal.pidfd_send_signal(process, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _await_stops(pids: Iterable[int]) -> None:
    """Until no thread of these runs, or a moment has passed: a signal is heard later than sent."""
    until = time.monotonic() + _STILL_S
    for pid in pids:
        while not _stands_still(pid) and time.monotonic() < until:
            time.sleep(0.001)


def _stands_still(pid: int) -> bool:
    states: set[str] = set()
    with suppress(OSError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                states.add((thread / "stat").read_text("utf-8", "replace").rpartition(") ")[2][:1])
    return states <= set("TtZXx")


def _await_ends(processes: Iterable[int]) -> None:
    until = time.monotonic() + _GONE_S
    for process in processes:
        has_ended(process, max(0.0, until - time.monotonic()))
