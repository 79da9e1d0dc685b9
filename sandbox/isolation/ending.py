"""Ends a process and everything below it, whatever sessions and groups they made for themselves.

For trusted processes of ours that are to go at once; what a jail holds is ended by its supervisor.
"""

from __future__ import annotations

import contextlib
import os
import signal

from .tree import descendants


def end_tree(pid: int) -> None:
    """Kills `pid` and all its descendants. Waits for none of them."""
    stopped: set[int] = set()
    # Whoever is stopped makes no more children, so that there comes a round without new ones.
    while found := {pid, *descendants(pid)} - stopped:
        for each in found:
            _send(each, signal.SIGSTOP)
        stopped |= found
    for each in stopped:
        _send(each, signal.SIGKILL)


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
