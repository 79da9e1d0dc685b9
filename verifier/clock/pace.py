# SPDX-License-Identifier: Apache-2.0
"""What comes between timed calls: nothing more as usual, or what a workload's timing mode asks for;
and how many of them are made at a time.

CUDA-L2 (arXiv 2512.02551) times its kernels in two ways. Its offline mode is back to back and warm:
here each turn of a side begins with a call that does not count. Its server mode leaves pauses of
exponentially distributed length, in which clocks and caches cool down: here all processes stand
still in such a pause, behind threads that sweep memory on each CPU until the caches hold nothing
else. Both are the same for every side.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TypeVar

import numpy as np

from ...kernelbench.machine import caches
from ...kernelbench.manner import USUAL, Manner, Timing

T = TypeVar("T")
MEAN_PAUSE_S = 0.005
LONGEST_PAUSE_S = 4 * MEAN_PAUSE_S
UNKNOWN_CACHES = 64 << 20
"""Bytes, where the system tells none."""
SWEPT = 2
"""Times as much as the caches hold is written to, so that nothing else stays."""


class Pace:
    """Of the timed calls of a session."""

    def __init__(self, manner: Manner = USUAL, cpus: tuple[int, ...] = ()) -> None:
        """`cpus` are those that calls run on."""
        self.timing, self.instances = manner
        self._cpus = cpus
        self._lots = np.random.default_rng()
        self._sweepers: list[tuple[ThreadPoolExecutor, np.ndarray]] = []

    @property
    def uncounted(self) -> int:
        """Calls at the begin of each turn that do not count."""
        return int(self.timing is Timing.OFFLINE)

    def turn(self, calls: int) -> int:
        """How many inputs a turn of so many calls that count takes."""
        return self.instances * (self.uncounted + calls)

    def room(self, slots: int) -> int:
        """How many calls that count there can be in a turn on so many slots."""
        return 1 if self.is_cold else slots // self.instances - self.uncounted

    def together(self, calls: list[T]) -> list[list[T]]:
        """Of the calls of a turn those that are made at a time."""
        many = self.instances
        return [calls[at : at + many] for at in range(0, len(calls), many)]

    @property
    def is_warm(self) -> bool:
        """Whether a device's L2 cache is to hold the inputs of a call."""
        return self.timing is Timing.OFFLINE

    @property
    def is_cold(self) -> bool:
        """Whether there is a pause before each call: several in a sample tell nothing more."""
        return self.timing is Timing.SERVER

    def rest(self) -> None:
        """What comes between the inputs of a call and the call, while all processes stand still."""
        if not self.is_cold:
            return
        wait([pool.submit(_sweep, memory) for pool, memory in self._sweep_with()])
        pause_s = self._lots.exponential(MEAN_PAUSE_S)
        time.sleep(min(pause_s, LONGEST_PAUSE_S))

    def close(self) -> None:
        """Ends its threads."""
        for pool, _ in self._sweepers:
            pool.shutdown()
        self._sweepers = []

    def _sweep_with(self) -> list[tuple[ThreadPoolExecutor, np.ndarray]]:
        """A thread on each CPU, with its share of the memory."""
        if not self._sweepers:
            words = _share_bytes(len(self._cpus)) // 8
            for cpu in self._cpus:
                pool = ThreadPoolExecutor(1, initializer=os.sched_setaffinity, initargs=(0, {cpu}))
                self._sweepers.append((pool, np.zeros(words, np.uint64)))
        return self._sweepers


def _share_bytes(cpus: int) -> int:
    """What the thread of one of so many CPUs writes: more than its own caches hold, and together
    with the others more than one that they share."""
    shares = (cache.bytes // max(1, min(cache.sharing, cpus)) for cache in caches())
    return SWEPT * max(shares, default=UNKNOWN_CACHES)


def _sweep(memory: np.ndarray) -> None:
    np.add(memory, 1, out=memory)
