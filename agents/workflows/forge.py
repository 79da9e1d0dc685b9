"""`forge`: one chain of repairs and optimisations, with a Judge between (after CudaForge).

Round 0 writes a kernel; every later round edits the one before it, repairing it if it failed and
optimising it if it passed, on the Judge's words about that very kernel. Without a Judge the same
chain is `refine`. The graph's state is a cursor; what is true stands in the events.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypedDict

from langgraph.graph import END, START, StateGraph

from ...traces.decisions import BaseChosen, NothingLeft
from ...traces.place import Place
from ..roles import Assignment, Mode
from . import chain, driver, steps
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
    """The cursor. Every key takes the last value written; "" stands for no candidate."""

    round: int
    current: str
    """The candidate of this round."""
    base: str
    """What the next round edits."""
    best: str
    """The highest score so far."""
    champion: str
    failures: int
    """Rounds in a row without a right candidate."""
    stale: int
    """Rounds in a row without a credited gain."""
    stopped_by: str


START_STATE: State = {
    "round": 0,
    "current": "",
    "base": "",
    "best": "",
    "champion": "",
    "failures": 0,
    "stale": 0,
}


def admit(state: State, loop: Loop) -> State:
    """Whether another round may begin."""
    if "stopped_by" in state:
        return {}
    if by := _why_ended(state, loop) or steps.why_not_admitted(loop, _place(state)):
        return {"stopped_by": by}
    return {}


def judge(state: State, loop: Loop) -> State:
    """One diagnosis of what is about to be edited."""
    steps.judge(loop, _assignment(state, loop))
    return {}


def propose(state: State, loop: Loop) -> State:
    """A first kernel, a repair or an optimisation; none where the Judge sees nothing left."""
    base = state["base"]
    if steps.why_nothing_left(loop, _place(state)):
        return {"current": ""}
    assignment = _assignment(state, loop)
    return {"current": steps.propose(loop, assignment, (base,) if base else ())}


def decide(state: State, loop: Loop) -> State:
    """What the round was worth, and what the next one edits."""
    if why := steps.why_nothing_left(loop, _place(state)):
        return _left(state, loop, why)
    current, best, number = state["current"], state["best"], state["round"]
    is_right = steps.worth(loop, current, number) is not None
    leader = steps.better(loop, best, current, number)
    failures = 0 if is_right else state["failures"] + 1
    base, why = _next_base(state, loop, leader, failures)
    if why:
        loop.ledger.decide(_place(state), BaseChosen(candidate=base, why=why))
    return {
        "round": state["round"] + 1,
        "best": leader,
        "base": base,
        "failures": 0 if why else failures,
        "stale": 0 if _has_gained(state, loop, leader) else state["stale"] + 1,
    }


def _left(state: State, loop: Loop, why: str) -> State:
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


def _why_ended(state: State, loop: Loop) -> str | None:
    number, champion, stale = state["round"], state["champion"], state["stale"]
    return steps.why_ended(loop, number, ROUNDS, champion, stale, PATIENCE, state["best"])


def _next_base(state: State, loop: Loop, best: str, failures: int) -> tuple[str, str]:
    """The base of the next edit and, where it is not the round's own candidate, why."""
    current = state["current"]
    if best and best != current:
        number = state["round"]
        found, top = steps.worth(loop, current, number), steps.worth(loop, best, number)
        if failures >= FAILURES:
            return best, f"{failures} failures in a row"
        if found is not None and top is not None and found * MUCH_SLOWER < top:
            return best, f"{top / found:.2f} times slower than the best"
    return current or state["base"], ""


def _has_gained(state: State, loop: Loop, leader: str) -> bool:
    """Whether the round's candidate became the champion, or leads where nothing is timed."""
    current = state["current"]
    if not current:
        return False
    screened = loop.ledger.progress.tracks[current].verdict
    if screened is not None and screened.emulated:
        return leader == current
    return state["champion"] == current


def _place(state: State) -> Place:
    return Place(state["round"], 0)


def _assignment(state: State, loop: Loop) -> Assignment:
    place, base = _place(state), steps.member(loop, state["base"])
    if base is None:
        return Assignment(place=place, mode=Mode.WRITE)
    mode = Mode.OPTIMISE if steps.worth(loop, base.candidate) is not None else Mode.REPAIR
    advice = loop.ledger.progress.advised.get(place)
    return Assignment(place=place, mode=mode, base=base, advice=advice)


def graph(*, has_judge: bool) -> StateGraph[State, Loop, State, State]:
    """The chain: admit → (judge →) propose → evaluate → promote → decide → admit."""
    chained = StateGraph(State, context_schema=Loop)
    for step in (admit, judge, propose, decide):
        chained.add_node(step.__name__, steps.node(step), input_schema=State)

    def begin(state: State) -> str:
        if state.get("stopped_by"):
            return END
        return "judge" if has_judge and state["base"] else "propose"

    chained.add_edge(START, "admit")
    return chain.close(chained, begin)


def follow(loop: Loop, number: int, best: str, champion: str) -> str:
    """Goes on from a kernel that another workflow found, with as many rounds of its own."""
    rounds = number + (ROUNDS if loop.rounds is None else loop.rounds)
    start: State = {
        **START_STATE,
        "round": number,
        "base": best,
        "best": best,
        "champion": champion,
    }
    chained = graph(has_judge=True)
    return driver.run(chained, replace(loop, rounds=rounds, options={}), dict(start), "forge")


def run(loop: Loop) -> str:
    """Runs the campaign on; says what stopped it."""
    return driver.run(graph(has_judge=True), loop, dict(START_STATE))


def _questions(_chosen: NoSettings, rounds: int | None) -> Questions:
    most = ROUNDS if rounds is None else rounds
    return Questions(coder=most, judge=most - 1)


RULES = Rules(run, NoSettings, _questions)
