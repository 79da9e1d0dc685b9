# SPDX-License-Identifier: Apache-2.0
"""One candidate as those are told of it who are asked later: its claim, its change, its figures.

And which candidates a place may be told of: those whose work was done before the place was begun,
so that the words of its prompt are the same whenever it is worked on, in whatever order answers
arrive.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from ...traces.place import Place
from ...traces.records import CHAMPION, Speedup, Verdict
from ..books.candidate import KnownCandidate
from ..books.progress import Progress
from ..roles import Assignment, TriedChange
from ..text.diffs import changed_lines, unified_diff
from ..text.untrusted import one_line

LINES, LINE_CHARACTERS = 6, 96
"""Of a change that are shown: an edit has few, and a new candidate is no change."""
REWRITTEN = 0.6
"""Share of the parent's lines from which a change is a candidate of its own."""

Source = Callable[[str], str]
"""Gives the source of a candidate."""


def before(assignment: Assignment) -> Callable[[Place], bool]:
    """Whether the work of a place was done before the assignment's was begun.

    What is asked for a whole round stands behind its slots. A workflow without places works on one
    thing at a time: all that is recorded is before.
    """
    now, number = assignment.place, assignment.place.round
    if number is None:
        is_all = not now
        return lambda _: is_all
    wave = assignment.first if now.is_slot else math.inf

    def is_before(place: Place) -> bool:
        if place.round == number:
            return isinstance(place.slot, int) and place.slot < wave
        return place.is_before(number)

    return is_before


def list_known(progress: Progress, assignment: Assignment) -> list[KnownCandidate]:
    """Every evaluated candidate that the assignment's place may be told of, oldest first.

    Of one whose numbers were tuned, the best variant beside itself.
    """
    is_before = before(assignment)
    return [
        each
        for each in progress.candidates.values()
        if each.relied_on and is_before(each.place) and _is_told(progress, each)
    ]


def _is_told(progress: Progress, each: KnownCandidate) -> bool:
    return not each.is_variant or progress.find_tuned(each.parents[0]) == each.candidate


def attempt(progress: Progress, made: KnownCandidate, source: Source | None = None) -> TriedChange:
    """What is told of a candidate; its change only where sources are given."""
    parent = progress.candidates.get(made.parents[0]) if made.parents else None
    found, was = made.shown, parent.shown if parent else None
    advised = progress.advised.get(made.place)
    told = TriedChange(
        number=made.number,
        strategy=made.strategy,
        advised=advised.technique if advised else "",
        before_us=_time_us(was),
        after_us=_time_us(found),
        before_speedup=speedup(was),
        after_speedup=speedup(found),
        beside_champion=_beside_champion(made),
        is_modelled=bool(found and found.measurement is None),
        failure=_failure(made),
    )
    return _with_change(told, progress, made, source) if source else told


def speedup(verdict: Verdict | None) -> Speedup | None:
    """Against the fastest baseline; None where it failed or nothing was timed."""
    timed = verdict.measurement if verdict and verdict.status.is_pass else None
    return timed.headline if timed else None


def interval(ratio: Speedup) -> str:
    """The median with its 95 % interval, in few digits."""
    return f"{ratio.median:.3g} [{ratio.low:.3g}, {ratio.high:.3g}]"


def _time_us(verdict: Verdict | None) -> float | None:
    if verdict is None or not verdict.status.is_pass:
        return None
    timed = verdict.measurement
    return timed.candidate.median_us if timed else (verdict.modelled_us or None)


def _beside_champion(candidate: KnownCandidate) -> Speedup | None:
    confirmed = candidate.confirmed
    timed = confirmed.measurement if confirmed and confirmed.status.is_pass else None
    return timed.speedup.get(CHAMPION) if timed else None


def _failure(candidate: KnownCandidate) -> str:
    verdict = candidate.fault
    return ": ".join([str(verdict.status), *verdict.reasons[:1]]) if verdict else ""


def _with_change(
    told: TriedChange, progress: Progress, made: KnownCandidate, source: Source
) -> TriedChange:
    """Against the parent that it is most like: a cross-over has several."""
    new = source(made.candidate)
    parents = {
        progress.candidates[parent].number: source(parent)
        for parent in made.parents
        if parent in progress.candidates
    }
    if not parents:
        return told
    number = min(parents, key=lambda each: (sum(changed_lines(parents[each], new)), each))
    return replace(told, parent=number, change=_change(parents[number], new))


def _change(old: str, new: str) -> str:
    """How many lines differ and, unless nearly all do, the first of them."""
    counts = changed_lines(old, new)
    size = f"{counts.added} lines added, {counts.removed} removed"
    if counts.removed > REWRITTEN * len(old.splitlines()):
        return size
    changed = [
        f"{line[0]} {one_line(line[1:], LINE_CHARACTERS)}"
        for line in unified_diff(old, new).splitlines()[2:]
        if line[:1] in "+-" and line[1:].strip()
    ]
    left = len(changed) - LINES
    more = [f"… and {left} lines more"] if left > 0 else []
    return "\n".join([size, *changed[:LINES], *more])
