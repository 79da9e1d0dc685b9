# SPDX-License-Identifier: Apache-2.0
"""One timing at a time on a machine's CPUs, whoever asks for it, from whichever home.

Two that are timed side by side share caches and memory, and a library of many threads loses more by
that than a kernel: what is credited would rise. A turn is an advisory lock (flock(2)) on a folder
that everybody has, on which nothing is written; the kernel drops it however its holder dies. Builds
and sanitizers need none.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Self

from ...errors import PrerequisiteError

WAITED = "wait for other timings"
"""The stage of an evaluation in which somebody else times on this machine."""


class Turns:
    """The turns of one machine. Not for threads that time at once."""

    def __init__(self, place: Path) -> None:
        """Raises PrerequisiteError where the place cannot be opened."""
        try:
            self._handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise PrerequisiteError(
                f"the place at which timings on this machine take turns cannot be opened: {error}",
                hint="name a file or a folder that everybody may read: KERNELWRIGHT_TIMING_LOCK",
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Gives a turn back that is held. May be called twice."""
        if self._handle >= 0:
            os.close(self._handle)
        self._handle = -1

    def wait(self) -> None:
        """Until nobody else times; then it is our turn until `give_back`."""
        fcntl.flock(self._handle, fcntl.LOCK_EX)

    def take(self) -> bool:
        """Whether nobody else times now; then it is our turn until `give_back`."""
        with suppress(BlockingIOError):
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        return False

    def give_back(self) -> None:
        """Lets the next one time."""
        fcntl.flock(self._handle, fcntl.LOCK_UN)

    def holder(self) -> int:
        """The process whose turn it is, 0 where there is none or it cannot be seen (proc(5))."""
        is_same = os.fstat(self._handle)
        name = f"{os.major(is_same.st_dev):02x}:{os.minor(is_same.st_dev):02x}:{is_same.st_ino}"
        with suppress(OSError), open("/proc/locks", encoding="ascii") as locks:
            for line in locks:
                words = line.split()
                if words[1:4] == ["FLOCK", "ADVISORY", "WRITE"] and words[5] == name:
                    return max(0, int(words[4]))
        return 0


def find_other(place: Path) -> int:
    """The process of another campaign or evaluation that times now; 0: none that can be seen.

    Ours are children of this process.
    """
    with suppress(PrerequisiteError, OSError, ValueError), Turns(place) as turns:
        holder = turns.holder()
        if holder not in (0, os.getpid()):
            state = Path(f"/proc/{holder}/stat").read_text("utf-8")
            if int(state.rpartition(") ")[2].split()[1]) != os.getpid():
                return holder
    return 0
