# SPDX-License-Identifier: Apache-2.0
"""Soft verifiers in a generation: votes, the shortlist, and what the record says they were worth.

A doubt orders work and never decides it. Every generation evaluates one candidate that the doubts
passed over, so that they can be held against verdicts; a kind that is wrong too often, or that
takes more time than it saves, is switched off, and the record says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

from ...traces.decisions import (
    NoSoftVerdicts,
    Opinion,
    Shortlisted,
    SoftKind,
    SoftVerdicts,
    SwitchedOff,
)
from ...traces.place import Place
from ...traces.records import Verdict
from ..books.asking import PromptTooLong
from ..brains import soft_verifier
from ..brains.soft_verifier import LEAST_CASES, Calibration
from ..roles import Assignment
from ..stop import BudgetSpent
from . import generation_plan
from .loop import Loop


def kinds(loop: Loop, number: int) -> list[SoftKind]:
    """Those that are asked in this generation: decided once, from what was recorded before it."""
    if loop.aids.doubter is None:
        return []
    model = loop.aids.doubter.name
    worth = soft_verifier.calibrations(_pairs(loop, number))
    asked = []
    for kind in SoftKind:
        found = worth.get((kind, model), Calibration())
        why = found.why_off or _why_too_dear(loop, number, kind, found)
        if not why:
            asked.append(kind)
        else:
            off = SwitchedOff(why=why, generation=number)
            loop.ledger.decide(Place(slot=f"soft {kind}"), off)
    return asked


def _why_too_dear(loop: Loop, before: int, kind: SoftKind, worth: Calibration) -> str:
    """Why asking costs more time than it saves, by the record; empty: it does not, or few cases.

    Saved is an evaluation that a broken candidate did not get. How many of those passed over were
    broken is not known, but what this kind's doubts were worth where a verdict came is.
    """
    if worth.cases < LEAST_CASES:
        return ""
    calls = loop.progress.spending.calls.values()
    spent_s = sum(
        call.replied.seconds
        for call in calls
        if call.replied
        and call.requested.place.is_before(before)
        and call.requested.place.purpose == f"soft {kind}"
    )
    passed_over = [
        candidate
        for place, shortlisted in loop.progress.decisions.get_all(Shortlisted).items()
        if place.is_before(before)
        for candidate in shortlisted.passed_over
        if _doubts(loop, candidate, kind)
    ]
    saved_s = len(passed_over) * (worth.precision or 0.0) * _screening_s(loop, before)
    if spent_s <= saved_s:
        return ""
    return f"asking took {spent_s:.0f} s and saved {saved_s:.0f} s over {worth.cases} cases"


def _doubts(loop: Loop, candidate: str, kind: SoftKind) -> bool:
    opinions = _recorded_opinions(loop, _place(loop, candidate))
    return any(said.kind is kind and said.verdict == "broken" for said in opinions)


def _screening_s(loop: Loop, before: int) -> float:
    """What an evaluation took on average."""
    took = [
        sum(verdict.seconds.values())
        for each in loop.progress.candidates.values()
        if (verdict := each.screened) and each.place.is_before(before)
    ]
    return sum(took) / len(took) if took else 0.0


def list_waiting(loop: Loop, number: int) -> list[str]:
    """The candidates that may be asked about side by side; none where that saves no time."""
    found = [
        c
        for c in _candidates(loop, number)
        if loop.progress.find_decision(_place(loop, c), SoftVerdicts) is None
    ]
    return found if loop.slots > 1 and len(found) > 1 and kinds(loop, number) else []


def ask(loop: Loop, candidate: str) -> None:
    """Has the votes on one candidate paid and stored."""
    # `shortlist` comes to a refusal again.
    with suppress(BudgetSpent, PromptTooLong):
        _opinions(loop, candidate)


def shortlist(loop: Loop, number: int, candidates: Sequence[str], count: int) -> tuple[str, ...]:
    """What is evaluated, in the order of the slots. Records each opinion and the choice."""
    opinions: dict[str, tuple[Opinion, ...]] = {}
    for candidate in candidates:
        place = _place(loop, candidate)
        if loop.progress.find_decision(place, SoftVerdicts) is None:
            try:
                found = _opinions(loop, candidate)
            except (BudgetSpent, PromptTooLong) as refused:
                loop.ledger.decide(place, NoSoftVerdicts(reason=str(refused)))
                found = ()
            loop.ledger.decide(place, SoftVerdicts(candidate=candidate, opinions=found))
        opinions[candidate] = _recorded_opinions(loop, place)
    chosen = soft_verifier.shortlist(opinions, count, f"{loop.asked.seed}:{number}")
    order = {candidate: at for at, candidate in enumerate(candidates)}
    kept = tuple(sorted(chosen, key=lambda c: order[c]))
    passed_over = tuple(c for c in candidates if c not in kept)
    shortlisted = Shortlisted(kept=kept, passed_over=passed_over)
    loop.ledger.decide(Place(number, "shortlist"), shortlisted)
    return kept


def _opinions(loop: Loop, candidate: str) -> tuple[Opinion, ...]:
    doubter, place = loop.aids.doubter, _place(loop, candidate)
    assert doubter is not None
    number, _ = place.numbers
    situation = loop.situation((), Assignment(place=place))
    source = loop.ledger.source(candidate)
    return tuple(doubter.opinion(kind, source, situation) for kind in kinds(loop, number))


def _candidates(loop: Loop, number: int) -> list[str]:
    fresh, close = generation_plan.split_novel(loop, number)
    return fresh or close


def _pairs(loop: Loop, before: int) -> Iterator[tuple[Opinion, Verdict]]:
    """Every guess of an earlier generation with the verdict on the same candidate."""
    for place, said in loop.progress.decisions.get_all(SoftVerdicts).items():
        verdict = loop.progress.get_candidate(said.candidate).screened
        if verdict and place.is_before(before):
            yield from ((opinion, verdict) for opinion in said.opinions)


def _recorded_opinions(loop: Loop, place: Place) -> tuple[Opinion, ...]:
    return loop.progress.require_decision(place, SoftVerdicts).opinions


def _place(loop: Loop, candidate: str) -> Place:
    return loop.progress.get_candidate(candidate).place
