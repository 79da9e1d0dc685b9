# SPDX-License-Identifier: Apache-2.0
"""`evolve`: generations on islands, as one graph (robust-kbench, ShinkaEvolve).

plan → (ask × slots → propose → evaluate …) × waves → (again) → doubt × candidates → shortlist →
evaluate … → promote → archive → reflect → plan. A generation's parents are those of its beginning,
so that none is stale, and what each slot is to do is recorded before anybody is asked. Slots are
asked in waves; a later wave is told what came of the earlier ones, not their code. What is as good
as a copy is not evaluated but asked for once more, and so is a new idea too close to a member of
its island. Where soft verifiers choose, nothing is evaluated before all waves are in.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from ...kernelbench.problem import Problem
from ...traces.decisions import NoReflection, SoftKind
from ...traces.events import CampaignStarted
from ...traces.place import Place
from ..brains.soft_verifier import VOTES
from ..roles import Assignment, Mode, SampleNumber
from ..stop import BudgetSpent
from . import driver, own_start, steps, waves
from .generation_plan import Generation, Past
from .generation_settings import Settings
from .loop import Loop
from .rules import Questions, Rules
from .shortlisting import Shortlist


class State(waves.Round, total=False):
    """The cursor, whose places are those of a wave. Every key takes the last value written."""

    generation: int
    wave: int
    doubted: list[str]
    """The candidates that soft verifiers are asked about side by side."""
    candidate: str
    """For one such question: about whom."""


START_STATE: State = {"generation": 0, "champion": None, "stale": 0}


@dataclass(frozen=True)
class Generations:
    """The steps of an evolution."""

    chosen: Settings
    until: int
    """The number of the generation that is not begun any more."""

    @cached_property
    def past(self) -> Past:
        """The islands before each generation."""
        return Past(self.chosen)

    def plan(self, state: State, loop: Loop) -> State:
        """Whether another generation begins, and what each of its slots is to do."""
        chosen, number = self.chosen, state["generation"]
        champion, stale = state["champion"], state["stale"]
        if by := steps.why_ended(loop, number, self.until, champion, stale):
            return {"stopped_by": by}
        generation = Generation(loop, number)
        if not generation.is_planned:
            generation.plan(waves.width(loop, chosen.proposals), self.past)
        return self._wave(loop, number, 0)

    def propose(self, state: State, loop: Loop) -> State:
        """Records the wave's candidates and how new they are; those that are new are evaluated."""
        places = waves.places_of(state)
        waves.settle(loop, places, self._assignment)
        generation = _of(state, loop)
        for place in places:
            generation.compare(place)
        if self.chosen.soft:
            return {"queue": []}
        fresh, _ = generation.novel()
        placed = [loop.progress.candidate_at(place) for place in places]
        return {"queue": [c.candidate for c in placed if c and c.candidate in fresh]}

    def wave(self, state: State, loop: Loop) -> State:
        """What is asked next of the generation, once the wave before was evaluated."""
        return self._wave(loop, state["generation"], state["wave"] + 1)

    def doubt(self, state: State, loop: Loop) -> State:
        """Has the votes on one candidate paid and stored."""
        number, _ = loop.progress.get_candidate(state["candidate"]).place.numbers
        Shortlist(Generation(loop, number)).ask(state["candidate"])
        return {}

    def shortlist(self, state: State, loop: Loop) -> State:
        """What is evaluated of the generation, and in which order."""
        generation, chosen = _of(state, loop), self.chosen
        number = generation.number
        fresh, close = generation.novel()
        if not chosen.soft or not Shortlist(generation).kinds():
            done = [each.candidate for each in loop.progress.screened_in(number)]
            asked = [*fresh, *close][: generation.count]
            return {"queue": [c for c in asked if c not in done]}
        kept = Shortlist(generation).choose(fresh or close, chosen.evaluated)
        return {"queue": list(kept)}

    def archive(self, state: State, loop: Loop) -> State:
        """Records the niche of everybody who was evaluated, and the islands as they now stand."""
        _of(state, loop).record(self.past)
        return {}

    def promote(self, state: State, loop: Loop) -> State:
        """Confirms the best of the generation if it may be the new champion."""
        won = waves.crown(state, loop, loop.progress.screened_in(state["generation"]))
        return {"champion": won.champion, "stale": won.stale}

    def reflect(self, state: State, loop: Loop) -> State:
        """Diagnoses the generation's leader and draws lessons now and then; then the next one.

        A cap that forbids it costs words and no candidates.
        """
        generation, chosen = _of(state, loop), self.chosen
        number = generation.number
        try:
            if chosen.judged:
                generation.diagnose()
            if chosen.reflect_every and (number + 1) % chosen.reflect_every == 0:
                generation.reflect()
        except BudgetSpent as spent:
            loop.ledger.decide(Place(number, "reflect"), NoReflection(by=spent.by))
        return {"generation": number + 1}

    def _assignment(self, loop: Loop, place: Place) -> Assignment:
        number, _ = place.numbers
        return Generation(loop, number).assignment(place, self.chosen.abreast)

    def _wave(self, loop: Loop, number: int, wave: int) -> State:
        """What is asked next; the wave after the last one asks again for what was too close."""
        chosen, generation = self.chosen, Generation(loop, number)
        count = generation.count
        last = -(-count // chosen.abreast)
        slots = range(wave * chosen.abreast, min(count, (wave + 1) * chosen.abreast))
        places = [Place(number, slot) for slot in slots]
        if wave == last:
            places = generation.second_places()
        doubted = [] if places else Shortlist(generation).waiting() if chosen.soft else []
        asked = waves.asked_now(loop, places)
        return {
            "wave": wave,
            "places": asked["places"],
            "waiting": asked["waiting"],
            "doubted": doubted,
        }

    def graph(self) -> StateGraph[State, Loop, State, State]:
        """The graph of the docstring."""
        evolution = StateGraph(State, context_schema=Loop)
        nodes = (
            self.plan,
            self.propose,
            self.wave,
            self.doubt,
            self.shortlist,
            self.archive,
            self.promote,
            self.reflect,
        )
        for step in nodes:
            evolution.add_node(step.__name__, steps.node(step), input_schema=State)

        def rest(state: State) -> str:
            return "wave" if state["places"] else "promote"

        waves.wire(
            evolution,
            self._assignment,
            after=["propose", "shortlist"],
            rest=rest,
            to=["wave", "promote"],
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


def _of(state: State, loop: Loop) -> Generation:
    return Generation(loop, state["generation"])


def _after_wave(state: State) -> str | list[Send]:
    if state.get("stopped_by") or state["places"]:
        return waves.begin(state)
    return [Send("doubt", {"candidate": c}) for c in state["doubted"]] or "shortlist"


def follow(
    loop: Loop, number: int, best: str, champion: str | None, chosen: Settings | None = None
) -> str:
    """Goes on from a kernel that another workflow found, which founds every island."""
    chosen = chosen or Settings()
    Generation(loop, number).settle_founder(best, chosen.islands)
    until = number + 1 + steps.rounds_of(loop, chosen.generations)
    start: State = {"generation": number + 1, "champion": champion, "stale": 0}
    return driver.run(Generations(chosen, until).graph(), loop, dict(start), "evolve")


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    chosen = Settings.model_validate(loop.asked.options)

    def go(begun: own_start.Begun) -> str:
        if begun.seed:
            return follow(loop, 0, begun.seed, begun.champion, chosen)
        until = steps.rounds_of(loop, chosen.generations)
        return driver.run(Generations(chosen, until).graph(), loop, dict(START_STATE))

    return own_start.begin(loop, go)


def _first_assignment(_problem: Problem, started: CampaignStarted, _source: str) -> Assignment:
    proposals = Settings.model_validate(started.options).proposals
    count = int(min(proposals, started.limits.get("evaluations", proposals)))
    return Assignment(place=Place(0, 0), mode=Mode.WRITE, sample=SampleNumber(1, count))


def _questions(chosen: Settings, rounds: int | None) -> Questions:
    most = chosen.generations if rounds is None else rounds
    # What is too close to another candidate is asked for once more.
    tries = most * 2 * chosen.proposals
    doubts = tries * len(SoftKind) * VOTES if chosen.soft else 0
    lessons = most // chosen.reflect_every if chosen.reflect_every else 0
    return Questions(tries, most if chosen.judged else 0, doubts + lessons)


RULES = Rules(run, Settings, _questions, _first_assignment)
