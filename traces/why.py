# SPDX-License-Identifier: Apache-2.0
"""How a campaign came to its winner, and where its time went. Knows no pages."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from .fold import Entry
from .head import Crowned
from .records import CHAMPION, Advice, Level, Metric, Profile
from .sheet import Sheet

LEAST_CHANGE = 1.1
"""By which factor a figure of a profile differs from its parent's to be told."""
MOST_CHANGES = 5
_BY_LEVEL = (Level.MEASURED, Level.EMULATED, Level.MODELLED, Level.STATIC)


class Gain(NamedTuple):
    """By how much a candidate is faster than its parent."""

    ratio: float
    low: float | None = None
    """The 95 % interval, where the two were timed beside each other."""
    high: float | None = None


class Change(NamedTuple):
    """A figure of a profile before and after."""

    before: Metric
    after: Metric

    @property
    def ratio(self) -> float:
        """After over before; infinite or 0 where one of them is 0."""
        if not self.before.value:
            return math.inf
        return self.after.value / self.before.value


class Step(NamedTuple):
    """A candidate on the way to another."""

    entry: Entry
    parent: Entry | None
    gain: Gain | None
    """Beside the parent; None where there is none, or one of them was not timed."""
    advice: Advice | None
    """What a Judge had said of the parent."""
    changes: tuple[Change, ...]
    """What the profile has otherwise than the parent's, the most changed first."""


class Share(NamedTuple):
    """A part of some seconds."""

    name: str
    seconds: float
    share: float


def list_ancestors(entries: Mapping[str, Entry], entry: Entry) -> list[Entry]:
    """The line of first parents, oldest first, without the entry itself."""
    line: list[Entry] = []
    seen = {entry.candidate}
    while entry.parents and entry.parents[0] in entries:
        entry = entries[entry.parents[0]]
        if entry.candidate in seen:
            break
        seen.add(entry.candidate)
        line.append(entry)
    return line[::-1]


def list_steps(sheet: Sheet, line: Sequence[Entry], before: Entry | None = None) -> list[Step]:
    """The way along some candidates, each the parent of the next.

    Args:
        before: the parent of the first of them.
    """
    names = [each.candidate for each in ([before] if before else []) + list(line)]
    whole = list(sheet.read_whole(names).values())
    steps = [
        Step(
            each,
            parent,
            find_gain(sheet.head.crowned, each, parent),
            parent.advice,
            compare_profiles(_profile_of(parent), _profile_of(each)),
        )
        for parent, each in pairwise(whole)
    ]
    return steps if before else [Step(whole[0], None, None, None, ()), *steps]


def find_gain(crowned: Iterable[Crowned], entry: Entry, parent: Entry) -> Gain | None:
    """Paired where the parent was the champion that the candidate was confirmed beside; else the
    ratio of two medians, of which nobody knows how the machine differed between them."""
    verdict, before = entry.verdict, parent.verdict
    if verdict is None or before is None or not (verdict.measurement and before.measurement):
        return None
    beside = next((each.previous for each in crowned if each.candidate == entry.candidate), None)
    paired = verdict.measurement.speedup.get(CHAMPION)
    if paired and beside == parent.candidate:
        return Gain(paired.median, paired.low, paired.high)
    return Gain(before.measurement.candidate.median_us / verdict.measurement.candidate.median_us)


def _profile_of(entry: Entry) -> Profile | None:
    return entry.verdict.profile if entry.verdict else None


def compare_profiles(before: Profile | None, after: Profile | None) -> tuple[Change, ...]:
    """The figures that both have and that differ by LEAST_CHANGE, measured ones first."""
    if before is None or after is None:
        return ()
    known = {(metric.name, metric.level): metric for metric in before.metrics}
    changes = [
        Change(known[metric.name, metric.level], metric)
        for metric in after.metrics
        if (metric.name, metric.level) in known
    ]
    told = [change for change in changes if _size_of(change) >= math.log(LEAST_CHANGE)]
    return tuple(sorted(told, key=lambda c: (_BY_LEVEL.index(c.after.level), -_size_of(c))))


def _size_of(change: Change) -> float:
    """How much it changed: the same for twice and for half."""
    before, after = change.before.value, change.after.value
    if before == after:
        return 0.0
    if before * after <= 0:
        return math.inf
    return abs(math.log(after / before))


def share_time(sheet: Sheet) -> list[Share]:
    """The seconds of all processes: what they did. Models are asked while others are judged, too;
    what is told of them is the time in which only they were waited for, or nothing was done."""
    head = sheet.head
    asked = sum(share.seconds for share in sheet.share_spending())
    rest = max(0.0, head.spent_s - head.judged_s - head.counted_s)
    waited = min(asked, rest)
    return share_seconds(
        {
            "preparation": head.preparation_s,
            "evaluations": head.judged_s,
            "counters for the Judge": head.counted_s,
            "waiting for models": waited,
            "choosing and idle": rest - waited,
        }
    )


def share_seconds(seconds: Mapping[str, float]) -> list[Share]:
    """Each part with its share of all."""
    whole = sum(seconds.values())
    return [Share(name, spent, spent / whole) for name, spent in seconds.items() if spent > 0]
