# SPDX-License-Identifier: Apache-2.0
"""Soft verifiers in a generation: votes, the shortlist, and what the record says they were worth.

A doubt orders work and never decides it. Every generation evaluates one candidate that the doubts
passed over, so that they can be held against verdicts; a kind that is wrong too often, or that
takes more time than it saves, is switched off, and the record says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

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
from .generation_plan import Generation
from .loop import Loop


@dataclass(frozen=True)
class Shortlist:
    """What of a generation is evaluated, where soft verifiers are asked about its candidates."""

    generation: Generation

    @property
    def loop(self) -> Loop:
        """The campaign."""
        return self.generation.loop

    def kinds(self) -> list[SoftKind]:
        """Those that are asked: decided once, from what was recorded before the generation."""
        if self.loop.aids.doubter is None:
            return []
        model = self.loop.aids.doubter.name
        worth = soft_verifier.calibrations(self._pairs())
        asked = []
        for kind in SoftKind:
            found = worth.get((kind, model), Calibration())
            why = found.why_off or self._why_too_dear(kind, found)
            if not why:
                asked.append(kind)
            else:
                off = SwitchedOff(why=why, generation=self.generation.number)
                self.loop.ledger.decide(Place(slot=f"soft {kind}"), off)
        return asked

    def _why_too_dear(self, kind: SoftKind, worth: Calibration) -> str:
        """Why asking costs more time than it saves, by the record; empty: not, or few cases.

        Saved is an evaluation that a broken candidate did not get. How many of those passed over
        were broken is not known, but what this kind's doubts were worth where a verdict came is.
        """
        if worth.cases < LEAST_CASES:
            return ""
        calls = self.loop.progress.spending.calls.values()
        spent_s = sum(
            call.replied.seconds
            for call in calls
            if call.replied
            and call.requested.place.is_before(self.generation.number)
            and call.requested.place.purpose == f"soft {kind}"
        )
        passed_over = [
            candidate
            for place, shortlisted in self.loop.progress.decisions.get_all(Shortlisted).items()
            if place.is_before(self.generation.number)
            for candidate in shortlisted.passed_over
            if self._doubts(candidate, kind)
        ]
        saved_s = len(passed_over) * (worth.precision or 0.0) * self._screening_s()
        if spent_s <= saved_s:
            return ""
        return f"asking took {spent_s:.0f} s and saved {saved_s:.0f} s over {worth.cases} cases"

    def _doubts(self, candidate: str, kind: SoftKind) -> bool:
        opinions = self._require_opinions(self._place(candidate))
        return any(said.kind is kind and said.verdict == "broken" for said in opinions)

    def _screening_s(self) -> float:
        """What an evaluation took on average."""
        took = [
            sum(verdict.seconds.values())
            for each in self.loop.progress.candidates.values()
            if (verdict := each.screened) and each.place.is_before(self.generation.number)
        ]
        return sum(took) / len(took) if took else 0.0

    def waiting(self) -> list[str]:
        """The candidates that may be asked about side by side; none where that saves no time."""
        found = [
            c
            for c in self._candidates()
            if self.loop.progress.find_decision(self._place(c), SoftVerdicts) is None
        ]
        return found if self.loop.slots > 1 and len(found) > 1 and self.kinds() else []

    def ask(self, candidate: str) -> None:
        """Has the votes on one candidate paid and stored."""
        # `choose` comes to a refusal again.
        with suppress(BudgetSpent, PromptTooLong):
            self._opinions(candidate)

    def choose(self, candidates: Sequence[str], count: int) -> tuple[str, ...]:
        """What is evaluated, in the order of the slots. Records each opinion and the choice."""
        opinions: dict[str, tuple[Opinion, ...]] = {}
        for candidate in candidates:
            place = self._place(candidate)
            if self.loop.progress.find_decision(place, SoftVerdicts) is None:
                try:
                    found = self._opinions(candidate)
                except (BudgetSpent, PromptTooLong) as refused:
                    self.loop.ledger.decide(place, NoSoftVerdicts(reason=str(refused)))
                    found = ()
                self.loop.ledger.decide(place, SoftVerdicts(candidate=candidate, opinions=found))
            opinions[candidate] = self._require_opinions(place)
        chosen = soft_verifier.shortlist(
            opinions, count, f"{self.loop.asked.seed}:{self.generation.number}"
        )
        order = {candidate: at for at, candidate in enumerate(candidates)}
        kept = tuple(sorted(chosen, key=lambda c: order[c]))
        passed_over = tuple(c for c in candidates if c not in kept)
        shortlisted = Shortlisted(kept=kept, passed_over=passed_over)
        self.loop.ledger.decide(Place(self.generation.number, "shortlist"), shortlisted)
        return kept

    def _opinions(self, candidate: str) -> tuple[Opinion, ...]:
        doubter, place = self.loop.aids.doubter, self._place(candidate)
        assert doubter is not None
        situation = self.loop.situation((), Assignment(place=place))
        source = self.loop.ledger.source(candidate)
        return tuple(doubter.opinion(kind, source, situation) for kind in self.kinds())

    def _candidates(self) -> list[str]:
        fresh, close = self.generation.novel()
        return fresh or close

    def _pairs(self) -> Iterator[tuple[Opinion, Verdict]]:
        """Every guess of an earlier generation with the verdict on the same candidate."""
        for place, said in self.loop.progress.decisions.get_all(SoftVerdicts).items():
            verdict = self.loop.progress.get_candidate(said.candidate).screened
            if verdict and place.is_before(self.generation.number):
                yield from ((opinion, verdict) for opinion in said.opinions)

    def _require_opinions(self, place: Place) -> tuple[Opinion, ...]:
        return self.loop.progress.require_decision(place, SoftVerdicts).opinions

    def _place(self, candidate: str) -> Place:
        return self.loop.progress.get_candidate(candidate).place
