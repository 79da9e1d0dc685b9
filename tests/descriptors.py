"""Which descriptors this process holds: what nobody closed shows."""

from __future__ import annotations

import contextlib
import gc
import os
import time

_PATIENCE_S = 5.0
"""What is opened for an instant, as by the watch over another test's job, is soon gone again."""


def held() -> set[tuple[str, str]]:
    """Each number with what it leads to.

    Rubbish of other tests is collected before, so that none of it closes while we look; a count
    alone would take a descriptor that goes away for one that stays.
    """
    gc.collect()
    kept = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            kept.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return kept


def left_open_since(before: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """What `before` did not hold and what stays: each one was there at every look."""
    left = held() - before
    until = time.monotonic() + _PATIENCE_S
    while left and time.monotonic() < until:
        time.sleep(0.01)
        left &= held()
    return left
