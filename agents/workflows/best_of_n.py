# SPDX-License-Identifier: Apache-2.0
"""`best_of_n`: first kernels only, none an edit of another: the control for every other workflow.

A sample is told which one it is, what the samples of earlier blocks try and, as everywhere, the
digest of what the campaign found so far; it is shown no other kernel and no profile. The calls of
a block run side by side where the endpoint takes that many. What they gave is recorded in the order
of the slots, by asking again for answers that are paid already: the order in which they arrive
changes nothing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from ...kernelbench.problem import Problem
from ...traces.events import CampaignStarted
from ...traces.place import Place
from ..prompting.history import strategies
from ..roles import Assignment, Mode, SampleNumber
from ..stop import BudgetSpent
from . import driver, knobs, own_start, steps
from .loop import Loop
from .rules import NoSettings, Questions, Rules

SAMPLES = 10
"""As many candidates as a chain of `forge` has rounds."""

ABREAST = 2
"""Samples of a block: the calls of one may run side by side, the next is told of them. It
is not the endpoint's number of slots, since a replay must ask the same words."""


class State(TypedDict, total=False):
    """The cursor. Every key takes the last value written."""

    first: int
    """The first slot of this generation."""
    last: int
    """The first slot beyond it."""
    slot: int
    """The slot that is worked on."""
    current: str | None
    champion: str | None
    refused_by: str
    """The cap that refused a call; the candidates that were paid for are still evaluated."""
    stopped_by: str


START_STATE: State = {"first": 0, "last": 0, "slot": 0, "current": None, "champion": None}


def admit(state: State, loop: Loop) -> State:
    """Whether another slot may be worked on."""
    slot = state["slot"]
    if slot >= _samples(loop):
        return {"stopped_by": "rounds"}
    is_next = slot >= state["last"]
    if is_next and "refused_by" in state:
        return {"stopped_by": state["refused_by"]}
    if by := steps.why_not_admitted(loop, Place(0, slot)):
        return {"stopped_by": by}
    return {"first": slot, "last": _end_of_generation(loop, slot)} if is_next else {}


def ask(state: State, loop: Loop) -> State:
    """Pays for one slot's answer; the state is the slot alone."""
    assignment = _assignment(state, loop)
    if not steps.is_placed(loop, assignment.place):
        # `propose` comes to it again once the calls beside it are settled.
        with suppress(BudgetSpent):
            if proposal := steps.rehearse(loop, assignment):
                loop.ledger.foresee_proposed(proposal)
    return {}


def propose(state: State, loop: Loop) -> State:
    """Records what the slot's answer holds."""
    try:
        return {"current": steps.propose(loop, _assignment(state, loop))}
    except BudgetSpent as spent:
        return {"current": None, "refused_by": spent.by}


def evaluate(state: State, loop: Loop) -> State:
    """Has the slot's candidate screened, and confirmed if it may be the champion."""
    current = state["current"]
    if current:
        steps.screen(loop, current)
    return {}


def promote(state: State, loop: Loop) -> State:
    """Confirms a candidate that may be the new champion, and goes on to the next slot."""
    champion = state["champion"]
    if state["current"]:
        champion = steps.promote(loop, state["current"], champion)
        if leader := knobs.find_leader(loop, [state["current"]], champion):
            champion = knobs.tune(loop, leader, champion).champion
    return {"champion": champion, "slot": state["slot"] + 1}


def _assignment(state: State, loop: Loop) -> Assignment:
    slot = state["slot"]
    plain = Assignment(
        place=Place(0, slot),
        first=slot - slot % ABREAST,
        mode=Mode.WRITE,
        sample=SampleNumber(slot + 1, _samples(loop)),
    )
    return own_start.edit_own(loop, replace(plain, told=strategies(loop.progress, plain)))


def _samples(loop: Loop) -> int:
    return steps.rounds_of(loop, SAMPLES)


def _end_of_generation(loop: Loop, first: int) -> int:
    """No more than the endpoint takes at once, and than may still be evaluated."""
    may_evaluate = loop.budget.compute_remaining(loop.progress.count).evaluations
    width = max(1, int(min(loop.slots, max(1.0, may_evaluate))))
    return min(first + width, first - first % ABREAST + ABREAST, _samples(loop))


def graph() -> StateGraph[State, Loop, State, State]:
    """admit → ask × slots → (propose → evaluate → promote → admit) …"""
    sampling = StateGraph(State, context_schema=Loop)
    for step in (admit, ask, propose, evaluate):
        sampling.add_node(step.__name__, steps.node(step), input_schema=State)
    sampling.add_node("promote", steps.node(promote, is_owed=True), input_schema=State)

    def route(state: State) -> str | list[Send]:
        if state.get("stopped_by"):
            return END
        slot, last = state["slot"], state["last"]
        if last - slot < 2 or slot > state["first"]:
            return "propose"
        return [Send("ask", {"slot": number}) for number in range(slot, last)]

    sampling.add_edge(START, "admit")
    sampling.add_conditional_edges("admit", route, ["ask", "propose", END])
    sampling.add_edge("ask", "propose")
    sampling.add_edge("propose", "evaluate")
    sampling.add_edge("evaluate", "promote")
    sampling.add_edge("promote", "admit")
    return sampling


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    return own_start.begin(
        loop, lambda begun: driver.run(graph(), loop, {**START_STATE, "champion": begun.champion})
    )


def _first_assignment(_problem: Problem, started: CampaignStarted, _source: str) -> Assignment:
    count = SAMPLES if started.rounds is None else started.rounds
    return Assignment(place=Place(0, 0), mode=Mode.WRITE, sample=SampleNumber(1, count))


def _questions(_chosen: NoSettings, rounds: int | None) -> Questions:
    return Questions(coder=SAMPLES if rounds is None else rounds)


RULES = Rules(run, NoSettings, _questions, _first_assignment)
