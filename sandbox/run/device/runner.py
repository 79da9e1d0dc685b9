# SPDX-License-Identifier: Apache-2.0
"""A started device runner: what its process is asked beyond a runner that shares our memory.

Tensors are copied to the device for a call and their outputs back after it, and no gate is watched.
All host code is ours, so that its CPU time is nobody's work; what can be wrong is the time. The
device's own events tell it, the runner's host clock is told beside them, and the referee's clock is
taken around the call, less what a dry call took before the candidate was loaded: the same flushes,
the same events, no launches. Waking up takes now and then longer than a short kernel: the median
dry call is taken off, and how far they lie apart is time that an honest answer may need.
"""

from __future__ import annotations

import math
import secrets
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

from ...frames import Frame, FrameKind, now_ns
from ..process import Runner, Timed
from ..program import Program

DRY_CALLS = 31
_LONG_DRY_CALLS, _LONG_FLUSHES = 5, 9
"""Calls that tell what one flush more takes, and the flushes in each."""
LAUNCH_US = 10.0
"""Twice what a host takes to enqueue a launch: the flushes of a call last that long for each, as a
baseline's last twice what it takes to enqueue (verifier/baselines/device.py)."""
MOST_FLUSHES = 64
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
    _dry_ns = 0
    _flush_ns = 0
    _flushes = 1

    def expect(self, table: bytes) -> None:
        """See Runner: while the flushes run, the host enqueues the launches of the table."""
        needed_ns = 1e3 * LAUNCH_US * int.from_bytes(table[:8], "little")
        flush_ns = max(self._flush_ns, 1000)
        self._flushes = max(1, min(MOST_FLUSHES, math.ceil(needed_ns / flush_ns)))

    def call(
        self, slot: int, *, timeout_s: float, release: Callable[[], None] | None = None
    ) -> Timed:
        """Runs one placed slot. Raises RunFault.

        It is copied to the device only now: no kernel finds the inputs of a later call there.
        """
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
        told_with = flushes if kind is FrameKind.CALL else count
        done = self._exchange(kind, first, told_with, timeout_s)
        dry_ns = self._dry_ns + (flushes - 1) * self._flush_ns
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

    def _measure_empty(self, timeout_s: float, write: Callable[[], None] | None) -> None:
        """What a call takes besides its kernels; nothing is left for the referee to take off."""
        del write
        dry = self._time_pings(DRY_CALLS, 1, timeout_s)
        self._dry_ns = int(statistics.median(dry))
        longer = statistics.median(self._time_pings(_LONG_DRY_CALLS, _LONG_FLUSHES, timeout_s))
        self._flush_ns = max(0, int(longer - self._dry_ns) // (_LONG_FLUSHES - 1))
        late_ns = statistics.quantiles(dry, n=4)[-1] - self._dry_ns
        self.overhead_us = self._program.overhead_us + late_ns / 1e3

    def _time_pings(self, calls: int, flushes: int, timeout_s: float) -> list[int]:
        return [self._exchange(FrameKind.PING, 0, flushes, timeout_s).wall_ns for _ in range(calls)]


def runner_of(program: Program) -> type[Runner]:
    """The class that starts this program."""
    return DeviceRunner if program.has_own_memory else Runner
