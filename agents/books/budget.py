# SPDX-License-Identifier: Apache-2.0
"""What a campaign may spend: hard caps on evaluations, seconds, dollars, tokens, device time.

It knows figures and a clock that it is given. What was spent before a resume comes from the
campaign's events, so that stopping and resuming never gives more than was allowed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from ...errors import UsageError
from ...traces.spending import Spending
from ..model import CostBound, Model, TokenUsage

Clock = Callable[[], float]
"""Seconds, rising; only differences mean anything."""

CAPS = ("evaluations", "seconds", "usd", "tokens", "device_seconds")
"""What may be limited."""


CAPS_OF_WORK = ("evaluations", "seconds", "device_seconds")
"""What every Coder uses up. Who asks no model spends no dollar and no token, however long."""


class Remaining(NamedTuple):
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


def check_priced(limits: Mapping[str, float], models: Iterable[Model]) -> None:
    """A cap on dollars needs to know what every model costs.

    Raises:
        UsageError: for a model whose price is unknown, with the remedy.
    """
    if "usd" not in limits:
        return
    for model in models:
        if model.cost(TokenUsage(prompt_tokens=1, completion_tokens=1)) is None:
            raise UsageError(
                f"the price of {model.name} is not known, so that a limit in dollars cannot hold",
                hint="give its price in your price file, or limit tokens: --max-tokens N",
            )


class Budget:
    """Answers, before every step, whether it may begin."""

    def __init__(
        self,
        limits: Mapping[str, float],
        *,
        spent_s: float = 0.0,
        spending: Spending | None = None,
        clock: Clock = time.monotonic,
        keep_s: Callable[[float], float] = lambda _limit_s: 0.0,
    ) -> None:
        """Args:
        keep_s: Of a limit of seconds, how many are kept until `spend_all`.
        """
        self._keep_s = keep_s
        self._limits = check_limits(limits)
        self._spending = spending or Spending()
        self._spent_before_s = spent_s
        self._clock = clock
        self._began = clock()

    @property
    def spent_s(self) -> float:
        """Seconds of work, over every process that worked on the campaign."""
        return self._spent_before_s + self._clock() - self._began

    def spend_all(self) -> float:
        """From here on what was kept may be spent; gives how many seconds these are."""
        seconds = self._limit("seconds")
        kept_s = 0.0 if math.isinf(seconds) else self._keep_s(seconds)
        self._keep_s = lambda _limit_s: 0.0
        return kept_s

    def compute_remaining(self, candidates: int) -> Remaining:
        """What is left once `candidates` have been taken on.

        An evaluation is one candidate: its confirmation in a fresh process belongs to it.
        """
        seconds = self._limit("seconds")
        kept_s = 0.0 if math.isinf(seconds) else self._keep_s(seconds)
        return Remaining(self._limit("evaluations") - candidates, seconds - kept_s - self.spent_s)

    def why_stopped(self, candidates: int) -> str | None:
        """The cap that forbids another candidate, or None."""
        left = self.compute_remaining(candidates)
        # A fractional rest buys no evaluation.
        if left.evaluations < 1:
            return "evaluations"
        return self.why_out_of_time()

    def why_out_of_time(self) -> str | None:
        """The cap on time after which even an evaluation that is owed may not begin."""
        if self.compute_remaining(0).seconds <= 0:
            return "seconds"
        # As with seconds, an evaluation that runs is not cut: at most the last one passes the cap.
        return (
            "device_seconds" if self._spending.device_s >= self._limit("device_seconds") else None
        )

    def why_refused(self, bound: CostBound) -> str | None:
        """The cap that one more call of a model could pass, at its worst, or None.

        What open calls reserved counts as spent. The caller makes sure that nobody reserves
        between this answer and the record of the reservation.
        """
        spending = self._spending
        if spending.tokens + spending.reserved_tokens + bound.tokens > self._limit("tokens"):
            return "tokens"
        usd = spending.priced_usd + spending.reserved_usd + (bound.usd or 0.0)
        return "usd" if usd > self._limit("usd") else None

    def _limit(self, name: str) -> float:
        return self._limits.get(name, math.inf)
