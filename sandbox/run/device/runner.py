# SPDX-License-Identifier: Apache-2.0
"""A started device runner: what its process is asked beyond a runner that shares our memory.

Tensors are copied to the device for a call and their outputs back after it, and no gate is watched.
All host code is ours, so that its CPU time is nobody's work; what can be wrong is the time. The
device's own events tell it, the runner's host clock is told beside them, and the referee's clock is
taken around the call, less what a dry call takes: the same flushes, the same events, no launches.

A device that has had nothing to do for 30 ms takes 50 to 75 µs longer to set its cache and to be
heard of (docs/results/first-contact.md), and a call always follows a pause, in which answers are
judged. So two dry calls come right ahead of each call: the first wakes device and host, the second
is timed. The median of the last ones is taken off, as waking up takes now and then longer
than a short kernel. Nothing of a candidate runs in them: the device was waited for, and the first
flush takes what its last call left in the cache.
"""

from __future__ import annotations

import math
import secrets
import statistics
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from ...frames import Frame, FrameKind, now_ns
from ..process import Runner, Timed
from ..program import Program

DRY_CALLS = 31
"""So many are remembered."""
_LONG_DRY_CALLS, _LONG_FLUSHES = 5, 9
"""Calls that tell what one flush more takes, and the flushes in each."""
LAUNCH_US = 10.0
"""Twice what a host takes to enqueue a launch: the flushes of a call last that long for each."""
MOST_FLUSHES = 64
_WARM = 1 << 16
"""Beside the flushes of a call, as in device_runner.cpp."""
_COPY_S = 30.0
"""What copying the slots of a call to a device or back may take beyond the deadline of the call."""
_ANSWER = {
    FrameKind.PING: FrameKind.PONG,
    FrameKind.UPLOAD: FrameKind.PONG,
    FrameKind.FETCH: FrameKind.PONG,
    FrameKind.CALL: FrameKind.DONE,
    FrameKind.REPLAY: FrameKind.DONE,
}


class _Answered(NamedTuple):
    frame: Frame
    wall_ns: int


class DeviceRunner(Runner):
    """A Runner whose program has memory of its own (`Program.has_own_memory`)."""

    is_gated = False
    _flush_ns = 0
    _flushes = 1
    _warm = 0
    _dry_with = 0
    """Flushes of the dry calls that are remembered."""

    def __init__(self, *given: Any, **named: Any) -> None:
        self._dry: deque[int] = deque(maxlen=DRY_CALLS)
        super().__init__(*given, **named)

    def expect(self, table: bytes) -> None:
        """See Runner: while the flushes run, the host enqueues the launches of the table."""
        needed_ns = 1e3 * LAUNCH_US * int.from_bytes(table[:8], "little")
        flush_ns = max(self._flush_ns, 1000)
        self._flushes = max(1, min(MOST_FLUSHES, math.ceil(needed_ns / flush_ns)))

    def warm(self) -> None:
        """See Runner: inputs are copied once more behind the flushes."""
        self._warm = _WARM

    def call(
        self,
        slot: int,
        *,
        timeout_s: float,
        release: Callable[[], None] | None = None,
        together: int = 1,
    ) -> Timed:
        """Runs one placed slot: never several at a time. Raises RunFault.

        It is copied to the device only now: no kernel finds the inputs of a later call there.
        """
        if together > 1:
            raise ValueError(f"{together} calls at a time are not made on a device")
        if release:
            release()
        return self._on_device(FrameKind.CALL, slot, 1, self._flushes, timeout_s)

    def replay(self, first: int, count: int, *, timeout_s: float) -> Timed:
        """Runs `count` slots from `first` as one CUDA graph; the figures are for all of them.

        For kernels that are shorter than their launch. The slots are all on the device at once.
        """
        return self._on_device(FrameKind.REPLAY, first, count, 1, timeout_s)

    def _on_device(
        self, kind: FrameKind, first: int, count: int, flushes: int, timeout_s: float
    ) -> Timed:
        self._exchange(FrameKind.UPLOAD, first, count, timeout_s + _COPY_S)
        told_with = flushes | self._warm if kind is FrameKind.CALL else count
        dry_ns = self._measure_dry(flushes, timeout_s)
        done = self._exchange(kind, first, told_with, timeout_s)
        choice = secrets.randbits(32)
        told = [
            self._exchange(FrameKind.FETCH, slot, choice, timeout_s + _COPY_S).frame.second
            for slot in range(first, first + count)
        ]
        return Timed(
            # A claim of nothing at all would break every ratio that is made of it.
            claimed_ns=max(done.frame.first, 1),
            wall_ns=max(done.wall_ns - dry_ns, 1),
            cpu_ns=0,
            choice=choice,
            told_sum=sum(told) % (1 << 64),
            host_ns=done.frame.second,
        )

    def _exchange(self, kind: FrameKind, first: int, count: int, timeout_s: float) -> _Answered:
        start, started = now_ns(), time.perf_counter_ns()
        answer = self._hear(_ANSWER[kind], self._say(kind, first, count), timeout_s)
        elapsed = time.perf_counter_ns() - started
        stamped = answer.sent_ns - start
        # Where somebody sets the time of day meanwhile, the other clock counts.
        return _Answered(answer.frame, stamped if 0 < stamped <= elapsed else elapsed)

    def _measure_dry(self, flushes: int, timeout_s: float) -> int:
        """What a call takes besides its kernels; the next exchange is to be that call."""
        if flushes != self._dry_with:
            self._dry.clear()
            self._dry_with = flushes
        _, woken_ns = self._time_pings(2, flushes, timeout_s)
        self._dry.append(woken_ns)
        return int(statistics.median(self._dry))

    def _measure_empty(self, timeout_s: float, write: Callable[[], None] | None) -> None:
        """What dry calls vary by, and a flush takes; the referee has nothing to take off."""
        del write
        dry = self._time_pings(DRY_CALLS, 1, timeout_s)
        median = statistics.median(dry)
        longer = statistics.median(self._time_pings(_LONG_DRY_CALLS, _LONG_FLUSHES, timeout_s))
        self._flush_ns = max(0, int(longer - median) // (_LONG_FLUSHES - 1))
        late_ns = statistics.quantiles(dry, n=4)[-1] - median
        self.overhead_us = self._program.overhead_us + late_ns / 1e3

    def _time_pings(self, calls: int, flushes: int, timeout_s: float) -> list[int]:
        return [self._exchange(FrameKind.PING, 0, flushes, timeout_s).wall_ns for _ in range(calls)]


def runner_of(program: Program) -> type[Runner]:
    """The class that starts this program."""
    return DeviceRunner if program.has_own_memory else Runner
