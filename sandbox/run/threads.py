# SPDX-License-Identifier: Apache-2.0
"""The threads of another process: what each has used of the CPUs, and whether all have stopped.

The kernel tells by its accounts (schedstat, stat; proc(5)). CPU time is exact for threads that do
not run: of a process that is stopped.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import NamedTuple

_ASLEEP = b"SZX"
_GOES_ON = b"RSDI"
"""States of a thread that runs, or will by itself."""


class _Accounts(NamedTuple):
    """One thread's, as descriptors."""

    run_time: int
    state: int


class Used(NamedTuple):
    """What the threads of a process had of the CPUs since they were asked last, in nanoseconds; 0
    where the kernel does not tell, or the process is gone. Of a thread that has ended nothing is
    seen."""

    busiest_ns: int = 0
    """The most CPU time that one took."""
    waited_ns: int = 0
    """The longest that one was ready to run, and others had the CPUs."""


class Threads:
    """The threads of one process, told from one reading to the next."""

    def __init__(self, pid: int) -> None:
        self._folder = f"/proc/{pid}/task"
        self._files: dict[str, _Accounts] = {}
        self._count = -1
        self._before: dict[str, tuple[int, int]] = {}

    def take_usage(self) -> Used:
        """Since this was asked last."""
        now = self._read_run_times()
        before = {thread: self._before.get(thread, (0, 0)) for thread in now}
        self._before = now
        return Used(*(max((now[t][at] - before[t][at] for t in now), default=0) for at in range(2)))

    def have_stopped(self) -> bool:
        """Whether every thread has, or has ended; of a process that is gone all have."""
        for _ in range(2):
            with suppress(FileNotFoundError, ProcessLookupError):
                states = self._read_states()
                # Whoever was read before the last one could have begun another meanwhile.
                is_all = os.stat(self._folder).st_nlink == self._count
                return is_all and not any(state in _GOES_ON for state in states)
            # One has ended and another begun, or all have.
            self.close()
        return not os.path.exists(self._folder)

    def are_asleep(self) -> bool:
        """Whether every thread sleeps, or has ended."""
        with suppress(OSError):
            return all(state in _ASLEEP for state in self._read_states())
        return False

    @property
    def count(self) -> int:
        """How many there were as they were looked at last."""
        return len(self._files)

    def close(self) -> None:
        """Gives the files back; may be called twice."""
        for each in self._files.values():
            os.close(each.run_time)
            os.close(each.state)
        self._files.clear()
        self._count = -1

    def _read_states(self) -> list[bytes]:
        self._follow()
        return [_state(os.pread(each.state, 512, 0)) for each in self._files.values()]

    def _read_run_times(self) -> dict[str, tuple[int, int]]:
        """By thread: on a CPU, and ready for one."""
        for _ in range(2):
            with suppress(OSError, ValueError):
                self._follow()
                found = {}
                for thread, each in self._files.items():
                    ran, waited, *_ = os.pread(each.run_time, 64, 0).split()
                    found[thread] = (int(ran), int(waited))
                return found
            self.close()
        return {}

    def _follow(self) -> None:
        """Opens the accounts of all threads, where there are others than before.

        A folder's links are its subfolders: one for each thread.
        """
        if os.stat(self._folder).st_nlink == self._count:
            return
        self.close()
        count = os.stat(self._folder).st_nlink
        for thread in os.listdir(self._folder):
            self._files[thread] = _open(f"{self._folder}/{thread}")
        self._count = count


def _open(folder: str) -> _Accounts:
    run_time = os.open(f"{folder}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _Accounts(run_time, os.open(f"{folder}/stat", os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        os.close(run_time)
        raise


def _state(line: bytes) -> bytes:
    """Of a line of `stat`; its name, in brackets, may hold anything."""
    return line.rpartition(b") ")[2][:1]
