# SPDX-License-Identifier: Apache-2.0
"""`features`: a search over an explicit catalogue of techniques (after CUDA-LLM's FSR).

plan → (ask × slots → propose → evaluate …) × waves → (repair → …) → promote → credit → plan. Each
depth extends the fastest right kernel by one or two techniques a slot, chosen by Thompson sampling
on what they were worth on kernels with the same bound. What fails is repaired twice at most inside
its depth (the paper has no such limit); where nothing is right yet the next depth mends what got
furthest. What a technique gained counts only where the source shows it, or the Coder declared
it and the source changed; the table of gains stands in the record.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from ...kernelbench.problem import Problem
from ...traces.decisions import Credited, FeaturesPlanned, GainRow, GainsTabled
from ...traces.events import CampaignStarted
from ...traces.place import Place
from ...traces.records import Record, Status
from ..books.candidate import KnownCandidate, choose_better
from ..prompting import techniques
from ..prompting.evidence import figures_of
from ..roles import Assignment, Mode
from ..search import niches, technique_gains
from . import driver, own_start, steps, waves
from .loop import Loop
from .rules import Questions, Rules

DEPTHS = 6
"""Ours: the paper does not tell its number."""


class Settings(Record):
    """What may be set."""

    proposals: int = Field(default=4, ge=1, le=64)
    """At each depth. Ours: the paper does not tell."""
    abreast: int = Field(default=2, ge=1)
    """Of one wave: so many do not know of each other."""
    repairs: int = Field(default=2, ge=0, le=10)
    """Of a candidate inside its depth."""


class State(waves.Round, total=False):
    """The cursor. Every key takes the last value written."""

    depth: int
    turn: int
    """0: the techniques; 1, 2 …: repairs of what failed in the turn before."""


START_STATE: State = {"depth": 0, "turn": 0, "champion": None, "stale": 0, "queue": []}


def settings(loop: Loop) -> Settings:
    """Those of the campaign."""
    return Settings.model_validate(loop.asked.options)


def plan(state: State, loop: Loop) -> State:
    """Whether another depth begins, what it extends and which techniques its slots try."""
    depth = state["depth"]
    most = steps.rounds_of(loop, DEPTHS)
    if by := steps.why_ended(loop, depth, most, state["champion"], state["stale"]):
        return {"stopped_by": by}
    if loop.progress.find_decision(Place(depth, "plan"), FeaturesPlanned) is None:
        _plan(loop, depth, waves.width(loop, settings(loop).proposals))
    places = [str(Place(depth, slot)) for slot in range(len(_require_plan(loop, depth).slots))]
    return {"turn": 0, "planned": places, "abreast": settings(loop).abreast, "places": []}


def propose(state: State, loop: Loop) -> State:
    """Records the turn's candidates."""
    return {"queue": waves.settle(loop, waves.places_of(state), assignment)}


def repair(state: State, loop: Loop) -> State:
    """Which of the turn's candidates failed and are mended next."""
    depth, turn = state["depth"], state["turn"] + 1
    count = len(_require_plan(loop, depth).slots)
    failed = []
    for place in map(Place.parse, state["planned"]):
        candidate = loop.progress.candidate_at(place)
        if candidate and candidate.score is None:
            failed.append(place.numbers[1] % count)
    places = [Place(depth, turn * count + slot) for slot in failed]
    left = loop.budget.compute_remaining(loop.progress.evaluated).evaluations
    asked = [place for place in places if steps.is_placed(loop, place)]
    asked += [place for place in places if place not in asked][: int(min(left, len(places)))]
    planned = sorted(str(place) for place in asked) if turn <= settings(loop).repairs else []
    return {"turn": turn, "planned": planned, "abreast": max(1, len(planned)), "places": []}


def promote(state: State, loop: Loop) -> State:
    """Confirms the best of the depth if it may be the new champion."""
    won = waves.crown(state, loop, loop.progress.screened_in(state["depth"]))
    return {"champion": won.champion, "stale": won.stale}


def credit(state: State, loop: Loop) -> State:
    """Credits the techniques that were really used, and records the table of gains."""
    depth = state["depth"]
    planned = _require_plan(loop, depth)
    for candidate in loop.progress.screened_in(depth):
        if planned.base:
            _credit(loop, candidate, planned)
    rows = tuple(
        GainRow(
            technique=technique,
            bound=bound,
            tried=tally.tried,
            gained=tally.gained,
            mean_gain=round(math.expm1(tally.mean), 4),
            best_gain=round(math.expm1(tally.best), 4),
        )
        for (technique, bound), tally in sorted(_table(loop, depth + 1).items())
    )
    loop.ledger.decide(Place(depth, "table"), GainsTabled(rows=rows))
    return {"depth": depth + 1}


def assignment(loop: Loop, place: Place) -> Assignment:
    """The techniques of a slot on the depth's base; in later turns a repair of what it came to."""
    depth, slot = place.numbers
    planned = _require_plan(loop, depth)
    count = len(planned.slots)
    if slot >= count:
        failed = loop.progress.placed[Place(depth, slot - count)]
        return Assignment(
            place=place,
            first=slot - slot % count,
            mode=Mode.REPAIR,
            base=loop.ledger.member(failed),
        )
    base = loop.ledger.find_member(planned.base)
    mode = Mode.REPAIR if planned.is_repair else Mode.FEATURES
    features = () if planned.is_repair else planned.slots[slot]
    if not features and base is None:
        mode = Mode.WRITE
    first = slot - slot % settings(loop).abreast
    return Assignment(place=place, first=first, mode=mode, base=base, features=features)


def _first_assignment(problem: Problem, started: CampaignStarted, _source: str) -> Assignment:
    known = [t.name for t in techniques.list_applicable(problem, started.language, started.target)]
    drawn = next(_draws(known, {}, str(niches.Bottleneck.UNKNOWN), 0, 1, started.seed))
    mode = Mode.FEATURES if drawn else Mode.WRITE
    return Assignment(place=Place(0, 0), mode=mode, features=drawn)


def _draws(
    known: Sequence[str],
    worth: technique_gains.Table,
    bound: str,
    depth: int,
    count: int,
    seed: int,
) -> Iterator[tuple[str, ...]]:
    """Techniques for each slot; they lead with different ones, while there are enough."""
    taken: set[str] = set()
    for slot in range(count):
        rng = random.Random(f"{seed}:{depth}/{slot}:features")
        fresh = [name for name in known if name not in taken] or known
        drawn = technique_gains.draw(worth, fresh, bound, rng.choice((1, 2)), rng)
        taken.update(drawn[:1])
        yield drawn


def _plan(loop: Loop, depth: int, count: int) -> None:
    own = own_start.find_own(loop)
    before = [own] if own and own.screened else []
    before += [c for number in range(depth) for c in loop.progress.screened_in(number)]
    fastest: KnownCandidate | None = None
    for candidate in before:
        fastest = choose_better(fastest, candidate)
    base = fastest or max(before, key=_rank_progress, default=None)
    member = loop.ledger.member(loop.progress.find_tuned(base.candidate, depth)) if base else None
    figures = figures_of(member) if member else {}
    bound = str(niches.bound_of(figures))
    known = techniques.list_applicable(
        loop.problem, loop.language, loop.target, figures, facts=loop.facts
    )
    names, worth = [technique.name for technique in known], _table(loop, depth)
    planned = FeaturesPlanned(
        base=member.candidate if member else None,
        bound=bound,
        slots=tuple(_draws(names, worth, bound, depth, count, loop.asked.seed)),
        is_repair=base is not None and fastest is None,
    )
    loop.ledger.decide(Place(depth, "plan"), planned)


def _credit(loop: Loop, candidate: KnownCandidate, planned: FeaturesPlanned) -> None:
    ledger, place, base = loop.ledger, candidate.place, loop.progress.find(planned.base)
    if base is None or base.score is None or loop.progress.find_decision(place, Credited):
        return
    depth, slot = place.numbers
    sources = ledger.source(base.candidate), ledger.source(candidate.candidate)
    uses = {
        name: technique_gains.use(name, *sources, candidate.techniques)
        for name in planned.slots[slot % len(planned.slots)]
    }
    score = candidate.score
    credited = Credited(
        candidate=candidate.candidate,
        bound=planned.bound,
        used=tuple(name for name, use in uses.items() if use.is_used),
        disputed=tuple(name for name, use in uses.items() if use.is_disputed),
        gain=None if score is None else math.log(score / base.score),
        depth=depth,
    )
    ledger.decide(place, credited)


def _table(loop: Loop, before: int) -> dict[tuple[str, str], technique_gains.Tally]:
    """What techniques were worth at the depths before this one."""
    return technique_gains.table(
        technique_gains.Credit(name, each.bound, -math.inf if each.gain is None else each.gain)
        for each in loop.progress.decisions.get_all(Credited).values()
        if each.depth < before
        for name in each.used
    )


def _rank_progress(candidate: KnownCandidate) -> tuple[int, int]:
    """How far a screened candidate got, the newest of equals: build, run, right numbers."""
    assert candidate.screened is not None
    early = {
        Status.BUILD_FAILED: 0,
        Status.PROTOCOL_ERROR: 0,
        Status.UNSUPPORTED: 0,
        Status.CRASHED: 1,
        Status.TIMED_OUT: 1,
        Status.RESOURCE: 1,
    }
    return (early.get(candidate.screened.status, 2), candidate.number)


def _require_plan(loop: Loop, depth: int) -> FeaturesPlanned:
    return loop.progress.require_decision(Place(depth, "plan"), FeaturesPlanned)


def graph() -> StateGraph[State, Loop, State, State]:
    """The graph of the docstring."""
    search = StateGraph(State, context_schema=Loop)
    for step in (plan, propose, repair, promote, credit):
        search.add_node(step.__name__, steps.node(step), input_schema=State)

    def mend(state: State) -> str:
        return "more" if state["planned"] else "promote"

    search.add_edge(START, "plan")
    search.add_conditional_edges("plan", waves.if_it_goes_on, ["more", END])
    waves.wire_waves(search, assignment, then="repair")
    search.add_conditional_edges("repair", mend, ["more", "promote"])
    search.add_edge("promote", "credit")
    search.add_edge("credit", "plan")
    return search


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    return own_start.begin(
        loop, lambda begun: driver.run(graph(), loop, {**START_STATE, "champion": begun.champion})
    )


def _questions(chosen: Settings, rounds: int | None) -> Questions:
    depths = DEPTHS if rounds is None else rounds
    return Questions(coder=depths * chosen.proposals * (1 + chosen.repairs))


RULES = Rules(run, Settings, _questions, _first_assignment)
