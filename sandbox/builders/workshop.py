# SPDX-License-Identifier: Apache-2.0
"""Where candidates are built and run: the jail, the folder that keeps what was made, the CPUs.

Opened once by whoever evaluates and handed on as one value. It builds nothing and starts nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..isolation.model import Jail
from .cache import BuildCache
from .standstill import Standstill


@dataclass(frozen=True)
class Workshop:
    """What every builder and every runner of one machine shares."""

    jail: Jail
    folder: Path
    """What is made once per machine lies here: builds, runners, headers, measured peaks."""
    cpus: tuple[int, ...] = ()
    """That candidates run on."""
    standstill: Standstill = field(default_factory=Standstill, compare=False)
    """Of builds, while something is timed."""

    @property
    def cache(self) -> BuildCache:
        """What was built."""
        return BuildCache(self.folder)
