# SPDX-License-Identifier: Apache-2.0
"""The page that answers why a campaign's winner won, and where its time and money went.

Knows no HTML and no HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..fold import Entry
from ..head import Failure, Head
from ..sheet import Sheet
from ..store import Store
from ..why import Share, Step, list_ancestors, list_steps, share_seconds, share_time
from .charts import Figure
from .code import difference
from .pages import FunnelStep, funnel, source_of
from .roofline import place_entry, roofline_chart

MOST_UNCONFIRMED = 5
MOST_CHANGES = 6
"""Figures of a profile that a step shows."""
MOST_STEPS = 40
"""The last ones of a longer way: what is before them is told by its number."""


@dataclass(frozen=True)
class ShownStep:
    """One step of the way, with how much of the source it changed."""

    step: Step
    added: int
    removed: int
    is_compared: bool
    """Whether both sources could be read."""


@dataclass(frozen=True)
class WhyPage:
    """Everything that the page shows."""

    winner: Entry | None
    """The champion, or who leads where nothing can be timed."""
    steps: tuple[ShownStep, ...]
    skipped: int
    """Steps of the way before these."""
    time: tuple[Share, ...]
    evaluations: tuple[Share, ...]
    funnel: tuple[FunnelStep, ...]
    failures: tuple[Failure, ...]
    unconfirmed: tuple[Entry, ...]
    unconfirmed_in_all: int
    roofline: Figure | None
    """Where the steps of the way stand; None where that is not known."""


def why_page(store: Store, sheet: Sheet) -> WhyPage:
    """The page of a campaign, with or without a winner."""
    head, winner = sheet.head, sheet.head.winner
    line = [*list_ancestors(sheet.entries, winner), winner] if winner else []
    shown, before = line[-MOST_STEPS:], line[:-MOST_STEPS]
    way = list_steps(sheet, shown, before[-1] if before else None) if winner else []
    least = head.speedup
    unconfirmed, count = (
        sheet.list_unconfirmed(least.median, MOST_UNCONFIRMED) if least else ([], 0)
    )
    return WhyPage(
        winner=winner,
        steps=tuple(_compare(store, step) for step in way),
        skipped=len(before),
        time=tuple(share_time(sheet)),
        evaluations=tuple(share_seconds(head.seconds)),
        funnel=tuple(funnel(head)),
        failures=head.failures,
        unconfirmed=tuple(unconfirmed),
        unconfirmed_in_all=count,
        roofline=_draw_roofline(head, way),
    )


def _draw_roofline(head: Head, way: Sequence[Step]) -> Figure | None:
    bounds = head.first_preparation.bounds if head.first_preparation else None
    return roofline_chart(bounds, [p for step in way if (p := place_entry(step.entry))])


def _compare(store: Store, step: Step) -> ShownStep:
    if step.parent is None:
        return ShownStep(step, 0, 0, is_compared=False)
    after, missing = source_of(store, step.entry.candidate)
    before, also_missing = source_of(store, step.parent.candidate)
    if missing or also_missing:
        return ShownStep(step, 0, 0, is_compared=False)
    change = difference(before, after, step.entry.language)
    return ShownStep(step, change.added, change.removed, is_compared=not change.note)
