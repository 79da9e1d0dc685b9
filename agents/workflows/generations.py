"""`evolve` with models: generations on islands, as one graph (robust-kbench, ShinkaEvolve).

plan → (ask × slots → propose → evaluate …) × waves → (again) → doubt × candidates → shortlist →
evaluate … → promote → archive → reflect → plan. A generation's parents are those of its beginning,
so that none is stale, and what each slot is to do is recorded before anybody is asked. Slots are
asked in waves; a later wave is told what came of the earlier ones, not their code. What is as good
as a copy is not evaluated but asked for once more, and so is a new idea too close to a member of
its island. Where soft verifiers choose, nothing is evaluated before all waves are in.
"""

from __future__ import annotations

from dataclasses import replace

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send
from pydantic import Field

from ...kernelbench.problem import Problem
from ...traces.decisions import NoReflection, SoftKind
from ...traces.events import CampaignStarted
from ...traces.place import Place
from ...traces.records import Record
from ..brains.soft_verifier import VOTES
from ..roles import Assignment, Mode, Sample
from ..stop import BudgetSpent
from . import driver, generation_plan, shortlisting, steps, waves
from .loop import Loop
from .rules import Questions


class Settings(Record):
    """What may be set. Where no source is named the number is a start to be tuned by comparison."""

    generations: int = Field(default=40, ge=1)
    """As KernelFoundry quotes the robust-kbench agent; `--rounds` counts more."""
    proposals: int = Field(default=8, ge=1, le=64)
    """In a generation (robust-kbench)."""
    evaluated: int = Field(default=4, ge=1)
    """Of a generation, where soft verifiers choose (robust-kbench)."""
    abreast: int = Field(default=4, ge=1)
    """Slots of one wave: so many do not know of each other."""
    islands: int = Field(default=4, ge=1)
    migrate_every: int = Field(default=10, ge=0)
    """Generations; 0: never (ShinkaEvolve, KernelFoundry: 10)."""
    kept_per_niche: int = Field(default=2, ge=1)
    exemplars: int = Field(default=5, ge=2)
    """Correct kernels in a crossover, slow to fast (robust-kbench)."""
    soft: bool = False
    """Soft verifiers before the evaluation. They only pay where building is slow."""
    reflect_every: int = Field(default=4, ge=0)
    """Generations between two looks back for lessons; 0: never."""
    judged: bool = True
    """Whether the leader of each generation is diagnosed for its next edit."""


class State(waves.Round, total=False):
    """The cursor, whose places are those of a wave. Every key takes the last value written."""

    generation: int
    wave: int
    doubted: list[str]
    """The candidates that soft verifiers are asked about side by side."""
    candidate: str
    """For one such question: about whom."""


START_STATE: State = {"generation": 0, "champion": "", "stale": 0}


def settings(loop: Loop) -> Settings:
    """Those of the campaign."""
    return Settings.model_validate(loop.options)


def plan(state: State, loop: Loop) -> State:
    """Whether another generation begins, and what each of its slots is to do."""
    chosen, number = settings(loop), state["generation"]
    champion, stale = state["champion"], state["stale"]
    if by := steps.why_ended(loop, number, chosen.generations, champion, stale):
        return {"stopped_by": by}
    if not generation_plan.is_planned(loop, number):
        generation_plan.plan(loop, number, waves.width(loop, chosen.proposals), chosen)
    return _wave(loop, number, 0)


def propose(state: State, loop: Loop) -> State:
    """Records the wave's candidates and how new they are; those that are new are evaluated."""
    places = waves.places_of(state)
    waves.settle(loop, places, _assignment)
    for place in places:
        generation_plan.compare(loop, place)
    if settings(loop).soft:
        return {"queue": []}
    fresh, placed = generation_plan.novel(loop, state["generation"])[0], loop.ledger.progress.placed
    return {"queue": [c for place in places if (c := placed.get(place, "")) in fresh]}


def wave(state: State, loop: Loop) -> State:
    """What is asked next of the generation, once the wave before was evaluated."""
    return _wave(loop, state["generation"], state["wave"] + 1)


def doubt(state: State, loop: Loop) -> State:
    """Has the votes on one candidate paid and stored."""
    shortlisting.ask(loop, state["candidate"])
    return {}


def shortlist(state: State, loop: Loop) -> State:
    """What is evaluated of the generation, and in which order."""
    number, chosen = state["generation"], settings(loop)
    fresh, close = generation_plan.novel(loop, number)
    if not chosen.soft or not shortlisting.kinds(loop, number):
        room = generation_plan.slots(loop, number)
        done = generation_plan.evaluated(loop, number)
        return {"queue": [c for c in [*fresh, *close][:room] if c not in done]}
    return {"queue": list(shortlisting.shortlist(loop, number, fresh or close, chosen.evaluated))}


def archive(state: State, loop: Loop) -> State:
    """Records the niche of everybody who was evaluated, and the islands as they now stand."""
    generation_plan.record(loop, state["generation"], settings(loop))
    return {}


def promote(state: State, loop: Loop) -> State:
    """Confirms the best of the generation if it may be the new champion."""
    won = waves.crown(state, loop, generation_plan.evaluated(loop, state["generation"]))
    return {"champion": won.champion, "stale": won.stale}


def reflect(state: State, loop: Loop) -> State:
    """Diagnoses the generation's leader and, from time to time, draws lessons; then the next one.

    A cap that forbids it costs words and no candidates.
    """
    number, chosen = state["generation"], settings(loop)
    try:
        if chosen.judged:
            generation_plan.diagnose(loop, number)
        if chosen.reflect_every and (number + 1) % chosen.reflect_every == 0:
            generation_plan.reflect(loop, number)
    except BudgetSpent as spent:
        loop.ledger.decide(Place(number, "reflect"), NoReflection(by=spent.by))
    return {"generation": number + 1}


def _assignment(loop: Loop, place: Place) -> Assignment:
    return generation_plan.assignment(loop, place, settings(loop).abreast)


def _wave(loop: Loop, number: int, wave: int) -> State:
    """What is asked next; the wave after the last one asks again for what was too close."""
    chosen, count = settings(loop), generation_plan.slots(loop, number)
    last = -(-count // chosen.abreast)
    slots = range(wave * chosen.abreast, min(count, (wave + 1) * chosen.abreast))
    places = [Place(number, slot) for slot in slots]
    if wave == last:
        places = generation_plan.second_places(loop, number)
    doubted = [] if places else shortlisting.waiting(loop, number) if chosen.soft else []
    asked = waves.asked_now(loop, places)
    return {
        "wave": wave,
        "places": asked["places"],
        "waiting": asked["waiting"],
        "doubted": doubted,
    }


def _after_wave(state: State) -> str | list[Send]:
    if state.get("stopped_by") or state["places"]:
        return waves.begin(state)
    return [Send("doubt", {"candidate": c}) for c in state["doubted"]] or "shortlist"


def graph() -> StateGraph[State, Loop, State, State]:
    """The graph of the docstring."""
    evolution = StateGraph(State, context_schema=Loop)
    nodes = (plan, propose, wave, doubt, shortlist, archive, promote, reflect)
    for step in nodes:
        evolution.add_node(step.__name__, steps.node(step), input_schema=State)

    def rest(state: State) -> str:
        return "wave" if state["places"] else "promote"

    waves.wire(
        evolution, _assignment, after=["propose", "shortlist"], rest=rest, to=["wave", "promote"]
    )
    following = ["ask", "propose", "doubt", "shortlist", END]
    evolution.add_edge(START, "plan")
    evolution.add_conditional_edges("plan", _after_wave, following)
    evolution.add_conditional_edges("wave", _after_wave, following)
    evolution.add_edge("doubt", "shortlist")
    evolution.add_edge("promote", "archive")
    evolution.add_edge("archive", "reflect")
    evolution.add_edge("reflect", "plan")
    return evolution


def follow(loop: Loop, number: int, best: str, champion: str) -> str:
    """Goes on from a kernel that another workflow found, which founds every island."""
    chosen = Settings()
    generation_plan.found(loop, number, best, chosen.islands)
    rounds = number + 1 + (chosen.generations if loop.rounds is None else loop.rounds)
    start: State = {"generation": number + 1, "champion": champion, "stale": 0}
    return driver.run(graph(), replace(loop, rounds=rounds, options={}), dict(start), "evolve")


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    return driver.run(graph(), loop, dict(START_STATE))


def first(_problem: Problem, started: CampaignStarted, _source: str) -> Assignment:
    """What the first slot of a campaign is asked."""
    proposals = Settings.model_validate(started.options).proposals
    count = int(min(proposals, started.limits.get("evaluations", proposals)))
    return Assignment(place=Place(0, 0), mode=Mode.WRITE, sample=Sample(1, count))


def questions(chosen: Settings, rounds: int | None) -> Questions:
    """The most that may be asked."""
    most = chosen.generations if rounds is None else rounds
    # What is too close to another candidate is asked for once more.
    tries = most * 2 * chosen.proposals
    doubts = tries * len(SoftKind) * VOTES if chosen.soft else 0
    lessons = most // chosen.reflect_every if chosen.reflect_every else 0
    return Questions(tries, most if chosen.judged else 0, doubts + lessons)
