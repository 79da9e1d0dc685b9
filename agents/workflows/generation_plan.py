# SPDX-License-Identifier: Apache-2.0
"""What a generation of `evolve` is made of: plans of slots, novelty, niches, leaders and lessons.

Everything is recorded as a decision at its place and read back from there; whoever asks again gets
what was decided. The islands are a fold over these records up to a generation's beginning.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...traces.decisions import (
    Born,
    Compared,
    GenerationPlanned,
    IslandsStood,
    LessonsDrawn,
    NoLessons,
    PlannedSlot,
)
from ...traces.place import Place
from ...traces.records import Depth
from ..aids import MOST_ATTEMPTS
from ..books.asking import PromptTooLong
from ..books.candidate import KnownCandidate, choose_better
from ..books.progress import Progress
from ..prompting import techniques
from ..prompting.evidence import figures_of
from ..prompting.history import strategies
from ..prompting.words import tuning
from ..roles import Assignment, Member, Mode, SampleNumber
from ..search import niches
from ..search.islands import Birth, Islands
from ..text.similarity import hash_normalised, similarity
from . import steps
from .generation_settings import Settings
from .loop import Loop

EDIT, REWRITE, CROSS, TUNE, WRITE, REPAIR = (
    "edit",
    "rewrite",
    "cross over",
    "tune",
    "write",
    "repair",
)
MIX = {EDIT: 0.5, REWRITE: 0.2, CROSS: 0.15, TUNE: 0.15}
"""After ShinkaEvolve; no rate is proven for kernels."""

TOO_CLOSE = 0.95
"""Share of common runs of tokens from which a candidate is no new idea (ShinkaEvolve).

For whoever is asked for an idea. Who is asked for one change of a base gives nothing else than its
near copy, at 0.96 to 0.99: there only a copy is too close.
"""

MOST_REPAIRS = 2
"""Of one candidate, where its island has nobody who passed."""


_KIN = 24
"""The newest of an island that a candidate is held against; comparing takes milliseconds each."""


class Past:
    """The islands as of the beginning of a generation: a fold over what was recorded before it.

    A generation whose niches are recorded changes no more, so that the fold goes on from where it
    was asked last.
    """

    def __init__(self, chosen: Settings) -> None:
        self.chosen = chosen
        self._begin()

    def _begin(self) -> None:
        chosen = self.chosen
        self._folded = 0
        self._islands = Islands(
            chosen.islands, kept_per_niche=chosen.kept_per_niche, every=chosen.migrate_every
        )

    def fold_before(self, progress: Progress, number: int) -> Islands:
        """The islands that the parents of a generation are drawn from."""
        if self._folded > number:
            self._begin()
        for generation in range(self._folded, number):
            self._islands.generation(generation, _births(progress, generation))
        self._folded = number
        return self._islands


@dataclass(frozen=True)
class Generation:
    """One generation of a campaign: what is recorded of it, and what is recorded next."""

    loop: Loop
    number: int

    @property
    def progress(self) -> Progress:
        """Where the campaign stands."""
        return self.loop.progress

    def _at(self, slot: int | str) -> Place:
        return Place(self.number, slot)

    @property
    def is_planned(self) -> bool:
        """Whether it was begun."""
        return self.progress.find_decision(self._at("plan"), GenerationPlanned) is not None

    def plan(self, count: int, past: Past) -> None:
        """Decides what each slot does, from the islands as of now."""
        islands = past.fold_before(self.progress, self.number)
        slots = tuple(self._slot(slot, islands, past.chosen) for slot in range(count))
        self.loop.ledger.decide(self._at("plan"), GenerationPlanned(slots=slots))

    def settle_founder(self, candidate: str, islands: int) -> None:
        """Records a candidate from elsewhere, which is all of it, as every island's founder."""
        member = self.loop.ledger.member(candidate)
        written = tuple(_writing(island) for island in range(islands))
        self.loop.ledger.decide(self._at("plan"), GenerationPlanned(slots=written))
        niche, normal = self._niche(member).name, hash_normalised(member.source, self.loop.language)
        for island in range(islands):
            place = self._at(island)
            new = Compared(
                candidate=candidate, normal=normal, island=island, like=None, similarity=0.0
            )
            born = Born(candidate=candidate, version=niches.VERSION, niche=niche, island=island)
            self.loop.ledger.decide(place, new)
            self.loop.ledger.decide(place, born)

    @property
    def count(self) -> int:
        """How many proposals it has."""
        return len(self.slots)

    def assignment(self, place: Place, abreast: int) -> Assignment:
        """What the proposal of a place is to be; second tries are told what was tried."""
        _, slot = place.numbers
        planned = self._slot_of(place)
        ledger, operator = self.loop.ledger, planned.operator
        base = ledger.find_member(planned.base)
        count = self.count
        first = count if slot >= count else slot - slot % abreast
        advice = self.progress.advised.get(planned.advice)
        if operator == TUNE and base:
            advice = tuning(base)
        given = Assignment(
            place=place,
            first=first,
            mode=Mode(planned.mode),
            base=base,
            advice=advice,
            exemplars=tuple(ledger.member(candidate) for candidate in planned.exemplars),
            features=planned.features,
            sample=SampleNumber(slot % count + 1, count) if operator == WRITE else None,
            may_patch=operator != REWRITE,
        )
        others = strategies(self.progress, given, since=self.number)
        return replace(given, told=(*self.lessons, *others))

    def compare(self, place: Place) -> None:
        """Records how new the candidate of a place is: copies of all, kin of its island."""
        ledger = self.loop.ledger
        placed = self.progress.candidate_at(place)
        if placed is None or self.progress.find_decision(place, Compared):
            return
        candidate = placed.candidate
        source, language = ledger.source(candidate), self.loop.language
        normal, island = hash_normalised(source, language), self._island(place)
        compared = self.progress.decisions.get_all(Compared).values()
        copies = [each.candidate for each in compared if each.normal == normal]
        kin = [each.candidate for each in compared if each.island == island and not each.like]
        close = [(similarity(source, ledger.source(c), language), c) for c in kin[-_KIN:]]
        alike, like = (1.0, copies[0]) if copies else max(close, default=(0.0, ""))
        is_change = bool(self._slot_of(place).base)
        is_close = bool(copies) if is_change else alike >= TOO_CLOSE
        found = Compared(
            candidate=candidate,
            normal=normal,
            island=island,
            like=like if is_close else None,
            similarity=round(alike, 4),
        )
        ledger.decide(place, found)

    def novel(self) -> tuple[list[str], list[str]]:
        """Its candidates that are new, and those that are close to others, in order.

        Copies, which differ in comments or spacing only, are in neither.
        """
        fresh: list[str] = []
        close: list[str] = []
        for compared in self.progress.decisions.in_round(self.number, Compared).values():
            if not compared.like:
                fresh.append(compared.candidate)
            elif compared.similarity < 1.0:
                close.append(compared.candidate)
        return fresh, close

    def second_places(self) -> list[Place]:
        """Where another is asked for, once, in place of a copy or of what was too close."""
        count, progress = self.count, self.progress
        compared, missing = progress.decisions.in_round(self.number, Compared), progress.missing
        again = {slot for slot, found in compared.items() if found.like}
        again |= {
            slot
            for slot in range(count)
            if (none := missing.get(self._at(slot))) and none.outcome == steps.DUPLICATE
        }
        return [self._at(count + slot) for slot in sorted(again) if slot < count]

    def record(self, past: Past) -> None:
        """Records its niches, and the islands that follow from them."""
        for each in self.progress.screened_in(self.number):
            if self.progress.find_decision(each.place, Born) is None:
                born = Born(
                    candidate=each.candidate,
                    version=niches.VERSION,
                    niche=self._niche(self.loop.ledger.member(each.candidate)).name,
                    island=self._island(each.place),
                )
                self.loop.ledger.decide(each.place, born)
        shown = tuple(past.fold_before(self.progress, self.number + 1).describe_elites())
        self.loop.ledger.decide(self._at("archive"), IslandsStood(islands=shown))

    def _niche(self, member: Member) -> niches.Niche:
        """Where an evaluated candidate stands."""
        return niches.niche(member.source, self.loop.language, figures_of(member))

    def _island(self, place: Place) -> int:
        """On which island the candidate of this place is born."""
        return self._slot_of(place).island

    def diagnose(self) -> None:
        """One diagnosis of the best newcomer, for its next edit."""
        leader: KnownCandidate | None = None
        for candidate in self.progress.screened_in(self.number):
            leader = choose_better(leader, candidate)
        if leader is not None:
            base = self.loop.ledger.member(self.progress.find_tuned(leader.candidate, self.number))
            place = self._at("leader")
            steps.judge(self.loop, Assignment(place=place, mode=Mode.OPTIMISE, base=base))

    def reflect(self) -> None:
        """Draws lessons from what was tried; without a model there are none."""
        reflector, place = self.loop.aids.reflector, self._at("lessons")
        if reflector is None or self.progress.find_decision(place, LessonsDrawn):
            return
        judged = [each for each in self.progress.candidates.values() if each.basis]
        newest = judged[-MOST_ATTEMPTS:]
        attempts = [(self.loop.ledger.member(each.candidate), each.strategy) for each in newest]
        try:
            told = reflector(self.loop.situation((), Assignment(place=place)), attempts)
        except PromptTooLong as error:
            self.loop.ledger.decide(place, NoLessons(reason=str(error)))
            return
        self.loop.ledger.decide(place, LessonsDrawn(lessons=told))

    @property
    def lessons(self) -> tuple[str, ...]:
        """The last ones that were drawn before it."""
        drawn = self.progress.decisions.get_all(LessonsDrawn).items()
        earlier = [each.lessons for place, each in drawn if place.is_before(self.number)]
        return earlier[-1] if earlier else ()

    def _slot(self, slot: int, islands: Islands, chosen: Settings) -> PlannedSlot:
        rng = random.Random(f"{self.loop.asked.seed}:{self._at(slot)}")
        island = (self.number * chosen.proposals + slot) % chosen.islands
        parent = islands.parent(island, rng)
        if not parent:
            failed = self._to_repair(island) if slot % 2 == 0 else None
            if not failed:
                return _writing(island)
            return PlannedSlot(operator=REPAIR, mode=str(Mode.REPAIR), island=island, base=failed)
        operator = rng.choices(list(MIX), list(MIX.values()))[0]
        most = chosen.exemplars - 1 if operator == REWRITE else 1
        list_others = (
            islands.list_others(island, parent, most) if operator in (CROSS, REWRITE) else ()
        )
        if list_others:
            shown = tuple(sorted((*list_others, parent), key=islands.score))
            return PlannedSlot(
                operator=operator, mode=str(Mode.CROSS_OVER), island=island, exemplars=shown
            )
        planned = PlannedSlot(
            operator=operator, mode=str(Mode.OPTIMISE), island=island, base=parent
        )
        return self._edit(planned, parent, rng) if operator == EDIT else planned

    def _edit(self, planned: PlannedSlot, base: str, rng: random.Random) -> PlannedSlot:
        """On the Judge's words where there are any and every other time, else on one technique."""
        advised = self.progress.advised
        places = [place for place, said in advised.items() if said.candidate == base]
        if places and rng.random() < 0.5:
            return planned.model_copy(update={"advice": places[-1]})
        loop = self.loop
        figures = figures_of(loop.ledger.member(base))
        known = techniques.list_applicable(
            loop.problem, loop.language, loop.target, figures, facts=loop.facts
        )
        if not known:
            return planned
        features = (rng.choice(known).name,)
        return planned.model_copy(update={"mode": str(Mode.FEATURES), "features": features})

    def _to_repair(self, island: int) -> str | None:
        """The newest failure of an island that was not repaired too often."""
        plans = self.progress.decisions.get_all(GenerationPlanned).items()
        earlier = [plan for place, plan in plans if place.is_before(self.number)]
        tried = Counter(slot.base for plan in earlier for slot in plan.slots)
        births = self.progress.decisions.get_all(Born).items()
        born = [
            self.progress.get_candidate(birth.candidate)
            for place, birth in births
            if birth.island == island and place.is_before(self.number)
        ]
        failed = [c for c in born if c.score is None and tried[c.candidate] < MOST_REPAIRS]
        newest = max(failed, key=lambda c: c.number, default=None)
        return newest.candidate if newest else None

    @property
    def slots(self) -> tuple[PlannedSlot, ...]:
        """What each of its proposals was planned to do."""
        return self.progress.require_decision(self._at("plan"), GenerationPlanned).slots

    def _slot_of(self, place: Place) -> PlannedSlot:
        """What the slot of a place was planned to do; a second try does the same."""
        _, slot = place.numbers
        planned = self.slots
        return planned[slot % len(planned)]


def _writing(island: int) -> PlannedSlot:
    return PlannedSlot(operator=WRITE, mode=str(Mode.WRITE), island=island)


def _births(progress: Progress, number: int) -> Iterator[Birth]:
    for born in progress.decisions.in_round(number, Born).values():
        # A kernel is worth what it is with its best numbers.
        found = progress.get_candidate(progress.find_tuned(born.candidate, number))
        # A confirmation is of the candidate's own generation, so that the past is settled: who
        # failed it is nobody's parent. Scores are compared as they were screened, all alike.
        looks = (found.looks.get(depth) for depth in (Depth.SCREEN, Depth.CONFIRM))
        has_failed = any(verdict and not verdict.status.is_pass for verdict in looks)
        yield Birth(
            candidate=found.candidate,
            generation=number,
            island=born.island,
            niche=born.niche,
            score=None if has_failed else found.score,
            parents=progress.get_candidate(born.candidate).parents,
        )
