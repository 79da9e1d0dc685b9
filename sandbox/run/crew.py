# SPDX-License-Identifier: Apache-2.0
"""Threads beside the first of a process that runs Python: some sleep, and some make calls.

It imports nothing of the package: the runner loads it from beside itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence


def do_nothing() -> None:
    """What a thread does before its first call, where there is nothing to do."""


class Crew:
    """Makes calls at the same time, as crew.hpp does: a thread for each instance beyond the first,
    which is whoever asks.

    Each is bound to its share of the CPUs, and with it whatever it starts. Between calls they
    sleep.
    """

    def __init__(
        self,
        instances: int,
        cpus: Sequence[int],
        begin: Callable[[], object] = do_nothing,
    ) -> None:
        """Each of the other threads calls `begin`; whoever asks is bound as it works."""
        share = len(cpus) // instances
        self._shares = [cpus[at * share : (at + 1) * share] for at in range(instances)]
        self._begin = begin
        self._calls: Sequence[Callable[[], object]] = ()
        self._errors: list[BaseException] = []
        self._go = [threading.Semaphore(0) for _ in range(instances - 1)]
        self._done = [threading.Semaphore(0) for _ in range(instances - 1)]
        for at in range(1, instances):
            threading.Thread(target=self._serve, args=(at,), daemon=True).start()
        self._is_bound = False

    def bind(self) -> None:
        """Binds this thread as the first."""
        os.sched_setaffinity(0, self._shares[0])
        self._is_bound = True

    def work(self, calls: Sequence[Callable[[], object]]) -> None:
        """Makes them at the same time; returns once all are done. Raises what one of them does."""
        self._calls = calls
        for go in self._go:
            go.release()
        if not self._is_bound:
            self.bind()
        try:
            calls[0]()
        finally:
            for done in self._done:
                done.acquire()
        if self._errors:
            raise self._errors[0]

    def _serve(self, at: int) -> None:
        os.sched_setaffinity(0, self._shares[at])
        self._begin()
        while True:
            self._go[at - 1].acquire()
            try:
                self._calls[at]()
            except BaseException as error:  # whoever asked raises it
                self._errors.append(error)
            self._done[at - 1].release()


class Sleepers:
    """Threads that sleep as those of a pool do, each bound to a CPU beyond this thread's.

    The referee measures what it takes to stop and to wake them. They are gone, and this thread is
    free again, before the candidate is loaded.
    """

    def __init__(self) -> None:
        self.cpus = os.sched_getaffinity(0)
        self.bed = threading.Lock()
        self.threads: list[threading.Thread] = []

    def start(self) -> None:
        """They lie down."""
        self.bed.acquire()
        first, *others = sorted(self.cpus)
        os.sched_setaffinity(0, {first})
        for cpu in others:
            self.threads.append(threading.Thread(target=self.sleep, args=(cpu,)))
            self.threads[-1].start()

    def sleep(self, cpu: int) -> None:
        """Until all may go."""
        os.sched_setaffinity(0, {cpu})
        with self.bed:
            pass

    def end(self) -> None:
        """They are gone."""
        if self.bed.locked():
            self.bed.release()
        for thread in self.threads:
            thread.join()
        os.sched_setaffinity(0, self.cpus)
