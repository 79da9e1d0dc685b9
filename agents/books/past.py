# SPDX-License-Identifier: Apache-2.0
"""What earlier campaigns of a home know of a problem's knobs: points for the next to begin with.

Of each campaign on the same problem, target and language the fastest right candidates, by its own
scale; workloads and machines may differ. A point is only where to begin: it is built, verified and
timed as any other. What the nearest of those campaigns measured is told to the search, too, as of
another task (search/expected_gain.py): what holds here as well it finds out.
"""

from __future__ import annotations

import itertools
import math
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
LEARNED = 2
"""Campaigns whose measurements are told."""
LEARNED_FAST, LEARNED_OTHERS = 25, 15
"""Of each the fastest, and some of the others: a model takes the cube of their number."""


class PastPoint(Record):
    """A recipe's knobs that were fast once."""

    family: str
    knobs: dict[str, KnobValue]
    campaign: str
    """Where it was found."""


class SeenPoint(PastPoint):
    """What one showed."""

    value: float | None
    """The logarithm of its time over the fastest baseline's, there; None: it was not right."""
    error: float = 0.0
    """Standard error of the value."""


class Past(Record):
    """What a campaign is begun with."""

    first: tuple[PastPoint, ...] = ()
    """To be tried first."""
    seen: tuple[tuple[SeenPoint, ...], ...] = ()
    """By campaign, the nearest one first."""


_FIRST = TypeAdapter(tuple[PastPoint, ...])


class PastCampaigns(Protocol):
    """What is asked of a store."""

    def starts(self) -> Iterator[tuple[str, CampaignStarted]]:
        """Every campaign with its first event, oldest first."""

    def events(self, campaign: str, after: int = 0) -> list[Event]:
        """The campaign's events in order."""


def find_past(
    store: PastCampaigns, problem: str, target: str, language: str, workload: str
) -> Past:
    """The points to begin with, every campaign's best before any second best, and what was seen:
    campaigns on the same workload first, then the latest. An evaluation of a file has no knobs."""
    asked = (problem, target, language)
    alike = [
        (started.workload == workload, at, campaign)
        for at, (campaign, started) in enumerate(store.starts())
        if (started.problem, started.target, started.language) == asked
        and not started.is_evaluation
    ]
    chosen = [campaign for _, _, campaign in sorted(alike, reverse=True)[:CAMPAIGNS]]
    known = [(campaign, Progress(store.events(campaign))) for campaign in chosen]
    ranked = [_rank(campaign, progress) for campaign, progress in known]
    seen = (_list_seen(campaign, progress) for campaign, progress in known)
    points: dict[tuple[str, frozenset[tuple[str, KnobValue]]], PastPoint] = {}
    for point in itertools.chain.from_iterable(itertools.zip_longest(*ranked)):
        if point is not None:
            points.setdefault((point.family, frozenset(point.knobs.items())), point)
    first = tuple(points.values())[:MOST]
    return Past(first=first, seen=tuple(itertools.islice(filter(None, seen), LEARNED)))


def past_of(started: CampaignStarted) -> Past:
    """What a campaign was begun with."""
    found = started.config.get("past", {})
    if isinstance(found, list):  # of releases that told points alone
        return Past(first=_FIRST.validate_python(found))
    return Past.model_validate(found)


def dump_past(past: Past) -> JsonValue:
    """For a campaign's first event."""
    dumped: JsonValue = past.model_dump(mode="json")
    return dumped


def _list_seen(campaign: str, progress: Progress) -> tuple[SeenPoint, ...]:
    """What a campaign measured of points: its fastest, and every so many of the others; nothing
    where nothing was right."""
    seen = [
        SeenPoint(
            family=each.family,
            knobs=dict(each.given_knobs),
            campaign=campaign,
            value=told[0],
            error=told[1],
        )
        for each in progress.candidates.values()
        if each.given_knobs and (told := progress.observe(each)) is not None
    ]
    seen.sort(key=lambda point: math.inf if point.value is None else point.value)
    if not seen or seen[0].value is None:
        return ()
    others = seen[LEARNED_FAST:]
    return (*seen[:LEARNED_FAST], *others[:: max(1, -(-len(others) // LEARNED_OTHERS))])


def _rank(campaign: str, progress: Progress) -> list[PastPoint]:
    """A campaign's fastest points, the fastest first."""
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
