# SPDX-License-Identifier: Apache-2.0
"""What no campaign names any more: found, and taken away.

A blob is named by whatever event holds its 64 digits, whether this version understands the event
or not. One that was written within the last hour stays: a campaign that runs keeps a source before
the event that names it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .faults import storage_faults
from .store import Store

YOUNG_S = 3600.0
_NAME = re.compile(r"[0-9a-f]{64}")


class Garbage(NamedTuple):
    """Files that nothing needs."""

    paths: tuple[Path, ...]
    bytes: int


def find_garbage(store: Store, young_s: float = YOUNG_S) -> Garbage:
    """The blobs of a home that no event names, and drafts that were never finished.

    Args:
        young_s: seconds for which a file is left alone.
    """
    before = time.time() - young_s
    found = []
    # Blobs first: one that is written meanwhile is not among them.
    with storage_faults("the blobs could not be listed", store.home):
        there = [*store.blobs.list_all(), *(("", path) for path in store.blobs.list_drafts())]
    named = find_named(store)
    with storage_faults("the blobs could not be looked at", store.home):
        for sha, path in there:
            told = path.stat()
            if sha not in named and told.st_mtime < before:
                found.append((path, told.st_size))
    return Garbage(tuple(path for path, _ in found), sum(size for _, size in found))


def find_named(store: Store) -> set[str]:
    """All names of blobs that events hold."""
    named: set[str] = set()
    for campaign in store.campaigns():
        for text in store.payloads(campaign):
            named.update(_NAME.findall(text))
    return named


def remove(paths: Sequence[Path]) -> None:
    """Takes files away. StorageError where one cannot be: those before it are gone."""
    for path in paths:
        with storage_faults("a file could not be removed", path):
            path.unlink(missing_ok=True)
