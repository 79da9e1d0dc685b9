# SPDX-License-Identifier: Apache-2.0
"""What a generation of `evolve` is made of: plans of slots, novelty, niches, leaders and lessons.

Everything is recorded as a decision at its place and read back from there; whoever asks again gets
what was decided. The islands are a fold over these records up to a generation's beginning.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

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
from ...traces.records import Protocol as Depth
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


def is_planned(loop: Loop, number: int) -> bool:
    """Whether the generation was begun."""
    return loop.progress.find_decision(Place(number, "plan"), GenerationPlanned) is not None


def plan(loop: Loop, number: int, count: int, past: Past) -> None:
    """Decides what each slot does, from the islands as of now."""
    islands = past.fold_before(loop.progress, number)
    slots = tuple(_slot(loop, number, slot, islands, past.chosen) for slot in range(count))
    loop.ledger.decide(Place(number, "plan"), GenerationPlanned(slots=slots))


def plan_founder(loop: Loop, number: int, candidate: str, islands: int) -> None:
    """Records a candidate from elsewhere as the founder of every island: a generation of itself."""
    member = loop.ledger.member(candidate)
    written = tuple(_writing(island) for island in range(islands))
    loop.ledger.decide(Place(number, "plan"), GenerationPlanned(slots=written))
    niche, normal = niche_of(loop, member).name, hash_normalised(member.source, loop.language)
    for island in range(islands):
        place = Place(number, island)
        new = Compared(candidate=candidate, normal=normal, island=island, like=None, similarity=0.0)
        born = Born(candidate=candidate, version=niches.VERSION, niche=niche, island=island)
        loop.ledger.decide(place, new)
        loop.ledger.decide(place, born)


def slots(loop: Loop, number: int) -> int:
    """How many proposals the generation has."""
    return len(_slots(loop, number))


def assignment(loop: Loop, place: Place, abreast: int) -> Assignment:
    """What the proposal of a place is to be, as planned; second tries are told what was tried."""
    number, slot = place.numbers
    planned = _find_planned_slot(loop, place)
    ledger, operator = loop.ledger, planned.operator
    base = ledger.find_member(planned.base)
    count = slots(loop, number)
    first = count if slot >= count else slot - slot % abreast
    advice = loop.progress.advised.get(planned.advice)
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
    others = strategies(loop.progress, given, since=number)
    return replace(given, told=(*lessons(loop, number), *others))


def compare(loop: Loop, place: Place) -> None:
    """Records how new the candidate of a place is: against all for copies, its island for kin."""
    ledger = loop.ledger
    placed = loop.progress.candidate_at(place)
    if placed is None or loop.progress.find_decision(place, Compared):
        return
    candidate = placed.candidate
    source, language = ledger.source(candidate), loop.language
    normal, island = hash_normalised(source, language), island_of(loop, place)
    compared = loop.progress.decisions.get_all(Compared).values()
    copies = [each.candidate for each in compared if each.normal == normal]
    kin = [each.candidate for each in compared if each.island == island and not each.like]
    close = [(similarity(source, ledger.source(c), language), c) for c in kin[-_KIN:]]
    alike, like = (1.0, copies[0]) if copies else max(close, default=(0.0, ""))
    is_change = bool(_find_planned_slot(loop, place).base)
    is_close = bool(copies) if is_change else alike >= TOO_CLOSE
    found = Compared(
        candidate=candidate,
        normal=normal,
        island=island,
        like=like if is_close else None,
        similarity=round(alike, 4),
    )
    ledger.decide(place, found)


_KIN = 24
"""The newest of an island that a candidate is held against; comparing takes milliseconds each."""


def split_novel(loop: Loop, number: int) -> tuple[list[str], list[str]]:
    """The generation's candidates that are new, and those that are close to others, in order.

    Copies, which differ in comments or spacing only, are in neither.
    """
    fresh: list[str] = []
    close: list[str] = []
    for compared in loop.progress.decisions.in_round(number, Compared).values():
        if not compared.like:
            fresh.append(compared.candidate)
        elif compared.similarity < 1.0:
            close.append(compared.candidate)
    return fresh, close


def second_places(loop: Loop, number: int) -> list[Place]:
    """Where another candidate is asked for, once, in place of a copy or of what was too close."""
    count, progress = slots(loop, number), loop.progress
    compared, missing = loop.progress.decisions.in_round(number, Compared), progress.missing
    again = {slot for slot, found in compared.items() if found.like}
    again |= {
        slot
        for slot in range(count)
        if (none := missing.get(Place(number, slot))) and none.outcome == steps.DUPLICATE
    }
    return [Place(number, count + slot) for slot in sorted(again) if slot < count]


def record(loop: Loop, number: int, past: Past) -> None:
    """Records the niches of the generation, and the islands that follow from them."""
    for each in loop.progress.screened_in(number):
        if loop.progress.find_decision(each.place, Born) is None:
            born = Born(
                candidate=each.candidate,
                version=niches.VERSION,
                niche=niche_of(loop, loop.ledger.member(each.candidate)).name,
                island=island_of(loop, each.place),
            )
            loop.ledger.decide(each.place, born)
    shown = tuple(past.fold_before(loop.progress, number + 1).describe_elites())
    loop.ledger.decide(Place(number, "archive"), IslandsStood(islands=shown))


def niche_of(loop: Loop, member: Member) -> niches.Niche:
    """Where an evaluated candidate stands."""
    return niches.niche(member.source, loop.language, figures_of(member))


def island_of(loop: Loop, place: Place) -> int:
    """On which island the candidate of this place is born."""
    return _find_planned_slot(loop, place).island


def diagnose(loop: Loop, number: int) -> None:
    """One diagnosis of the best newcomer, for its next edit."""
    leader: KnownCandidate | None = None
    for candidate in loop.progress.screened_in(number):
        leader = choose_better(leader, candidate)
    if leader is not None:
        base, place = loop.ledger.member(leader.candidate), Place(number, "leader")
        steps.judge(loop, Assignment(place=place, mode=Mode.OPTIMISE, base=base))


def reflect(loop: Loop, number: int) -> None:
    """Draws lessons from what was tried; without a model there are none."""
    reflector, place = loop.aids.reflector, Place(number, "lessons")
    if reflector is None or loop.progress.find_decision(place, LessonsDrawn):
        return
    every = loop.progress.candidates.values()
    attempts = [(loop.ledger.member(c.candidate), c.strategy) for c in every if c.basis]
    try:
        told = reflector(loop.situation((), Assignment(place=place)), attempts)
    except PromptTooLong as error:
        loop.ledger.decide(place, NoLessons(reason=str(error)))
        return
    loop.ledger.decide(place, LessonsDrawn(lessons=told))


def lessons(loop: Loop, number: int) -> tuple[str, ...]:
    """The last ones that were drawn before a generation."""
    drawn = loop.progress.decisions.get_all(LessonsDrawn).items()
    earlier = [each.lessons for place, each in drawn if place.is_before(number)]
    return earlier[-1] if earlier else ()


def _slot(loop: Loop, number: int, slot: int, islands: Islands, chosen: Settings) -> PlannedSlot:
    rng = random.Random(f"{loop.asked.seed}:{Place(number, slot)}")
    island = (number * chosen.proposals + slot) % chosen.islands
    parent = islands.parent(island, rng)
    if not parent:
        failed = _to_repair(loop, number, island) if slot % 2 == 0 else None
        if not failed:
            return _writing(island)
        return PlannedSlot(operator=REPAIR, mode=str(Mode.REPAIR), island=island, base=failed)
    operator = rng.choices(list(MIX), list(MIX.values()))[0]
    most = chosen.exemplars - 1 if operator == REWRITE else 1
    others = islands.list_others(island, parent, most) if operator in (CROSS, REWRITE) else ()
    if others:
        shown = tuple(sorted((*others, parent), key=islands.score))
        return PlannedSlot(
            operator=operator, mode=str(Mode.CROSS_OVER), island=island, exemplars=shown
        )
    planned = PlannedSlot(operator=operator, mode=str(Mode.OPTIMISE), island=island, base=parent)
    return _edit(loop, planned, parent, rng) if operator == EDIT else planned


def _writing(island: int) -> PlannedSlot:
    return PlannedSlot(operator=WRITE, mode=str(Mode.WRITE), island=island)


def _edit(loop: Loop, planned: PlannedSlot, base: str, rng: random.Random) -> PlannedSlot:
    """On the Judge's words where there are any and every other time, else on one technique."""
    advised = loop.progress.advised
    places = [place for place, said in advised.items() if said.candidate == base]
    if places and rng.random() < 0.5:
        return planned.model_copy(update={"advice": places[-1]})
    figures = figures_of(loop.ledger.member(base))
    known = techniques.list_applicable(loop.problem, loop.language, loop.target, figures)
    if not known:
        return planned
    features = (rng.choice(known).name,)
    return planned.model_copy(update={"mode": str(Mode.FEATURES), "features": features})


def _to_repair(loop: Loop, number: int, island: int) -> str | None:
    """The newest failure of an island that was not repaired too often."""
    plans = loop.progress.decisions.get_all(GenerationPlanned).items()
    tried = [s.base for place, plan in plans if place.is_before(number) for s in plan.slots]
    births = loop.progress.decisions.get_all(Born).items()
    born = [
        loop.progress.get_candidate(birth.candidate)
        for place, birth in births
        if birth.island == island and place.is_before(number)
    ]
    failed = [c for c in born if c.score is None and tried.count(c.candidate) < MOST_REPAIRS]
    newest = max(failed, key=lambda c: c.number, default=None)
    return newest.candidate if newest else None


def _births(progress: Progress, number: int) -> Iterator[Birth]:
    for born in progress.decisions.in_round(number, Born).values():
        found = progress.get_candidate(born.candidate)
        # A confirmation is of the candidate's own generation, so that the past is settled: who
        # failed it is nobody's parent. Scores are compared as they were screened, all alike.
        failed = [v for v in found.looks.values() if not v.status.is_pass]
        yield Birth(
            candidate=born.candidate,
            generation=number,
            island=born.island,
            niche=born.niche,
            verdict=(failed or [found.looks[Depth.SCREEN]])[0],
            parents=found.parents,
        )


def _slots(loop: Loop, number: int) -> tuple[PlannedSlot, ...]:
    return loop.progress.require_decision(Place(number, "plan"), GenerationPlanned).slots


def _find_planned_slot(loop: Loop, place: Place) -> PlannedSlot:
    """What the slot of a place was planned to do; a second try does the same."""
    number, slot = place.numbers
    planned = _slots(loop, number)
    return planned[slot % len(planned)]
