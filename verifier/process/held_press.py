# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a process is started: who is cut off there has started one that nobody knows of."""

from __future__ import annotations

import signal
import threading
from types import FrameType


class HeldPress:
    """From its making on a Ctrl-C waits, until `release`; in a thread that hears none it does
    nothing."""

    def __init__(self) -> None:
        self._has_come = False
        self._hears = threading.current_thread() is threading.main_thread()
        if self._hears:
            self._before = signal.signal(signal.SIGINT, self._hold) or signal.SIG_DFL

    def _hold(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._has_come = True

    def release(self) -> None:
        """What has come is heard now, by whoever heard it before; may be called twice."""
        if not self._hears:
            return
        self._hears = False
        signal.signal(signal.SIGINT, self._before)
        if self._has_come:
            signal.raise_signal(signal.SIGINT)
