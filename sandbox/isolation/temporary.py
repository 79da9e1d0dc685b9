# SPDX-License-Identifier: Apache-2.0
"""A folder for the temporary files of one job, where the jail has no file system to give it.

The harness makes it and counts what is in it; the job's supervisor removes it, so that it goes even
where the harness is gone first.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

MOST_ENTRIES = 20_000
"""More count as more than any limit: to look at them takes longer than a watcher has."""

_BLOCK = 512
"""The unit of st_blocks, whatever the file system's own is (stat(2))."""


def parent() -> Path:
    """Where these folders are made."""
    return Path(tempfile.gettempdir())


@dataclass(frozen=True)
class TemporaryFolder:
    """One folder, for one job."""

    path: Path

    @classmethod
    def make(cls, uid: int) -> TemporaryFolder:
        """A new one that only `uid` may enter; -1: who made it."""
        path = Path(tempfile.mkdtemp(prefix="kernelwright-job-", dir=parent()))
        if uid >= 0:
            os.chown(path, uid, uid)
        return cls(path)

    def held_bytes(self, members: Iterable[int]) -> int:
        """What the files in it take, and those that these processes hold open without a name.

        A file without a name that is mapped and no longer open is not seen.
        """
        try:
            device = self.path.stat().st_dev
        except OSError:
            return 0
        return self._sum_named() + _sum_nameless(members, device)

    def remove(self) -> None:
        """Where the supervisor could not; as far as that goes."""
        shutil.rmtree(self.path, ignore_errors=True)

    def _sum_named(self) -> int:
        total, entries, pending = 0, 0, [str(self.path)]
        while pending:
            try:
                with os.scandir(pending.pop()) as found:
                    for entry in found:
                        entries += 1
                        if entries > MOST_ENTRIES:
                            return 1 << 62
                        total += entry.stat(follow_symlinks=False).st_blocks * _BLOCK
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
            except OSError:
                continue
        return total


def _sum_nameless(members: Iterable[int], device: int) -> int:
    sizes: dict[int, int] = {}
    for pid in members:
        try:
            descriptors = os.listdir(f"/proc/{pid}/fd")
        except OSError:
            continue
        for descriptor in descriptors:
            try:
                facts = os.stat(f"/proc/{pid}/fd/{descriptor}")
            except OSError:
                continue
            if facts.st_dev == device and facts.st_nlink == 0 and stat.S_ISREG(facts.st_mode):
                sizes[facts.st_ino] = facts.st_blocks * _BLOCK
    return sum(sizes.values())
