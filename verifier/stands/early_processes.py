# SPDX-License-Identifier: Apache-2.0
"""The processes of a quick look's timing, begun while the candidate is still tried.

A jail takes as long to come up as a handful of timed rounds. Until it is told to load a candidate
a process holds none and waits asleep, so that it disturbs nothing that is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NamedTuple

from ...errors import SandboxError
from ...sandbox.isolation.model import Job
from ...sandbox.run.arena import Arena
from ...sandbox.run.begun import Begun


class Early(NamedTuple):
    """A process, and the layout of memory that it will be called in."""

    arena: Arena
    begun: Begun


class EarlyProcesses:
    """At most one of each name, until it is taken; to be closed. For one thread."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._begun: dict[str, Future[Early]] = {}

    def begin(self, name: str, start: Callable[[], Early]) -> None:
        """Has it started in the background."""
        self._begun[name] = self._pool.submit(start)

    def take(self, name: str) -> Early | None:
        """The process of this name, which is the caller's to close; None: there is none.

        Raises SandboxError where it did not start.
        """
        started = self._begun.pop(name, None)
        return started.result() if started else None

    def jobs(self) -> list[Job]:
        """Of those that nobody took; waits until they have started. One that did not has none."""
        begun = [started for started in self._begun.values() if not started.exception()]
        return [started.result().begun.job for started in begun]

    def close(self) -> None:
        """Ends those that nobody took."""
        for name in list(self._begun):
            with suppress(SandboxError):
                if early := self.take(name):
                    early.begun.close()
        self._pool.shutdown()
