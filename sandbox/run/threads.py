# SPDX-License-Identifier: Apache-2.0
"""CPU time of each thread of another process, as the kernel accounts for it (schedstat, proc(5)).

It is exact for threads that do not run: of a process that is stopped.
"""

from __future__ import annotations

import os
from contextlib import suppress


class Threads:
    """The threads of one process, told from one reading to the next."""

    def __init__(self, pid: int) -> None:
        self._folder = f"/proc/{pid}/task"
        self._files: dict[str, int] = {}
        self._count = -1
        self._before: dict[str, int] = {}

    def busiest_ns(self) -> int:
        """The most CPU time that one thread took since this was asked last.

        0 where the kernel does not tell, or the process is gone. What a thread took that has ended
        is not seen.
        """
        now = self._read()
        took = [spent - self._before.get(thread, 0) for thread, spent in now.items()]
        self._before = now
        return max(took, default=0)

    def close(self) -> None:
        """Gives the files back; may be called twice."""
        for fd in self._files.values():
            os.close(fd)
        self._files.clear()
        self._count = -1

    def _read(self) -> dict[str, int]:
        with suppress(OSError, ValueError):
            # A folder's links are its subfolders: one for each thread.
            if os.stat(self._folder).st_nlink != self._count:
                self._open()
            return self._read_run_times()
        # One has ended and another begun.
        with suppress(OSError, ValueError):
            self._open()
            return self._read_run_times()
        return {}

    def _open(self) -> None:
        self.close()
        count = os.stat(self._folder).st_nlink
        for thread in os.listdir(self._folder):
            self._files[thread] = os.open(f"{self._folder}/{thread}/schedstat", os.O_RDONLY)
        self._count = count

    def _read_run_times(self) -> dict[str, int]:
        return {
            thread: int(os.pread(fd, 64, 0).split(b" ", 1)[0]) for thread, fd in self._files.items()
        }
