# SPDX-License-Identifier: Apache-2.0
"""A process of ours with everything that it starts: it ends as one, and with us.

Nothing is confined. A supervisor stands above it, as above a job (`supervised.py`), so that
whatever sessions and groups it makes, nothing of it runs on once it is closed, or once we are gone.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from .ending import has_ended
from .job import Ending, Streams
from .supervisor import SupervisedOrder, launch


class TrustedTree:
    """One such process, started where we are."""

    def __init__(
        self, command: Sequence[str], env: Mapping[str, str], fds: Sequence[int], words: int
    ) -> None:
        """Starts it; what it writes on stderr goes to `words`. Raises SandboxError."""
        order = SupervisedOrder(
            command=tuple(command),
            env=dict(env),
            cwd=str(Path.cwd()),
            fds=tuple(fds),
            cpus=(),
            rlimits=(),
        )
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            self._launched = launch(order, Streams(nowhere, words))
        finally:
            os.close(nowhere)
        self._ending: Ending | None = None

    @property
    def pid(self) -> int:
        """The process itself."""
        return self._launched.pid

    def wait(self, within_s: float) -> int:
        """Its exit status, once nothing of it is left. Raises subprocess.TimeoutExpired."""
        if self._ending is None:
            gone = os.pidfd_open(self._launched.anchor)
            try:
                if not has_ended(gone, within_s):
                    raise subprocess.TimeoutExpired("", within_s)
            finally:
                os.close(gone)
            self._ending = self._launched.reap()
        return os.waitstatus_to_exitcode(self._ending.status)

    def close(self) -> None:
        """Kills all of it, and returns once nothing of it is left. May be called twice."""
        if self._ending is None:
            self._launched.end()
            self._ending = self._launched.reap()
