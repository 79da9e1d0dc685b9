# SPDX-License-Identifier: Apache-2.0
"""Several proposals side by side, and what is evaluated of them, for workflows with rounds.

A round is asked in waves: the calls of a wave run at once, as many as the endpoint takes, and what
they gave is recorded in the order of the slots and evaluated before the next wave is asked, which
is told of it. A cap that refuses some of a round's calls does not waste the others: the cut is
recorded and they are evaluated. Where nothing of a round can be paid the campaign ends, so that one
with a higher cap goes on with exactly that round.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, TypedDict

from langgraph.graph import END, StateGraph
from langgraph.types import Send
from langgraph.typing import StateT

from ...traces.decisions import Cut, Postponed
from ...traces.place import Place
from ..books.candidate import KnownCandidate
from ..roles import Assignment
from ..stop import BudgetSpent, Halt
from . import knobs, steps
from .loop import Loop

Plan = Callable[[Loop, Place], Assignment]
"""What the proposal of a place is to be: the same whenever it is asked, until the place is done."""


class PlacedAsk(TypedDict, total=False):
    """All that a call beside others needs."""

    place: str


class Round(TypedDict, total=False):
    """What the state of every workflow with rounds has. A cursor is stored: its places are text."""

    planned: list[str]
    """Every place of the round."""
    abreast: int
    """How many of them are one wave."""
    places: list[str]
    """Those of the wave that is asked now."""
    waiting: list[str]
    """Those of the places that are asked side by side."""
    queue: list[str]
    """What is still to be evaluated."""
    champion: str | None
    stale: int
    """Rounds in a row without a new champion."""
    stopped_by: str


def width(loop: Loop, wanted: int) -> int:
    """No more proposals than may be evaluated. Raises Halt where not even one may."""
    evaluated = loop.progress.evaluated
    if by := loop.budget.why_stopped(evaluated):
        raise Halt(by)
    return int(min(wanted, loop.budget.compute_remaining(evaluated).evaluations))


def places_of(state: Round) -> list[Place]:
    """Those of the wave that is asked now."""
    return [Place.parse(place) for place in state["places"]]


def open_places(loop: Loop, places: Sequence[Place]) -> list[Place]:
    """Those where a proposal is still to be made."""
    if places and is_cut(loop, places[0]):
        return []
    return [place for place in places if not steps.is_placed(loop, place)]


def next_wave(state: Round, loop: Loop) -> Round:
    """The next wave of the round, the first where none was asked; no places where all were."""
    planned, before = state["planned"], state["places"]
    done = planned.index(before[-1]) + 1 if before else 0
    places = planned[done : done + state["abreast"]]
    return asked_now(loop, [Place.parse(place) for place in places])


def asked_now(loop: Loop, places: Sequence[Place]) -> Round:
    """A wave, and who of it is asked side by side: nobody where that is no gain."""
    waiting = open_places(loop, places)
    is_faster = loop.slots > 1 and len(waiting) > 1
    return {
        "places": [str(place) for place in places],
        "waiting": [str(place) for place in waiting] if is_faster else [],
    }


def make_asker(plan: Plan) -> Callable[[PlacedAsk, Loop], PlacedAsk]:
    """A step that has one place's answers paid and stored."""

    def ask(state: PlacedAsk, loop: Loop) -> PlacedAsk:
        # `settle` meets the refusal again once the calls beside it are settled.
        with suppress(BudgetSpent):
            steps.rehearse(loop, plan(loop, Place.parse(state["place"])))
        return {}

    return ask


def settle(loop: Loop, places: Sequence[Place], plan: Plan) -> list[str]:
    """Records what the places' answers hold; gives the new candidates in their order.

    Raises:
        Halt: nothing came of this round yet, and nothing of it may be paid or is left.
    """
    refused_by = ""
    for place in open_places(loop, places):
        try:
            assignment = plan(loop, place)
            steps.propose(loop, assignment, _parents(assignment))
        except (BudgetSpent, steps.Exhausted) as halt:
            refused_by = refused_by or halt.by
    if refused_by and not _has_begun(loop, places[0].round):
        raise Halt(refused_by)
    if refused_by:
        loop.ledger.decide(places[0].whole_round, Cut(by=refused_by))
    return [found.candidate for place in places if (found := loop.progress.candidate_at(place))]


def is_cut(loop: Loop, place: Place) -> bool:
    """Whether the round of this place was cut short: what it lacks is never made up for."""
    return loop.progress.find_decision(place.whole_round, Cut) is not None


def _has_begun(loop: Loop, number: int | None) -> bool:
    progress = loop.progress
    return any(place.round == number for place in (*progress.placed, *progress.missing))


def _parents(assignment: Assignment) -> tuple[str, ...]:
    """Best first."""
    base = (assignment.base,) if assignment.base else ()
    return tuple(m.candidate for m in (*base, *reversed(assignment.exemplars)))


def evaluate(state: Round, loop: Loop) -> Round:
    """Has the first of the queue screened. One a step, so that a wish is heard."""
    queue = state["queue"]
    if queue:
        loop.ledger.foresee(queue[1:])
        steps.screen(loop, queue[0])
    return {"queue": queue[1:]}


class RoundEnd(NamedTuple):
    """How a round left the championship."""

    champion: str | None
    stale: int


def crown(state: Round, loop: Loop, candidates: Sequence[KnownCandidate]) -> RoundEnd:
    """Confirms the best of a round if it may be the new champion, and tunes it then."""
    champion = steps.promote_best(loop, candidates, state["champion"])
    if leader := knobs.find_leader(loop, [each.candidate for each in candidates], champion):
        champion = knobs.tune(loop, leader, champion).champion
    # Of who is left to the race nobody knows yet whether it is a gain.
    is_open = any(loop.progress.find_decision(each.place, Postponed) for each in candidates)
    is_stale = champion == state["champion"] and not is_open
    return RoundEnd(champion, state["stale"] + 1 if is_stale else 0)


def if_it_goes_on(state: Round) -> str:
    """To the end, or to the first wave."""
    return END if state.get("stopped_by") else "more"


def begin(state: Round) -> str | list[Send]:
    """To the end, to the calls side by side, or to `propose` at once."""
    if state.get("stopped_by"):
        return END
    return [Send("ask", {"place": place}) for place in state["waiting"]] or "propose"


def wire(
    graph: StateGraph[StateT, Loop, StateT, StateT],
    plan: Plan,
    *,
    after: Sequence[str],
    rest: Callable[[StateT], str],
    to: Sequence[str],
) -> None:
    """Adds the calls side by side, before `propose`, and the queue.

    Args:
        after: The steps that leave a queue.
        rest: Where to go, of `to`, once it is empty.
    """
    graph.add_node("ask", steps.node(make_asker(plan)), input_schema=PlacedAsk)
    graph.add_node("evaluate", steps.node(evaluate), input_schema=Round)
    graph.add_edge("ask", "propose")

    def route(state: Any) -> str:
        return "evaluate" if state["queue"] else rest(state)

    for step in (*after, "evaluate"):
        graph.add_conditional_edges(step, route, ["evaluate", *to])


def wire_waves(graph: StateGraph[StateT, Loop, StateT, StateT], plan: Plan, *, then: str) -> None:
    """As `wire`, where a step leaves what is `planned` and no places, and goes to `more`.

    Waves follow one another until all was asked; the workflow's step `propose` leaves the queue.
    """
    wire(graph, plan, after=["propose"], rest=lambda _state: "more", to=["more"])
    graph.add_node("more", steps.node(next_wave), input_schema=Round)

    def route_wave(state: Any) -> str | list[Send]:
        return begin(state) if state["places"] else then

    graph.add_conditional_edges("more", route_wave, ["ask", "propose", then])
