# SPDX-License-Identifier: Apache-2.0
"""`tune`: a search over hand-written recipes, without a model to write candidates.

propose → evaluate → judge → challenge → promote → propose → …

As many candidates as can be built at once wait to be evaluated: they are built while the one before
them is verified. A confirmation takes as long as many screenings; so a challenger meets the
champion only once a few more candidates were screened, a better one among them in its place, and at
once where there is no champion yet. Confirmations take no more than a share of the time: who is the
fastest is found out in the race at the end (race.py). Who meets the champion is recorded before it
does.
"""

from __future__ import annotations

import itertools
import random
from contextlib import suppress
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from pydantic import Field

from ...traces.decisions import Challenged
from ...traces.place import Place
from ...traces.records import Record
from ..roles import Assignment, Mode
from ..stop import BudgetSpent, NothingToGain
from . import driver, own_start, steps
from .loop import Loop
from .rules import Questions, Rules

WORTH_CONFIRMING = 0.05
"""By so much a challenger seems faster, at least, as a logarithm: for less it can wait for the
race, and whoever ends a campaign by hand has lost no more."""
MOST_ABREAST = 4
"""Candidates that wait; of more the last ones would be proposed knowing too little."""


class Settings(Record):
    """What may be set."""

    confirm_after: int = Field(default=4, ge=0)
    """How many more candidates are screened before a challenger meets the champion. Few, so that a
    campaign ended by hand has a champion close to the best."""


class State(TypedDict, total=False):
    """The cursor. Every key takes the last value written."""

    round: int
    """How often something was proposed."""
    queue: list[str]
    """The candidates that are not screened yet."""
    current: str | None
    """The one that is judged now."""
    challenger: str | None
    """Who meets the champion then."""
    champion: str | None
    ended_by: str
    """Why no candidate follows those that wait."""
    stopped_by: str


START_STATE: State = {
    "round": 0,
    "queue": [],
    "current": None,
    "challenger": None,
    "champion": None,
    "ended_by": "",
}


def propose(state: State, loop: Loop) -> State:
    """As many candidates as may wait, with parents from the best of every family."""
    queue, number, by = list(state["queue"]), state["round"], ""
    wanted = _count_abreast(loop) - len(queue)
    is_past = steps.is_placed(loop, Place(number + 1, 0))
    for slot in itertools.count():
        place = Place(number, slot)
        # What was proposed on a machine with more CPUs waits here as well.
        if not steps.is_placed(loop, place) and (is_past or slot >= wanted):
            break
        by = _why_ended(loop, place) or ""
        try:
            assignment = Assignment(place=place)
            found = None if by else steps.propose(loop, assignment, _parents(loop, place))
        except (steps.Exhausted, NothingToGain) as ended:
            found, by = None, ended.by
        if by:
            break
        queue += [found] if found and found not in queue else []
    loop.ledger.foresee(queue[1:])
    if state["champion"] is None and queue:
        loop.ledger.foresee_confirmation(queue[0])
    return {"queue": queue, "ended_by": by, "round": number + 1}


def evaluate(state: State, loop: Loop) -> State:
    """Has the first of the queue screened; one a step, so that a wish is heard."""
    if not state["queue"]:
        return {"current": None}
    current, *queue = state["queue"]
    steps.screen(loop, current)
    return {"current": current, "queue": queue}


def judge(state: State, loop: Loop) -> State:
    """One bottleneck and one change, for whoever is bred from the candidate."""
    base = loop.ledger.find_member(state["current"])
    if base is not None:
        place = loop.progress.get_candidate(base.candidate).place
        # Without advice its offspring differ as chance has it.
        with suppress(BudgetSpent):
            steps.judge(loop, Assignment(place=place, mode=Mode.OPTIMISE, base=base))
    return {}


def challenge(state: State, loop: Loop) -> State:
    """Who meets the champion now: decided once, whatever the clock says later."""
    place = _place_of(state, loop)
    decided = loop.progress.find_decision(place, Challenged)
    if decided is not None:
        return {"challenger": decided.candidate}
    due = None if _is_past(state, loop) else _find_due(state, loop)
    if due is None and state["ended_by"] and not state["queue"]:
        return {"challenger": None, "stopped_by": state["ended_by"]}
    if due is not None:
        loop.ledger.decide(place, Challenged(candidate=due))
    return {"challenger": due}


def promote(state: State, loop: Loop) -> State:
    """Has the challenger confirmed beside the champion."""
    champion = state["champion"]
    if state["challenger"]:
        champion = steps.confirm(loop, state["challenger"], champion)
    return {"champion": champion}


def _place_of(state: State, loop: Loop) -> Place:
    """Of the candidate that is judged now; where there is none, of what would be proposed next."""
    current = loop.progress.find(state["current"])
    return current.place if current else Place(state["round"], 0)


def _is_past(state: State, loop: Loop) -> bool:
    """Whether what comes next was done already, by a process that is gone."""
    queue = state["queue"]
    is_screened = bool(queue) and loop.progress.get_candidate(queue[0]).screened is not None
    return is_screened or steps.is_placed(loop, Place(state["round"], 0))


def _why_ended(loop: Loop, place: Place) -> str | None:
    """The user's rounds are candidates."""
    most = loop.asked.rounds
    if most is not None and loop.progress.count >= most and not steps.is_placed(loop, place):
        return "rounds"
    return steps.why_not_admitted(loop, place)


def _count_abreast(loop: Loop) -> int:
    """Candidates that wait: as many as can be built at once."""
    return max(1, min(MOST_ABREAST, int(loop.facts.get("cpus", 1))))


def _find_due(state: State, loop: Loop) -> str | None:
    """The best of those that wait for a confirmation, if it is not to wait any longer."""
    progress, champion = loop.progress, state["champion"]
    best = progress.challenger
    if best is None or not champion:
        return best
    ahead = progress.scale.compare(best, champion)
    if ahead is None or ahead.mean < WORTH_CONFIRMING:
        return None
    screened = progress.count - len(state["queue"])
    waited = screened - progress.get_candidate(best).number
    loop.ledger.foresee_confirmation(best)
    confirm_after = Settings.model_validate(loop.asked.options).confirm_after
    left_s = loop.budget.compute_remaining(0).seconds
    has_time = steps.is_fair_to_confirm(loop) and left_s >= steps.next_confirmation_s(loop)
    return best if waited >= confirm_after and has_time else None


def _parents(loop: Loop, place: Place) -> tuple[str, ...]:
    progress = loop.progress
    if steps.is_placed(loop, place):
        return ()
    rng = random.Random(f"{loop.asked.seed}:{progress.count}:parents")
    return progress.archive.parents(rng)


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
    return own_start.begin(
        loop,
        lambda begun: driver.run(graph(), loop, {**START_STATE, "champion": begun.champion}),
    )


def _questions(_chosen: Settings, _rounds: int | None) -> Questions:
    # Its Coder asks no model, so that nothing of it is foreseen.
    return Questions(coder=0)


RULES = Rules(run, Settings, _questions)
