"""Which descriptors this process holds: what nobody closed shows."""

from __future__ import annotations

import contextlib
import gc
import os


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
