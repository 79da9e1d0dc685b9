# SPDX-License-Identifier: Apache-2.0
"""The gate at which a process waits for a call, and the freezing of that process while it waits.

The process watches a word in shared memory without sleep and counts its looks in another one. While
the inputs of a call are written, and from its answer to the next call, the whole process is stopped
(SIGSTOP): nobody can work on what lies there before the gate opens, or behind the answer. It is
woken before that, so that no time of waking up is measured; what its CPUs do between is for the
referee to charge (verification.md §4). It stands still once each of its threads is seen to.

It wakes on another CPU than the referee's, where there is one: on a busy machine whoever wakes up
takes the place of whoever woke it, and the gate would stay shut for a time slice.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import NamedTuple

from ...errors import SandboxError
from .threads import Threads, Used

GATE_BYTES = 4096
_STANDS_STILL_S = 0.5
_AWAKE_S = 0.02
"""How long a process may take to look at its gate again; the gate opens in any case."""
_SETTLED_S = 60e-6
"""How long threads may take to fall asleep again before a call. Who stays awake is charged for it
all, so that the time is short."""
_libc = ctypes.CDLL(None)


class Coverage(NamedTuple):
    """What a runner says of the programs of its last call: a claim."""

    is_partial: bool = False
    programs: int = 0
    left_out: int = 0


class Gate:
    """The words between the referee and one process."""

    def __init__(self) -> None:
        self._pid, self._process = -1, -1
        self._threads: Threads | None = None
        self._is_frozen = False
        self._fds: tuple[int, ...] = ()
        memory = [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("kw-gate", "kw-looks")]
        try:
            for fd in memory:
                os.ftruncate(fd, GATE_BYTES)
            self._word, self._looks = (
                memoryview(mmap.mmap(fd, GATE_BYTES)).cast("I") for fd in memory
            )
            readable = os.open(f"/proc/self/fd/{memory[0]}", os.O_RDONLY | os.O_CLOEXEC)
        except BaseException:
            os.close(memory[1])
            raise
        finally:
            os.close(memory[0])
        self._fds = (readable, memory[1])

    @property
    def fds(self) -> tuple[int, int]:
        """For the process: one by which the gate can only be read, one for its looks."""
        return self._fds[0], self._fds[1]

    def close_fds(self) -> None:
        """Once the process has its own."""
        for fd in self._fds:
            os.close(fd)
        self._fds = ()

    def watch(self, pid: int) -> None:
        """Names the process at the gate. Raises SandboxError where it has ended."""
        try:
            self._pid, self._process = pid, os.pidfd_open(pid)
        except OSError as error:
            reason = f"the process at the gate (pid {pid}) cannot be held: {error}"
            raise SandboxError(reason) from error
        self._threads = Threads(pid)

    def close(self) -> None:
        """Gives everything back; may be called twice."""
        self.close_fds()
        if self._process >= 0:
            os.close(self._process)
        self._process = -1
        if self._threads:
            self._threads.close()

    def freeze(self, cpu_ns: Callable[[], int]) -> int:
        """Stops the process with all of its threads; its CPU time as it stands still.

        Raises SandboxError where it may not be stopped. A process that is gone stands still.
        """
        if self._is_frozen and self._threads and self._threads.have_stopped():
            return cpu_ns()
        self._is_frozen = True
        self._send(signal.SIGSTOP)
        until = time.monotonic() + _STANDS_STILL_S
        last, has_stopped, now = -1, False, cpu_ns()
        while (now != last or not has_stopped) and time.monotonic() < until:
            # It may wait for this very CPU, to be told.
            os.sched_yield()
            # In this order: what it used until it was seen to have stopped must be in the figure.
            has_stopped = not self._threads or self._threads.have_stopped()
            last, now = now, cpu_ns()
        return now

    def release(self) -> None:
        """Lets the process run again, if it is frozen."""
        if self._is_frozen:
            self._is_frozen = False
            self._send(signal.SIGCONT)

    def thaw(self, wake: Callable[[], None]) -> None:
        """Lets the process run again; returns as it looks at its gate, which `wake` tells it to.

        Before that every thread goes back to sleep: none is on its way there as the call begins.
        """
        seen = self._looks[0]
        self.release()
        until = time.monotonic() + _SETTLED_S
        while self._threads and not self._threads.are_asleep() and time.monotonic() < until:
            # Threads that are bound to this very CPU are to have their turn.
            os.sched_yield()
        with _keep_apart(self._pid):
            wake()
            until = time.monotonic() + _AWAKE_S
            while self._looks[0] == seen and time.monotonic() < until:
                pass

    @property
    def coverage(self) -> Coverage:
        """What the process has left behind its looks."""
        partial, programs, left_out = self._looks[1:4]
        return Coverage(bool(partial), programs, left_out)

    def open(self, nonce: int, words: int = 0) -> None:
        """Lets the call begin that waits for this nonce.

        Args:
            words: Which words of its outputs are to be summed behind it; nobody knows before.
        """
        self._word[1] = words
        self._word[0] = nonce

    @property
    def threads(self) -> int:
        """How many the process had as it was stopped last."""
        return self._threads.count if self._threads else 0

    def take_usage(self) -> Used:
        """What its threads had of the CPUs since this was asked last."""
        return self._threads.take_usage() if self._threads else Used()

    def _send(self, number: signal.Signals) -> None:
        try:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._process, number)
        except OSError as error:
            raise SandboxError(
                f"a candidate's process cannot be stopped between its calls: {error}",
                hint="run as an ordinary user, or as a root that may signal other users' processes "
                "(CAP_KILL)",
            ) from error


@contextmanager
def _keep_apart(pid: int) -> Iterator[None]:
    """Keeps a process's first thread and this one on different CPUs, where their sets allow it."""
    moved: list[tuple[int, set[int]]] = []
    try:
        here = {_libc.sched_getcpu()}
        theirs, ours = os.sched_getaffinity(pid), os.sched_getaffinity(0)
        if theirs - here:
            who, stays = (pid, theirs), theirs - here
        else:
            who, stays = (0, ours), ours - theirs
        if stays and stays != who[1]:
            os.sched_setaffinity(who[0], stays)
            moved.append(who)
    except OSError:  # it has ended, or is another user's: only a busy machine will notice
        pass
    try:
        yield
    finally:
        for process, cpus in moved:
            with suppress(OSError):
                os.sched_setaffinity(process, cpus)
