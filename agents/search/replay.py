# SPDX-License-Identifier: Apache-2.0
"""Plays a strategy on a recorded space: what it would have found after how many evaluations."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass

from ...kernelbench.recorded import RecordedSpace
from .strategy import Strategy
from .told import Told

MOST = 400
"""Evaluations of one play; one that does not come close enough counts as many."""


@dataclass(frozen=True)
class Played:
    """One play."""

    asked: tuple[int, ...]
    """Points, in the order in which they were evaluated."""
    best_us: tuple[float, ...]
    """After each of them, the shortest time so far; infinite before the first that is right."""

    def count_until(self, limit_us: float) -> int | None:
        """How many evaluations it took to come this close; None: it did not."""
        return next((n for n, best in enumerate(self.best_us, 1) if best <= limit_us), None)


def play(
    recorded: RecordedSpace, strategy: Strategy, most: int = MOST, until_us: float = 0.0
) -> Played:
    """Asks and tells one point at a time, and ends the strategy.

    Args:
        until_us: It ends once a time is this short.
    """
    asked: list[int] = []
    best: list[float] = []
    with closing(strategy):
        while len(asked) < most and (points := strategy.ask(1)):
            point = points[0]
            time = recorded.times_us[point]
            strategy.tell([Told(point, None if time is None else math.log(time))])
            asked.append(point)
            best.append(min(best[-1] if best else math.inf, math.inf if time is None else time))
            if best[-1] <= until_us:
                break
    return Played(tuple(asked), tuple(best))
