# SPDX-License-Identifier: Apache-2.0
"""`forge`: one chain of repairs and optimisations, with a Judge between (after CudaForge).

Round 0 writes a kernel; every later round edits the one before it, repairing it if it failed and
optimising it if it passed, on the Judge's words about that very kernel. Without a Judge the same
chain is `refine`. The graph's state is a cursor; what is true stands in the events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from ...traces.decisions import BaseChosen, NothingLeft, Postponed
from ...traces.place import Place
from ..books.candidate import KnownCandidate, choose_better
from ..roles import Assignment, Mode
from . import chain, driver, own_start, steps
from .loop import Loop
from .rules import NoSettings, Questions, Rules

ROUNDS = 10
"""Round 0 included; CudaForge's number."""

PATIENCE = 5
"""Rounds without a credited gain, after which more of the same is not worth its price."""

MUCH_SLOWER = 1.5
"""A kernel this many times slower than the best is no base to go on from (KernelAgent)."""

FAILURES = 2
"""In a row; then the chain goes back to the best."""


class State(TypedDict, total=False):
    """The cursor. Every key takes the last value written."""

    round: int
    current: str | None
    """The candidate of this round."""
    base: str | None
    """What the next round edits."""
    best: str | None
    """The highest score so far."""
    champion: str | None
    failures: int
    """Rounds in a row without a right candidate."""
    stale: int
    """Rounds in a row without a credited gain."""
    stopped_by: str


START_STATE: State = {
    "round": 0,
    "current": None,
    "base": None,
    "best": None,
    "champion": None,
    "failures": 0,
    "stale": 0,
}


def _admit_until(until: int) -> Callable[[State, Loop], State]:
    def admit(state: State, loop: Loop) -> State:
        """Whether another round may begin."""
        if "stopped_by" in state:
            return {}
        number, champion, stale = state["round"], state["champion"], state["stale"]
        by = steps.why_ended(loop, number, until, champion, stale, PATIENCE, state["best"])
        if by := by or steps.why_not_admitted(loop, _place(state)):
            return {"stopped_by": by}
        return {}

    return admit


def judge(state: State, loop: Loop) -> State:
    """One diagnosis of what is about to be edited."""
    steps.judge(loop, _assignment(state, loop))
    return {}


def propose(state: State, loop: Loop) -> State:
    """A first kernel, a repair or an optimisation; none where the Judge sees nothing left."""
    base = state["base"]
    if steps.why_nothing_left(loop, _place(state)):
        return {"current": None}
    assignment = _assignment(state, loop)
    return {"current": steps.propose(loop, assignment, (base,) if base else ())}


def decide(state: State, loop: Loop) -> State:
    """What the round was worth, and what the next one edits."""
    if why := steps.why_nothing_left(loop, _place(state)):
        return _leave_base(state, loop, why)
    number = state["round"]
    current, best = loop.progress.find(state["current"]), loop.progress.find(state["best"])
    is_right = current is not None and current.worth(number) is not None
    leader = choose_better(best, current, number)
    failures = 0 if is_right else state["failures"] + 1
    base, why = _next_base(state, loop, leader, failures)
    if why:
        loop.ledger.decide(_place(state), BaseChosen(candidate=base, why=why))
    return {
        "round": state["round"] + 1,
        "best": leader.candidate if leader else None,
        "base": base,
        "failures": 0 if why else failures,
        "stale": 0 if _has_gained(state, loop, leader) else state["stale"] + 1,
    }


def _leave_base(state: State, loop: Loop, why: str) -> State:
    """Turns from a base with nothing left to the best candidate, and ends if it is that."""
    base, best = state["base"], state["best"]
    left = NothingLeft(candidate=base, why=why)
    loop.ledger.decide(_place(state), left)
    if not best or best == base:
        return {"stopped_by": left.what}
    return {
        "round": state["round"] + 1,
        "base": best,
        "failures": 0,
        "stale": state["stale"] + 1,
    }


def _next_base(
    state: State, loop: Loop, best: KnownCandidate | None, failures: int
) -> tuple[str | None, str]:
    """The base of the next edit and, where it is not the round's own candidate, why."""
    current, number = loop.progress.find(state["current"]), state["round"]
    if best and best != current:
        found, top = current.worth(number) if current else None, best.worth(number)
        if failures >= FAILURES:
            return best.candidate, f"{failures} failures in a row"
        if found is not None and top is not None and found * MUCH_SLOWER < top:
            return best.candidate, f"{top / found:.2f} times slower than the best"
    return state["current"] or state["base"], ""


def _has_gained(state: State, loop: Loop, leader: KnownCandidate | None) -> bool:
    """Whether the round's candidate became the champion, or leads where nothing is timed."""
    current = loop.progress.find(state["current"])
    if current is None:
        return False
    if current.basis is not None and current.basis.emulated:
        return leader == current
    if leader == current and loop.progress.find_decision(current.place, Postponed):
        return True  # the race will tell
    return state["champion"] == current.candidate


def _place(state: State) -> Place:
    return Place(state["round"], 0)


def _assignment(state: State, loop: Loop) -> Assignment:
    place, base = _place(state), loop.ledger.find_member(state["base"])
    if base is None:
        return Assignment(place=place, mode=Mode.WRITE)
    is_right = loop.progress.get_candidate(base.candidate).worth() is not None
    mode = Mode.OPTIMISE if is_right else Mode.REPAIR
    advice = loop.progress.advised.get(place)
    return Assignment(place=place, mode=mode, base=base, advice=advice)


def graph(until: int, *, has_judge: bool) -> StateGraph[State, Loop, State, State]:
    """The chain: admit → (judge →) propose → evaluate → promote → decide → admit.

    Args:
        until: The number of the round that is not begun any more.
    """
    chained = StateGraph(State, context_schema=Loop)
    for step in (_admit_until(until), judge, propose, decide):
        chained.add_node(step.__name__, steps.node(step), input_schema=State)

    def begin(state: State) -> str:
        if state.get("stopped_by"):
            return END
        return "judge" if has_judge and state["base"] else "propose"

    chained.add_edge(START, "admit")
    return chain.close(chained, begin)


def follow(loop: Loop, number: int, best: str, champion: str | None) -> str:
    """Goes on from a kernel that another workflow found, with as many rounds of its own."""
    start: State = {
        **START_STATE,
        "round": number,
        "base": best,
        "best": best,
        "champion": champion,
    }
    chained = graph(number + steps.rounds_of(loop, ROUNDS), has_judge=True)
    return driver.run(chained, loop, dict(start), "forge")


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    chained = graph(steps.rounds_of(loop, ROUNDS), has_judge=True)
    return own_start.begin(loop, lambda begun: driver.run(chained, loop, dict(begin_from(begun))))


def begin_from(begun: own_start.Begun) -> State:
    """The state of a chain that begins from the user's own kernel, if there is one."""
    best = begun.seed if begun.is_right else None
    return {**START_STATE, "base": begun.seed, "best": best, "champion": begun.champion}


def _questions(_chosen: NoSettings, rounds: int | None) -> Questions:
    most = ROUNDS if rounds is None else rounds
    return Questions(coder=most, judge=most - 1)


RULES = Rules(run, NoSettings, _questions)
