"""What a campaign may spend: hard caps on evaluations and seconds.

It knows figures and a clock that it is given. What was spent before a resume comes from the
campaign's history, so that stopping and resuming never gives more than was allowed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..errors import UsageError

Clock = Callable[[], float]
"""Seconds, rising; only differences mean anything."""

CAPS = ("evaluations", "seconds", "usd")
"""What may be limited. Nothing is paid for while both brains are rules, so `usd` stays at 0."""


class Left(NamedTuple):
    """What may still be spent; infinity where there is no cap."""

    evaluations: float
    seconds: float


def check_limits(limits: Mapping[str, float]) -> dict[str, float]:
    """The limits, if each is a known cap with a positive, finite value.

    Raises:
        UsageError: for an unknown cap or a value that cannot limit anything.
    """
    for name, value in limits.items():
        if name not in CAPS:
            raise UsageError(f"there is no limit named '{name}'", hint=f"known: {', '.join(CAPS)}")
        if not (math.isfinite(value) and value > 0):
            raise UsageError(
                f"the limit '{name}' must be a positive number, not {value}",
                hint="leave it out for no limit",
            )
    return dict(limits)


class Budget:
    """Answers, before every step, whether it may begin."""

    def __init__(
        self,
        limits: Mapping[str, float],
        *,
        spent_s: float = 0.0,
        clock: Clock = time.monotonic,
    ) -> None:
        self._limits = check_limits(limits)
        self._spent_before_s = spent_s
        self._clock = clock
        self._began = clock()

    @property
    def spent_s(self) -> float:
        """Seconds of work, over every process that worked on the campaign."""
        return self._spent_before_s + self._clock() - self._began

    def left(self, candidates: int) -> Left:
        """What is left once `candidates` have been taken on.

        An evaluation is one candidate: its confirmation in a fresh process belongs to it.
        """
        return Left(
            self._limits.get("evaluations", math.inf) - candidates,
            self._limits.get("seconds", math.inf) - self.spent_s,
        )

    def why_stopped(self, candidates: int) -> str | None:
        """The cap that forbids another candidate, or None."""
        left = self.left(candidates)
        # A fractional rest buys no evaluation.
        if left.evaluations < 1:
            return "evaluations"
        return self.why_out_of_time()

    def why_out_of_time(self) -> str | None:
        """`seconds` where even an evaluation that is already paid for may not begin."""
        return "seconds" if self.left(0).seconds <= 0 else None
