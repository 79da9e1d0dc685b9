# SPDX-License-Identifier: Apache-2.0
"""Counts over the candidates of a campaign, kept as each changes, so that nobody has to look at all
of them to tell a campaign in a line.

Knows nothing of events; `fold.py` tells it of every change.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from .records import CAPABILITIES, Isolation, Status, Verdict

if TYPE_CHECKING:
    from .fold import Entry

TIMING = "time"
"""The part of an evaluation in which something was timed."""
_LONGEST_KIND = 80


class Causes:
    """Causes of failures, counted by kind: those that differ in nothing but figures and names."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, str] = {}

    def add(self, cause: str, count: int = 1) -> None:
        """Counts one more, or one less."""
        kind = re.sub(r"'[^']*'|\S*\d\S*", "#", cause)[:_LONGEST_KIND]
        self._counts[kind] += count
        self._first.setdefault(kind, cause)
        if not self._counts[kind]:
            del self._counts[kind], self._first[kind]

    @property
    def most_frequent(self) -> str:
        """The first of the largest kind; empty where there is none."""
        for kind, _ in self._counts.most_common(1):
            return self._first[kind]
        return ""


Rank = tuple[float, int, str]
"""A figure, the number and the candidate."""


class First:
    """The candidate of the least rank, kept as each changes."""

    def __init__(self, rank: Callable[[Entry], Rank | None]) -> None:
        self._rank = rank
        self._least: Rank | None = None

    @property
    def candidate(self) -> str | None:
        """None where no candidate has a rank."""
        return self._least[-1] if self._least else None

    def change(self, after: Entry, entries: Mapping[str, Entry]) -> None:
        """Takes in what became of a candidate."""
        rank = self._rank(after)
        if self._least and self._least[-1] == after.candidate and rank != self._least:
            self._least = min(filter(None, map(self._rank, entries.values())), default=None)
        elif rank and (self._least is None or rank < self._least):
            self._least = rank


class Tally:
    """Of all candidates together."""

    def __init__(self) -> None:
        self._statuses: Counter[Status] = Counter()
        self._open_rows: set[str] = set()
        self.evaluated = 0
        """Candidates that have a verdict."""
        self.passed = 0
        """Candidates of which some verdict is a pass."""
        self.seconds: Counter[str] = Counter()
        """Of all evaluations, by what was done in them."""
        self.faster = 0
        """Candidates that are credited with more than 1."""
        self.causes = Causes()
        """First reasons of the verdicts that count."""
        self.causes_of: defaultdict[Status, Causes] = defaultdict(Causes)
        """The same by status."""
        self.isolation: Isolation | None = None
        """The matrix that the newest verdict carries."""
        self.is_weakly_isolated = False
        """Whether any evaluation went without what unattended work needs."""
        self.refuted: dict[int, str] = {}
        """By number: candidates of which some verdict is a pass and that which counts is none."""
        self.leader = First(_rank_modelled)
        """By modelled time."""
        self.fastest = First(_rank_measured)
        """Of those of which some verdict is a pass, by the speed-up that counts, largest first."""

    @property
    def timed_s(self) -> float:
        """Seconds in which something was timed."""
        return float(self.seconds[TIMING])

    @property
    def by_status(self) -> dict[Status, int]:
        """How many candidates have each status, in the order of the statuses."""
        return {status: self._statuses[status] for status in Status if self._statuses[status]}

    @property
    def not_enforced(self) -> tuple[str, ...]:
        """What was open to a kernel in any of the evaluations: rows of the matrix."""
        return tuple(row for row in CAPABILITIES if row in self._open_rows)

    def change(self, before: Entry | None, after: Entry, entries: Mapping[str, Entry]) -> None:
        """Takes in what became of a candidate.

        Args:
            entries: all of them, with the changed one.
        """
        seen = before.verdicts if before else ()
        for verdict in after.verdicts[len(seen) :]:
            self._see(verdict)
        self.evaluated += bool(after.verdicts) - bool(seen)
        self.passed += _has_passed(after) - (_has_passed(before) if before else False)
        if before is None or before.verdict is not after.verdict:
            self._count(before.verdict if before else None, -1)
            self._count(after.verdict, 1)
        if _is_refuted(after):
            self.refuted[after.number] = after.candidate
        else:
            self.refuted.pop(after.number, None)
        for first in (self.leader, self.fastest):
            first.change(after, entries)

    def _see(self, verdict: Verdict) -> None:
        self.seconds.update(verdict.seconds)
        if verdict.isolation:
            self.isolation = verdict.isolation
            self._open_rows.update(verdict.isolation.not_enforced)
            self.is_weakly_isolated |= bool(verdict.isolation.lacking)

    def _count(self, verdict: Verdict | None, count: int) -> None:
        if verdict is not None:
            self._statuses[verdict.status] += count
            self.faster += count * ((verdict.credited or 0.0) > 1.0)
            if verdict.reasons:
                cause = first_reason(verdict)
                self.causes.add(cause, count)
                self.causes_of[verdict.status].add(cause, count)


LONGEST_CAUSE = 200
"""Characters of a compiler's or a check's own words; a candidate's page has them all."""


def first_reason(verdict: Verdict) -> str:
    """Its first line, without a full stop."""
    first = verdict.reasons[0].strip().splitlines()[0].rstrip(".")
    return first if len(first) <= LONGEST_CAUSE else f"{first[:LONGEST_CAUSE]} …"


def _has_passed(entry: Entry) -> bool:
    return any(verdict.status.is_pass for verdict in entry.verdicts)


def _is_refuted(entry: Entry) -> bool:
    return bool(entry.verdict and not entry.verdict.status.is_pass) and _has_passed(entry)


def _rank_modelled(entry: Entry) -> Rank | None:
    modelled_us = entry.verdict.modelled_us if entry.verdict else None
    return (modelled_us, entry.number, entry.candidate) if modelled_us else None


def _rank_measured(entry: Entry) -> Rank | None:
    if not _has_passed(entry):
        return None
    measurement = entry.verdict.measurement if entry.verdict else None
    headline = measurement.headline if measurement else None
    return (-headline.median if headline else 0.0, entry.number, entry.candidate)
