# SPDX-License-Identifier: Apache-2.0
"""What a campaign's calls of models and its evaluations cost, folded from its events.

The same fold serves the budget of a running campaign and whoever shows a finished one. A request
without an answer counts as reserved: what it may cost at most.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from ..errors import StorageError
from .events import (
    CandidateCounted,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    ModelFailed,
    ModelReplied,
    ModelRequested,
)

BUILD = "build"
"""The part of an evaluation that needs a compiler and no device."""


OUTCOME_UNKNOWN = "outcome unknown"
"""The fault of an attempt whose process died before its answer was recorded."""


class Booked(NamedTuple):
    """What counts as spent although nobody knows whether it was: attempts without an answer."""

    attempts: int = 0
    tokens: int = 0
    usd: float | None = 0.0
    """None where the price of some of it is unknown."""

    def and_one(self, failed: ModelFailed) -> Booked:
        """With one more attempt."""
        unknown = self.usd is None or failed.usd is None
        usd = None if unknown else (self.usd or 0.0) + (failed.usd or 0.0)
        return Booked(self.attempts + 1, self.tokens + failed.tokens, usd)


@dataclass
class SpentCall:
    """One call of a model and how it stands."""

    requested: ModelRequested
    """The last attempt."""
    replied: ModelReplied | None = None
    failed: ModelFailed | None = None
    """How the last attempt failed, if it did."""


def never_asked(event: Event, call: str) -> StorageError:
    """The error of an event that settles a call which no event before it began."""
    return StorageError(
        f"event {event.seq} ({event.payload.kind}) of campaign {event.campaign} settles a call of "
        f"a model, {call[:12]}, that no event before it asked for",
        hint="the store was cut or changed by something else: take its last backup, or start a new "
        "campaign",
    )


@dataclass
class Spending:
    """The fold. `apply` every event in order; read the rest."""

    calls: dict[str, SpentCall] = field(default_factory=dict)
    tokens: int = 0
    priced_usd: float = 0.0
    """What was paid at known prices."""
    unpriced: int = 0
    """Paid answers whose price nobody knows."""
    booked: Booked = Booked()
    """What of all this is booked for attempts whose outcome nobody knows."""
    is_estimated: bool = False
    """Whether any figure was not told by a server."""
    device_s: float = 0.0
    """Seconds of evaluations, without their builds."""
    _evaluating_since: float = 0.0
    _open: dict[str, ModelRequested] = field(default_factory=dict)
    """By call: attempts that have no answer."""

    @property
    def usd(self) -> float | None:
        """US dollars; None where some of it is unknown: an unknown price is never taken for 0."""
        return None if self.unpriced else self.priced_usd

    @property
    def open_calls(self) -> list[ModelRequested]:
        """Attempts that have no answer."""
        return list(self._open.values())

    @property
    def reserved_tokens(self) -> int:
        """What the open attempts may take at most."""
        return sum(request.reserved_tokens for request in self._open.values())

    @property
    def reserved_usd(self) -> float:
        """What the open attempts may cost at most, where prices are known."""
        return sum(request.reserved_usd or 0.0 for request in self._open.values())

    def apply(self, event: Event) -> None:
        """Takes in one event."""
        match event.payload:
            case ModelRequested() as requested:
                self.calls[requested.call] = SpentCall(requested)
                self._open[requested.call] = requested
            case ModelReplied() as replied:
                self._settle(event, replied.call).replied = replied
                self.is_estimated |= replied.is_estimated
                self._book(replied.tokens, replied.usd)
            case ModelFailed() as failed:
                self._settle(event, failed.call).failed = failed
                self.is_estimated |= failed.tokens > 0
                self._book(failed.tokens, failed.usd)
                if failed.tokens or failed.usd is None or failed.usd > 0:
                    self.booked = self.booked.and_one(failed)
            case EvaluationStarted():
                self._evaluating_since = event.at
            case EvaluationFinished(verdict=verdict):
                took_s = event.at - self._evaluating_since - verdict.seconds.get(BUILD, 0.0)
                self.device_s += max(0.0, took_s)
            case CandidateCounted(took_s=took_s):
                self.device_s += took_s

    def _settle(self, event: Event, call: str) -> SpentCall:
        if call not in self.calls:
            raise never_asked(event, call)
        self._open.pop(call, None)
        return self.calls[call]

    def _book(self, tokens: int, usd: float | None) -> None:
        self.tokens += tokens
        self.priced_usd += usd or 0.0
        self.unpriced += usd is None
