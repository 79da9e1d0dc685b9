# SPDX-License-Identifier: Apache-2.0
"""How one campaign of a bench went: its credited speed-up, and what had been spent at each step.

A pure function of the campaign's events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ..agents.books.progress import Progress
from ..traces.events import Event, ModelReplied, ModelRequested
from .plan import BenchCampaign

TO_BE_TAKEN_UP = ("interrupted", "provider", "error")
"""Ends that were not the campaign's own."""


class Spent(NamedTuple):
    """What a campaign had spent, under the names of the caps."""

    evaluations: int
    seconds: float
    usd: float | None
    """None where a price is unknown."""
    tokens: int
    device_seconds: float


class ChampionStep(NamedTuple):
    """A change of champion: what had been spent by then, and what is credited from then on."""

    spent: Spent
    credited: float


@dataclass(frozen=True)
class Score:
    """One campaign's result. Without a verified winner its speed-up counts as 0."""

    trial: BenchCampaign
    campaign: str
    stopped_by: str
    credited: float
    spent: Spent
    calls: int
    """Requests sent to models."""
    replies: int
    by_status: dict[str, int]
    steps: tuple[ChampionStep, ...]

    @property
    def is_verified(self) -> bool:
        """Whether it found a correct kernel."""
        return self.credited > 0.0


def is_done(events: Iterable[Event]) -> bool:
    """Whether a campaign came to an end of its own."""
    finished = Progress(events).finished
    return finished is not None and finished.stopped_by not in TO_BE_TAKEN_UP


def score(trial: BenchCampaign, campaign: str, events: Iterable[Event]) -> Score:
    """The score of a campaign that is done."""
    progress, steps, champion = Progress(), [], None
    calls = replies = 0
    for event in events:
        progress.apply(event)
        calls += isinstance(event.payload, ModelRequested)
        replies += isinstance(event.payload, ModelReplied)
        if progress.champion != champion:
            champion = progress.champion
            steps.append(ChampionStep(_sum_spent(progress), progress.credited))
    return Score(
        trial=trial,
        campaign=campaign,
        stopped_by=progress.finished.stopped_by if progress.finished else "",
        credited=progress.credited,
        spent=_sum_spent(progress),
        calls=calls,
        replies=replies,
        by_status={str(status): count for status, count in progress.by_status.items()},
        steps=tuple(steps),
    )


def _sum_spent(progress: Progress) -> Spent:
    spending = progress.spending
    return Spent(
        evaluations=len(progress.candidates),
        seconds=progress.spent_s,
        usd=spending.usd,
        tokens=spending.tokens,
        device_seconds=spending.device_s,
    )
