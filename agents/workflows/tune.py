# SPDX-License-Identifier: Apache-2.0
"""`tune`: a search over hand-written recipes, without a model to write candidates.

propose → evaluate → judge → challenge → promote → propose → …

Recipes cost nothing, and one that was just evaluated should already be a parent of the next: one
candidate a round, whose parents are drawn from the best of every family. A confirmation takes as
long as several screenings; so a challenger meets the champion only once a few more candidates were
screened, a better one among them in its place, and at once where there is no champion yet or where
there would be no time for it later. Who meets the champion is recorded before it does.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from ...kernelbench.targets import target_of
from ...traces.decisions import Challenged
from ...traces.place import NOWHERE, Place
from ...traces.records import Depth, Record
from ..roles import Assignment, Mode, Proposal
from ..stop import BudgetSpent
from . import driver, steps
from .loop import Loop
from .rules import Questions, Rules

LEAST_RESERVE_S = 10.0
"""Kept for confirming the best challenger while no confirmation was timed yet."""


class Settings(Record):
    """What may be set."""

    confirm_after: int = Field(default=4, ge=0)
    """How many more candidates are screened before a challenger meets the champion. Few, so that a
    campaign ended by hand has a champion close to the best."""


class State(TypedDict, total=False):
    """The cursor. Every key takes the last value written."""

    round: int
    current: str | None
    """The candidate of this round."""
    challenger: str | None
    """Who meets the champion in this round."""
    champion: str | None
    ended_by: str
    """Why there is no candidate for this round; whoever waits is still confirmed."""
    stopped_by: str


START_STATE: State = {
    "round": 0,
    "current": None,
    "challenger": None,
    "champion": None,
    "ended_by": "",
}


def propose(state: State, loop: Loop) -> State:
    """The round's candidate, whose parents are drawn from the best of every family."""
    place = _place(state)
    by = steps.why_not_admitted(loop, place)
    if loop.asked.rounds is not None and state["round"] >= loop.asked.rounds:
        by = "rounds"
    try:
        found = None if by else steps.propose(loop, Assignment(place=place), _parents(loop, place))
    except steps.Exhausted as exhausted:
        found, by = None, exhausted.by
    return {"current": found, "ended_by": by or ""}


def evaluate(state: State, loop: Loop) -> State:
    """Has the candidate screened, while the next one is guessed."""
    if state["current"]:
        _foresee(loop, state["current"])
        steps.screen(loop, state["current"])
    return {}


def judge(state: State, loop: Loop) -> State:
    """One bottleneck and one change, for whoever is bred from the candidate."""
    base = loop.ledger.find_member(state["current"])
    if base is not None:
        # Without advice its offspring differ as chance has it.
        with suppress(BudgetSpent):
            steps.judge(loop, Assignment(place=_place(state), mode=Mode.OPTIMISE, base=base))
    return {}


def challenge(state: State, loop: Loop) -> State:
    """Who meets the champion in this round: decided once, whatever the clock says later."""
    place = _place(state)
    decided = loop.progress.find_decision(place, Challenged)
    if decided is not None:
        return {"challenger": decided.candidate}
    is_past = steps.is_placed(loop, Place(state["round"] + 1, 0))
    due = None if is_past else _due_challenger(state, loop)
    if due is None:
        ended_by = state["ended_by"]
        return {"challenger": None, **({"stopped_by": ended_by} if ended_by else {})}
    loop.ledger.decide(place, Challenged(candidate=due))
    return {"challenger": due}


def promote(state: State, loop: Loop) -> State:
    """Has the challenger confirmed beside the champion, and goes on to the next round."""
    champion = state["champion"]
    if state["challenger"]:
        champion = steps.promote(loop, state["challenger"], champion)
    return {"champion": champion, "round": state["round"] + 1}


def _due_challenger(state: State, loop: Loop) -> str | None:
    """The best of those that wait for a confirmation, if it is not to wait any longer."""
    progress = loop.progress
    best = progress.challenger
    if best is None or not state["champion"]:
        return best
    if not _has_time_to_confirm(loop):
        # It waits for a resumption: the champion stands, and the user's limit is near.
        return None
    waited = progress.count - progress.get_candidate(best).number
    confirm_after = Settings.model_validate(loop.asked.options).confirm_after
    is_last_call = bool(state["ended_by"]) or _is_last_call(loop)
    return best if is_last_call or waited >= confirm_after else None


def _has_time_to_confirm(loop: Loop) -> bool:
    """Whether a confirmation that takes as long as the last one ends in time."""
    took_s = loop.progress.last_took_s.get(Depth.CONFIRM, 0.0)
    return loop.budget.compute_remaining(0).seconds >= took_s


def _is_last_call(loop: Loop) -> bool:
    """Whether one more screening would leave no time for a confirmation."""
    progress = loop.progress
    reserve_s = max(LEAST_RESERVE_S, sum(progress.last_took_s.values()))
    return loop.budget.compute_remaining(progress.count).seconds <= reserve_s


def _parents(loop: Loop, place: Place) -> tuple[str, ...]:
    progress = loop.progress
    if steps.is_placed(loop, place):
        return ()
    rng = random.Random(f"{loop.asked.seed}:{progress.count}:parents")
    return progress.archive.parents(rng)


def _foresee(loop: Loop, candidate: str) -> None:
    """Has the referee begin the next candidate, as it is if this one changes nothing.

    A guess, good for what is idle meanwhile; on the target `cpu` nothing is.
    """
    is_screened = loop.progress.get_candidate(candidate).screened is not None
    if target_of(loop.target).is_cpu or is_screened:
        return
    guess = loop.coder.propose(loop.situation(_parents(loop, NOWHERE)))
    if isinstance(guess, Proposal):
        loop.ledger.foresee_proposed(guess)


def _place(state: State) -> Place:
    return Place(state["round"], 0)


def graph() -> StateGraph[State, Loop, State, State]:
    """The graph of the docstring."""
    search = StateGraph(State, context_schema=Loop)
    for step in (propose, evaluate, judge, challenge, promote):
        search.add_node(step.__name__, steps.node(step), input_schema=State)

    def route(state: State) -> str:
        return END if state.get("stopped_by") else "promote"

    search.add_edge(START, "propose")
    search.add_edge("propose", "evaluate")
    search.add_edge("evaluate", "judge")
    search.add_edge("judge", "challenge")
    search.add_conditional_edges("challenge", route, ["promote", END])
    search.add_edge("promote", "propose")
    return search


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    return driver.run(graph(), loop, dict(START_STATE))


def _questions(_chosen: Settings, _rounds: int | None) -> Questions:
    # Its Coder asks no model, so that nothing of it is foreseen.
    return Questions(coder=0)


RULES = Rules(run, Settings, _questions)
