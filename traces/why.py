# SPDX-License-Identifier: Apache-2.0
"""How a campaign came to its winner, and where its time went: worked out of its history.

Pure functions of what was recorded. Knows no pages.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from .fold import Entry
from .history import History
from .records import CHAMPION, Advice, Level, Metric, Profile, Status, Verdict
from .tally import Causes
from .transcript import Transcript

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


class Failure(NamedTuple):
    """Candidates of one status that is no pass."""

    status: Status
    candidates: int
    reason: str
    """The first one of the most frequent kind."""


def list_ancestors(history: History, entry: Entry) -> list[Entry]:
    """The line of first parents, oldest first, without the entry itself."""
    line: list[Entry] = []
    seen = {entry.candidate}
    while entry.parents and entry.parents[0] in history.entries:
        entry = history.entries[entry.parents[0]]
        if entry.candidate in seen:
            break
        seen.add(entry.candidate)
        line.append(entry)
    return line[::-1]


def list_steps(history: History, candidate: str) -> list[Step]:
    """The way to a candidate, from the first of its line on."""
    entry = history.entries[candidate]
    line = [*list_ancestors(history, entry), entry]
    parents = [None, *line[:-1]]
    return [
        Step(
            each,
            parent,
            find_gain(history, each, parent) if parent else None,
            parent.advice if parent else None,
            compare_profiles(_profile_of(parent), _profile_of(each)) if parent else (),
        )
        for each, parent in zip(line, parents, strict=True)
    ]


def find_gain(history: History, entry: Entry, parent: Entry) -> Gain | None:
    """Paired where the parent was the champion that the candidate was confirmed beside; else the
    ratio of two medians, of which nobody knows how the machine differed between them."""
    verdict, before = entry.verdict, parent.verdict
    if verdict is None or before is None or not (verdict.measurement and before.measurement):
        return None
    beside = next(
        (event.previous for _, event in history.changes if event.candidate == entry.candidate),
        None,
    )
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


def share_time(history: History, transcript: Transcript) -> list[Share]:
    """The seconds of all processes: what they did. Models are asked while others are judged, too;
    what is told of them is the time in which only they were waited for, or nothing was done."""
    judged, counted = history.judged_s, history.counted_s
    asked = sum(call.seconds for call in transcript.calls.values())
    rest = max(0.0, history.spent_s - judged - counted)
    waited = min(asked, rest)
    return _share(
        {
            "preparation": history.preparation_s,
            "evaluations": judged,
            "counters for the Judge": counted,
            "waiting for models": waited,
            "choosing and idle": rest - waited,
        }
    )


def share_evaluations(history: History) -> list[Share]:
    """The seconds of all evaluations by what was done in them; several may run at once."""
    return _share(history.tally.seconds)


def _share(seconds: Mapping[str, float]) -> list[Share]:
    whole = sum(seconds.values())
    return [Share(name, spent, spent / whole) for name, spent in seconds.items() if spent > 0]


def list_failures(history: History) -> list[Failure]:
    """What became of those that did not pass, the most frequent status first."""
    found: defaultdict[Status, list[Verdict]] = defaultdict(list)
    for entry in history.entries.values():
        if entry.verdict and not entry.verdict.status.is_pass:
            found[entry.verdict.status].append(entry.verdict)
    told = []
    for status, verdicts in found.items():
        causes = Causes()
        for verdict in verdicts:
            causes.add(verdict.reasons[0])
        told.append(Failure(status, len(verdicts), causes.most_frequent))
    return sorted(told, key=lambda failure: -failure.candidates)


def list_unconfirmed(history: History) -> list[Entry]:
    """Those that were screened alone, and whose estimate is above the winner's median: maybe they
    are faster. The highest first."""
    best = history.best.verdict if history.best else None
    headline = best.measurement.headline if best and best.measurement else None
    if headline is None:
        return []
    found = [
        (verdict.screen_estimate.median, entry)
        for entry in history.entries.values()
        if (verdict := entry.verdict) and verdict.screen_estimate
    ]
    maybe = sorted((each for each in found if each[0] > headline.median), key=lambda each: -each[0])
    return [entry for _, entry in maybe]
