# SPDX-License-Identifier: Apache-2.0
"""Has builds stand still while something is timed, and go on behind it.

What is built ahead uses a CPU that the running evaluation leaves free, and must not use one while
times are taken: its processes are stopped then, with all that they started.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..isolation.model import Job


class Standstill:
    """The builds of one workshop, and who wants them to stand still. For several threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held = 0
        self._jobs: list[Job] = []

    @contextmanager
    def work(self, start: Callable[[], Job]) -> Iterator[Job]:
        """A build, which begins as soon as nobody wants it to stand still; ended with the block."""
        with self._changed:
            while self._held:
                self._changed.wait()
            job = start()
            self._jobs.append(job)
        try:
            yield job
        finally:
            with self._changed:
                self._jobs.remove(job)
            job.kill()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """No build uses a CPU while the block runs, and none begins."""
        with self._changed:
            self._held += 1
            for job in self._jobs if self._held == 1 else ():
                job.stand()
        try:
            yield
        finally:
            with self._changed:
                self._held -= 1
                for job in self._jobs if not self._held else ():
                    job.go_on()
                self._changed.notify_all()
