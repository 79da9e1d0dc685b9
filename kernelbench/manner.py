# SPDX-License-Identifier: Apache-2.0
"""How calls of a workload are timed: what comes between two, and how many are made at a time.

What stands behind a workload's name says it: `512@server`, `512@x2`, `512@x2@offline`.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple, Self


class Timing(StrEnum):
    """How calls that are timed follow each other; the two modes are those of CUDA-L2
    (arXiv 2512.02551), told by what a caller does between two calls."""

    USUAL = ""
    """Each call follows one of somebody else. On a device its L2 cache is cold."""
    OFFLINE = "offline"
    """Back to back: each call follows one of the same side, and as much of its inputs is in the
    caches as they hold."""
    SERVER = "server"
    """Cold: nothing is in the caches, and before each call there is a pause of random length."""


TIMED = {
    Timing.OFFLINE: "timed back to back, its inputs in the caches as far as they fit",
    Timing.SERVER: "timed with cold caches, behind pauses of random length",
}
"""In words, as a workload's note has them."""
MOST_INSTANCES = 16
_INSTANCES = re.compile(r"x([2-9]|1[0-6])")


class Manner(NamedTuple):
    """How the calls of a workload are timed."""

    timing: Timing = Timing.USUAL
    instances: int = 1
    """So many calls at a time, each with a tensor set of its own and its share of the CPUs: a batch
    as Packrat serves it (arXiv 2311.18174), timed until the last has answered."""

    @classmethod
    def split(cls, name: str) -> tuple[str, Self]:
        """`512@x2@server` → what is named, and how it is timed; who says one of them twice has
        named something else."""
        timing, instances, base = Timing.USUAL, 1, name
        while True:
            rest, at, last = base.rpartition("@")
            found = _INSTANCES.fullmatch(last)
            if not at or not (found or last in TIMED):
                return base, cls(timing, instances)
            if found and instances == 1:
                instances = int(found[1])
            elif not found and timing is Timing.USUAL:
                timing = Timing(last)
            else:
                return name, cls()
            base = rest

    @property
    def suffix(self) -> str:
        """What says it behind a name."""
        several = f"@x{self.instances}" if self.instances > 1 else ""
        return several + (f"@{self.timing}" if self.timing else "")

    @property
    def words(self) -> str:
        """What a note says of it."""
        several = f"{self.instances} calls at a time in one process, each on its share of the CPUs"
        told = (several if self.instances > 1 else "", TIMED.get(self.timing, ""))
        return ", ".join(filter(None, told))


USUAL = Manner()
