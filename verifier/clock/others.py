# SPDX-License-Identifier: Apache-2.0
"""How much of the CPUs others take while a block is timed, as the kernel accounts for it (proc(5)).

A load of one thread slows a kernel that gives each CPU half of the work to twice its time, and a
library that hands out small parts to less: neither the library nor a copy tells of it for certain.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress

from ...sandbox.run.process import cpu_ns

OTHERS = "others"
"""Under this name it stands in a block, beside the sides."""
TAKEN = 0.2
"""CPUs that others may take. Ticks of 4 ms tell it to 0.06 in half a second (deviation)."""
_BUSY = (0, 1, 2, 5, 6, 7)
"""Columns of a CPU's line: user, nice, system, irq, softirq, steal."""


class Others:
    """From its making on: what others take of these CPUs while these processes run."""

    def __init__(self, cpus: tuple[int, ...], own: Iterable[int]) -> None:
        """`own`: processes of both sides; this one is another of them."""
        self._cpus = {f"cpu{number}" for number in cpus}
        self._own = tuple(own)
        self._before = self._read()

    def share(self) -> float:
        """CPUs that others took, in the mean since it was made; 0 where nobody tells."""
        now = self._read()
        if now is None or self._before is None:
            return 0.0
        wall, busy, own = (b - a for a, b in zip(self._before, now, strict=True))
        return max(0.0, (busy - own) / max(wall, 1e-3))

    def _read(self) -> tuple[float, float, float] | None:
        """Seconds: of the wall, of all that ran on the CPUs, and of ours."""
        with suppress(OSError, ValueError, IndexError):
            own = (time.process_time_ns() + sum(map(cpu_ns, self._own))) / 1e9
            with open("/proc/stat", encoding="ascii") as lines:
                rows = [line.split() for line in lines]
            ticks = [[int(row[1 + at]) for at in _BUSY] for row in rows if row[0] in self._cpus]
            return time.monotonic(), sum(map(sum, ticks)) / os.sysconf("SC_CLK_TCK"), own
        return None
