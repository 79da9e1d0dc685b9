# SPDX-License-Identifier: Apache-2.0
"""`contrast`: two measured variants side by side, why one is faster, and a third (after CUDA-L1).

plan → (ask × slots → propose → evaluate …) × waves → suspect → promote → plan. The first round
drafts variants, a later wave knowing what came of the earlier ones; every later round shows two of
distinct score buckets in an order that gives nothing away. Where fewer than three buckets are
filled another variant is drafted. Without training this is the paper's prompt alone, from which a
mean of 1.4 is to be expected of a frozen model. A result that is too good is verified in full
before it may become champion; and a model that finds it unearned keeps it from being shown to
others, which is all that it may do.
"""

from __future__ import annotations

import random
from dataclasses import replace

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from ...kernelbench.problem import Problem
from ...traces.decisions import (
    ExemplarsChosen,
    GroupScored,
    LookedTwice,
    NoSecondOpinion,
    RoundPlanned,
    SecondOpinion,
)
from ...traces.events import CampaignStarted
from ...traces.place import Place
from ...traces.records import Depth, Record
from ..books.asking import PromptTooLong
from ..prompting.history import strategies
from ..prompting.words import over_baseline, over_best, over_roofline
from ..roles import Assignment, Mode, SampleNumber
from ..search import contrast_pairs
from ..stop import BudgetSpent
from . import driver, own_start, steps, waves
from .loop import Loop
from .rules import Questions, Rules

ROUNDS = 10
"""The drafts included; as many as a chain of `forge` has."""

OVER_BEST, OVER_BASELINE = 3.0, 10.0
"""Times the best before, or the baseline, from which a result is looked at twice (CUDA-L1 saw its
hacks as sudden jumps)."""

MOST_TOLD = 6
"""Strategies of earlier drafts that a new draft is told."""


class Settings(Record):
    """What may be set."""

    drafts: int = Field(default=4, ge=1, le=64)
    """Of the first round."""
    proposals: int = Field(default=1, ge=1, le=64)
    """Of every later round; each contrasts two variants of its own."""
    abreast: int = Field(default=2, ge=1)
    """Of one wave: so many do not know of each other."""


class State(waves.Round, total=False):
    """The cursor. Every key takes the last value written."""

    round: int
    born: list[str]
    """This round's candidates."""


START_STATE: State = {"round": 0, "champion": None, "stale": 0, "queue": [], "born": []}


def settings(loop: Loop) -> Settings:
    """Those of the campaign."""
    return Settings.model_validate(loop.asked.options)


def plan(state: State, loop: Loop) -> State:
    """Whether another round begins, and which variants its slots contrast."""
    number, chosen = state["round"], settings(loop)
    most = steps.rounds_of(loop, ROUNDS)
    if by := steps.why_ended(loop, number, most, state["champion"], state["stale"]):
        return {"stopped_by": by}
    wanted = chosen.proposals if number else chosen.drafts
    planning = Place(number, "plan")
    begun = loop.progress.find_decision(planning, RoundPlanned)
    count = begun.slots if begun else waves.width(loop, wanted)
    loop.ledger.decide(planning, RoundPlanned(slots=count))
    places = [Place(number, slot) for slot in range(count)]
    for place in places if number else []:
        _choose(loop, place)
    return {
        "born": [],
        "planned": [str(place) for place in places],
        "abreast": chosen.abreast,
        "places": [],
    }


def propose(state: State, loop: Loop) -> State:
    """Records the wave's candidates."""
    born = waves.settle(loop, waves.places_of(state), assignment)
    return {"born": [*state["born"], *born], "queue": born}


def suspect(state: State, loop: Loop) -> State:
    """Has every result that is too good verified in full; records the group's scores."""
    earlier = scores(loop, state["round"])
    for candidate in state["born"]:
        place = loop.progress.get_candidate(candidate).place
        if why := _too_good(loop, candidate, earlier):
            found = loop.ledger.evaluate(candidate, Depth.FULL)
            checked = LookedTwice(candidate=candidate, why=why, status=str(found.status))
            loop.ledger.decide(place, checked)
            _ask_again(loop, place, candidate, why)
        group = scores(loop, state["round"] + 1)
        score = round(contrast_pairs.group_score(candidate, group), 4)
        loop.ledger.decide(place, GroupScored(candidate=candidate, score=score))
    return {}


def promote(state: State, loop: Loop) -> State:
    """Confirms the best of the round if it may be the new champion."""
    # Who falls later was sound when this round was decided.
    born = [loop.progress.get_candidate(candidate) for candidate in state["born"]]
    sound = [candidate for candidate in born if candidate.is_sound(state["round"])]
    won = waves.crown(state, loop, sound)
    return {"champion": won.champion, "stale": won.stale, "round": state["round"] + 1}


def assignment(loop: Loop, place: Place) -> Assignment:
    """Two variants to contrast where they were chosen, else another draft."""
    progress = loop.progress
    chosen = loop.progress.find_decision(place, ExemplarsChosen)
    number, slot = place.numbers
    first = slot - slot % settings(loop).abreast
    if chosen is None:
        begun = loop.progress.require_decision(Place(number, "plan"), RoundPlanned)
        sample = SampleNumber(slot + 1, begun.slots)
        draft = Assignment(place=place, first=first, mode=Mode.WRITE, sample=sample)
        draft = replace(draft, told=strategies(progress, draft, most=MOST_TOLD))
        return own_start.edit_own(loop, draft)
    exemplars = tuple(loop.ledger.member(candidate) for candidate in chosen.candidates)
    return Assignment(place=place, first=first, mode=Mode.CONTRAST, exemplars=exemplars)


def scores(loop: Loop, before: int) -> dict[str, float]:
    """What ranks each right candidate that was born before a round and may be shown to others."""
    progress = loop.progress
    written = (
        progress.get_candidate(progress.find_tuned(each.candidate, before - 1))
        for each in progress.candidates.values()
        if not each.is_variant
    )
    return {
        each.candidate: each.score
        for each in written
        if (each.place.is_before(before) or each.place == own_start.START)
        and each.score is not None
        and each.is_sound(before - 1)
        and not progress.is_suspected(each.place)
    }


def _ask_again(loop: Loop, place: Place, candidate: str, why: str) -> None:
    """A model's opinion on a result that is too good and that the referee has nothing against."""
    second, decided = loop.aids.second, loop.progress.find_decision
    is_told = decided(place, SecondOpinion) or decided(place, NoSecondOpinion)
    if second is None or is_told or not loop.progress.get_candidate(candidate).is_sound():
        return
    member = loop.ledger.member(candidate)
    situation = loop.situation((), Assignment(place=place, mode=Mode.CONTRAST, base=member))
    try:
        said = second(member, why, situation)
    except (BudgetSpent, PromptTooLong) as refused:
        loop.ledger.decide(place, NoSecondOpinion(candidate=candidate, reason=str(refused)))
        return
    loop.ledger.decide(place, said)


def _choose(loop: Loop, place: Place) -> None:
    if loop.progress.find_decision(place, ExemplarsChosen) or steps.is_placed(loop, place):
        return
    known = scores(loop, place.numbers[0])
    drawn = contrast_pairs.draw(known, 2, random.Random(f"{loop.asked.seed}:{place}"))
    if drawn:
        filled = contrast_pairs.buckets(known)
        chances = contrast_pairs.chances(filled, known)
        chosen = ExemplarsChosen(
            candidates=drawn,
            buckets=tuple(len(bucket) for bucket in filled),
            chances=tuple(round(chance, 4) for chance in chances),
        )
        loop.ledger.decide(place, chosen)


def _too_good(loop: Loop, candidate: str, earlier: dict[str, float]) -> str:
    """Why a result is looked at twice; "": it is not."""
    found = loop.progress.get_candidate(candidate)
    screened, score = found.screened, found.score
    if screened is None or score is None:
        return ""
    best = max(earlier.values(), default=0.0)
    if best and score > OVER_BEST * best:
        return over_best(score / best)
    estimate = screened.screen_estimate
    if estimate and estimate.low > OVER_BASELINE:
        return over_baseline(estimate.low)
    roofline = screened.measurement.roofline if screened.measurement else None
    return over_roofline(roofline) if roofline and roofline > 1.0 else ""


def graph() -> StateGraph[State, Loop, State, State]:
    """The graph of the docstring."""
    contrast = StateGraph(State, context_schema=Loop)
    for step in (plan, propose, suspect, promote):
        contrast.add_node(step.__name__, steps.node(step), input_schema=State)
    contrast.add_edge(START, "plan")
    contrast.add_conditional_edges("plan", waves.if_it_goes_on, ["more", END])
    waves.wire_waves(contrast, assignment, then="suspect")
    contrast.add_edge("suspect", "promote")
    contrast.add_edge("promote", "plan")
    return contrast


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    return own_start.begin(
        loop,
        lambda begun: driver.run(graph(), loop, {**START_STATE, "champion": begun.champion}),
    )


def _first_assignment(_problem: Problem, started: CampaignStarted, _source: str) -> Assignment:
    sample = SampleNumber(1, Settings.model_validate(started.options).drafts)
    return Assignment(place=Place(0, 0), mode=Mode.WRITE, sample=sample)


def _questions(chosen: Settings, rounds: int | None) -> Questions:
    later = (ROUNDS if rounds is None else rounds) - 1
    most = chosen.drafts + later * chosen.proposals
    # Every result may be too good at first sight.
    return Questions(coder=most, aids=most)


RULES = Rules(run, Settings, _questions, _first_assignment)
