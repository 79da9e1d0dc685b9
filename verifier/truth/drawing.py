# SPDX-License-Identifier: Apache-2.0
"""The inputs of trials and the right answers, found ahead in a process of its own.

Drawing and the truth take as long as calling and judging, and in one process they would take turns:
half of it is Python's. So a fork of the referee draws, and puts what it found into memory that both
see; nothing is copied there. Each trial has a generator of its own: what is drawn does not depend
on who draws it, and where the other process is gone, or stands still, this one goes on alone.
"""

from __future__ import annotations

import contextlib
import gc
import json
import mmap
import os
import signal
import socket
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from ...kernelbench.problem import Problem
from .found_trials import Found, arrays_of, read_found, room_of, size_of, tell_found
from .trials import Item, Trial, make_item

LEAST = 12
"""Trials from which on a process of their own is worth its start, some hundredths of a second."""
ROOM, MOST_ROOM = 24 << 20, 96 << 20
"""Bytes of what is found ahead; more where the inputs of one trial are more, up to the second. Of
larger ones a copy takes as long as it saves, and memory that is bounded by a few calls' data."""
STALLED_S = 5.0
"""A process that has used no CPU time for so long, and has answered nothing, waits for a lock that
nobody holds there: it is a fork of one thread of many."""
DONE = b"."
MOST_TOLD = 1 << 16
"""Bytes that are told of a trial."""


def draw_item(problem: Problem, trial: Trial, seed: int) -> Item:
    """The inputs of a trial and, where the whole answer is judged, the truth."""
    item = make_item(problem, trial.structure, trial.family, np.random.default_rng(seed))
    if not item.is_parted:
        _ = item.expected
    return item


class Drawing:
    """Of some trials in their order. A context manager: leaving ends the other process.

    An item may be used until the next is taken.
    """

    def __init__(
        self, problem: Problem, trials: Sequence[Trial], rng: np.random.Generator, *, apart: bool
    ) -> None:
        """Begins.

        Args:
            apart: in a process of its own, if there are trials enough and a CPU for it.
        """
        self._problem, self._trials = problem, trials
        self._seeds: list[int] = rng.integers(1 << 63, size=len(trials)).tolist()
        self._helper: _Helper | None = None
        if apart and len(trials) >= LEAST and len(os.sched_getaffinity(0)) > 1:
            with contextlib.suppress(OSError):  # no memory or no process for it: this one draws
                self._helper = _Helper(problem, trials, self._seeds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._helper:
            self._helper.close()

    def __iter__(self) -> Iterator[tuple[Trial, Item]]:
        for trial, seed in zip(self._trials, self._seeds, strict=True):
            found = self._helper.take() if self._helper else None
            if found is None:
                yield trial, draw_item(self._problem, trial, seed)
            else:
                yield trial, Item.of_known(self._problem, trial.structure, trial.family, *found)
            if self._helper:
                self._helper.release()


class _Helper:
    """The other process, as this one sees it."""

    def __init__(self, problem: Problem, trials: Sequence[Trial], seeds: list[int]) -> None:
        """Raises OSError where it cannot be had."""
        sizes = [size_of(problem, trial.structure) for trial in trials]
        fitting = [size for size in sizes if size <= MOST_ROOM]
        self._memory = mmap.mmap(-1, max(ROOM, *fitting, 1))
        with contextlib.suppress(OSError):  # a kernel without large pages, or without any advice
            self._memory.madvise(mmap.MADV_HUGEPAGE)
        self._channel, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._channel.settimeout(STALLED_S)
        self._is_alive = True
        with other, warnings.catch_warnings():
            # Of threads that are not there any more: see STALLED_S.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
            if not self._pid:
                try:
                    gc.disable()  # it would write to every page that both have
                    _keep_open(other.fileno())
                    _serve(problem, trials, seeds, _Ring(self._memory, other), other)
                finally:
                    os._exit(0)

    def take(self) -> Found | None:
        """What was found for the next trial; None where it must be drawn here."""
        told = self._hear()
        return read_found(self._memory, told) if told else None

    def release(self) -> None:
        """The place of what was taken last may be used again."""
        if self._is_alive:
            with contextlib.suppress(OSError):
                self._channel.send(DONE)

    def close(self) -> None:
        """Ends it. What was taken last stays as it is."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._is_alive = False
        self._channel.close()

    def _hear(self) -> dict[str, Any] | None:
        used = -1
        while self._is_alive:
            try:
                if said := self._channel.recv(MOST_TOLD):
                    told: dict[str, Any] | None = json.loads(said)
                    return told
            except TimeoutError:
                now = time.clock_gettime_ns((~self._pid << 3) | 2)
                if now != used:
                    used = now
                    continue
            except OSError:
                pass
            self._is_alive = False
        return None


class _Ring:
    """Memory that is filled from its beginning to its end, and then again, as trials are done."""

    def __init__(self, memory: mmap.mmap, channel: socket.socket) -> None:
        self._memory, self._channel = memory, channel
        self._next = self._free = 0
        self._ends: deque[int] = deque()

    def place(self, found: Found) -> dict[str, Any] | None:
        """Copies it once there is room, and says where it lies; None where there never is.

        Raises EOFError once nobody takes it.
        """
        size, total = len(self._memory), sum(map(room_of, arrays_of(found)))
        with contextlib.suppress(BlockingIOError):  # who says what is done need not wait for this
            while self._ends:
                self._hear_done(socket.MSG_DONTWAIT)
        fits = 0 < total <= size
        if fits and self._next % size + total > size:
            self._next += size - self._next % size
        while fits and self._ends and self._next + total - self._free > size:
            self._hear_done()
        first = self._next % size
        self._next += total if fits else 0
        self._ends.append(self._next)
        return tell_found(self._memory, first, found) if fits else None

    def _hear_done(self, flags: int = 0) -> None:
        if not self._channel.recv(len(DONE), flags):
            raise EOFError
        self._free = self._ends.popleft()


def _serve(
    problem: Problem,
    trials: Sequence[Trial],
    seeds: list[int],
    ring: _Ring,
    channel: socket.socket,
) -> None:
    """What the other process does."""
    for trial, seed in zip(trials, seeds, strict=True):
        found: Found = {}, None
        with contextlib.suppress(Exception):  # who asked draws it, and sees
            if size_of(problem, trial.structure) <= MOST_ROOM:
                item = draw_item(problem, trial, seed)
                found = item.inputs, None if item.is_parted else item.expected
        channel.send(json.dumps(ring.place(found)).encode())


def _keep_open(kept: int) -> None:
    """Closes all other files: whoever waits for their end is not to wait for this process."""
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd != kept:
            with contextlib.suppress(OSError):  # the one that listed them
                os.close(fd)
