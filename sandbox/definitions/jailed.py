# SPDX-License-Identifier: Apache-2.0
"""A process of ours that runs a user's code: as `isolation/trusted.py`, and in a jail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import IO

from ..builders.workshop import Workshop
from ..isolation.model import Confinement, Limits, Outcome

LIMITS = Limits(
    # It lives as long as the referee does.
    wall_s=30 * 86_400.0,
    cpu_s=30 * 86_400.0,
    memory_bytes=32 << 30,
    file_bytes=1 << 30,
    temporary_bytes=4 << 30,
    processes=1024,
    open_files=1024,
)


class JailedTree:
    """One such process with everything that it starts."""

    def __init__(
        self, workshop: Workshop, command: Sequence[str], confinement: Confinement, words: IO[bytes]
    ) -> None:
        """Starts it; what it wrote on stderr goes to `words` in the end. Raises SandboxError."""
        # A driver pins memory, and keeps files of its own in it.
        limits = (
            replace(LIMITS, locked_bytes=None, file_bytes=64 << 30)
            if confinement.devices
            else LIMITS
        )
        self._job = workshop.jail.start(command, confinement, limits)
        self._words = words
        self._outcome: Outcome | None = None

    @property
    def pid(self) -> int:
        """The process itself."""
        return self._job.pid

    def wait(self, within_s: float) -> int:
        """Its exit status, once nothing of it is left; after that time it is ended."""
        self._keep(self._job.wait(within_s))
        assert self._outcome is not None
        return self._outcome.code

    def close(self) -> None:
        """Kills all of it, and returns once nothing of it is left. May be called twice."""
        self._keep(self._job.kill())

    def _keep(self, outcome: Outcome) -> None:
        if self._outcome is None and not self._words.closed:
            self._words.write(outcome.stderr)
            self._words.flush()
        self._outcome = outcome
