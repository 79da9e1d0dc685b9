# SPDX-License-Identifier: Apache-2.0
"""Known ways of looking fast without doing the work (`hack_cases.toml`), and those near a source.

For showing to a model beside a surprising candidate. What a candidate did is for the referee.
"""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

PACKAGED = Path(__file__).with_name("hack_cases.toml")


@dataclass(frozen=True)
class HackCase:
    """One way, with what sources that take it tend to hold."""

    name: str
    words: str
    signs: tuple[re.Pattern[str], ...]

    def count_matches(self, source: str) -> int:
        """How many of its signs stand in the source."""
        return sum(sign.search(source) is not None for sign in self.signs)


@functools.cache
def cases() -> tuple[HackCase, ...]:
    """All of them, in the file's order."""
    content = tomllib.loads(PACKAGED.read_text("utf-8"))
    return tuple(
        HackCase(name, each["words"], tuple(re.compile(sign) for sign in each["signs"]))
        for name, each in content.items()
    )


def find_nearest(source: str, count: int) -> tuple[HackCase, ...]:
    """The cases whose signs the source has most of; of equals, the first of the file."""
    return tuple(sorted(cases(), key=lambda case: -case.count_matches(source))[:count])
