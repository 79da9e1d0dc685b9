# SPDX-License-Identifier: Apache-2.0
"""What earlier campaigns of a home know of a problem's knobs: points for the next to begin with.

Of each campaign on the same problem, target and language the fastest right candidates, by its own
scale; workloads and machines may differ. A point is only where to begin: it is built, verified and
timed as any other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Protocol

from pydantic import JsonValue, TypeAdapter

from ...kernelbench.recipe import KnobValue
from ...traces.events import CampaignStarted, Event
from ...traces.records import Record
from .progress import Progress

CAMPAIGNS = 8
"""The latest that are asked."""
OF_EACH = 3
MOST = 6
"""Points: as many candidates as a search of a minute can spare."""


class PastPoint(Record):
    """A recipe's knobs that were fast once."""

    family: str
    knobs: dict[str, KnobValue]
    campaign: str
    """Where it was found."""


_POINTS = TypeAdapter(tuple[PastPoint, ...])


class PastCampaigns(Protocol):
    """What is asked of a store."""

    def starts(self) -> Iterator[tuple[str, CampaignStarted]]:
        """Every campaign with its first event, oldest first."""

    def events(self, campaign: str, after: int = 0) -> list[Event]:
        """The campaign's events in order."""


def find_past(
    store: PastCampaigns, problem: str, target: str, language: str, workload: str
) -> tuple[PastPoint, ...]:
    """The points to begin with: every campaign's best before any second best, those on the same
    workload first, then the latest."""
    asked = (problem, target, language)
    alike = [
        (started.workload == workload, at, campaign)
        for at, (campaign, started) in enumerate(store.starts())
        if (started.problem, started.target, started.language) == asked
    ]
    chosen = [campaign for _, _, campaign in sorted(alike, reverse=True)[:CAMPAIGNS]]
    ranked = [_rank(campaign, store.events(campaign)) for campaign in chosen]
    points: dict[tuple[str, frozenset[tuple[str, KnobValue]]], PastPoint] = {}
    for point in itertools.chain.from_iterable(itertools.zip_longest(*ranked)):
        if point is not None:
            points.setdefault((point.family, frozenset(point.knobs.items())), point)
    return tuple(points.values())[:MOST]


def past_of(started: CampaignStarted) -> tuple[PastPoint, ...]:
    """Those that a campaign was begun with."""
    return _POINTS.validate_python(started.config.get("past", ()))


def dump_past(points: tuple[PastPoint, ...]) -> JsonValue:
    """For a campaign's first event."""
    dumped: JsonValue = _POINTS.dump_python(points, mode="json")
    return dumped


def _rank(campaign: str, events: list[Event]) -> list[PastPoint]:
    """A campaign's fastest points, the fastest first."""
    progress = Progress(events)
    speeds = {
        each.candidate: speed
        for each in progress.candidates.values()
        if each.given_knobs and each.is_sound()
        if (speed := progress.standing_of(each)) is not None
    }
    best = sorted(speeds, key=lambda candidate: -speeds[candidate])[:OF_EACH]
    found = (progress.get_candidate(candidate) for candidate in best)
    return [
        PastPoint(family=each.family, knobs=dict(each.given_knobs), campaign=campaign)
        for each in found
    ]
