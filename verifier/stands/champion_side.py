# SPDX-License-Identifier: Apache-2.0
"""The champion as a side that is timed: at its own risk, and held against the truth as ever.

That it was right as a candidate does not mean that it is as the champion: a source can tell the
time. What goes wrong in its process is its own failure (rivalry.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ...kernelbench.problem import Structure
from ...sandbox.run.process import RunFault
from ...traces.records import CHAMPION, Check
from ..clock.answers import Answer
from ..clock.timed_sides import CandidateSide
from ..failure import ChampionFailed, Failed
from ..truth.trials import Item

JUDGED, QUICKLY_JUDGED = 6, 2
"""Calls of the champion, in each block, that are held against the truth; in a quick look fewer."""


class ChampionSide:
    """Times the champion; what goes wrong with it is no failure of the candidate."""

    name = CHAMPION

    def __init__(self, side: CandidateSide, *, is_quick: bool = False) -> None:
        self._side = side
        self._judged = QUICKLY_JUDGED if is_quick else JUDGED

    @property
    def pid(self) -> int:
        """Its process."""
        return self._side.pid

    @property
    def waited(self) -> float:
        """See Side."""
        return self._side.waited

    def place_at(self, shift: int, structure: Structure, count: int) -> None:
        """See CandidateSide. Raises ChampionFailed."""
        with champions_own():
            self._side.place_at(shift, structure, count)
        self._side.judge(self._judged)

    def take(self, items: list[Item], first: int) -> float:
        """See Side. Raises ChampionFailed."""
        with champions_own():
            return self._side.take(items, first)

    def answers(self) -> list[Answer]:
        """See CandidateSide."""
        return self._side.answers()


def blame_champion(check: Check) -> ChampionFailed:
    """By an answer of it that was wrong as it was timed."""
    failed = Failed.of_answer(check)
    return ChampionFailed(failed.status, failed.reason)


@contextmanager
def champions_own() -> Iterator[None]:
    """What fails inside is raised as the champion's failure."""
    try:
        yield
    except (RunFault, Failed) as failed:
        raise ChampionFailed(failed.status, failed.reason) from failed
