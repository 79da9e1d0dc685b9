"""`evolve`: the fittest of every niche have offspring; by generations where a model writes them.

A model's proposals cost money and time, so that several are asked for at once and chosen from
before they are evaluated: `generations.py`. Recipes cost nothing, and one that was just evaluated
should already be a parent of the next: propose → evaluate → diagnose → select, one at a time, is
what stands here. Settings of generations, where any is given, hold for recipes too.

The graph's state is a cursor: ids and a reason to stop. What is true stands in the events, which
Progress folds; so the graph can begin at any prefix of a campaign's events, and a node that runs
again finds its result in the ledger. The nodes hold the policy; they know no SQL and no compiler.
"""

from __future__ import annotations

import random
from contextlib import suppress
from functools import cache
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langsmith import tracing_context

from ...kernelbench.targets import target_of
from ...traces.place import Place
from ...traces.records import Protocol
from ..roles import Assignment, Mode, Proposal
from ..search.championship import displaces
from ..stop import BudgetSpent, Halt
from . import generations, steps
from .driver import STEPS_BOUND
from .loop import Loop
from .rules import Rules

LEAST_RESERVE_S = 10.0
"""Kept for confirming the best challenger while no confirmation was timed yet."""

USELESS = 5
"""Proposals in a row without a candidate that end a campaign."""


class State(TypedDict, total=False):
    """The cursor. Every key takes the last value written."""

    candidate: str
    parents: list[str]
    stopped_by: str


def propose(state: State, runtime: Runtime[Loop]) -> State:
    """Asks the Coder for the next candidate."""
    loop = runtime.context
    parents = tuple(state.get("parents", []))
    try:
        return {"candidate": steps.propose(loop, _assignment(loop, parents), parents)}
    except (steps.Exhausted, BudgetSpent) as halt:
        return {"stopped_by": _hold_challenges(loop, is_last_call=True) or halt.by}


def evaluate(state: State, runtime: Runtime[Loop]) -> State:
    """Has the candidate screened."""
    loop = runtime.context
    if halted := loop.why_halted():
        return {"stopped_by": halted}
    if state["candidate"]:
        _foresee(loop)
        loop.ledger.evaluate(state["candidate"], Protocol.SCREEN)
    return {}


def diagnose(state: State, runtime: Runtime[Loop]) -> State:
    """Asks the Judge for one bottleneck and one change."""
    loop = runtime.context
    if not state["candidate"]:
        return {}
    member = loop.ledger.member(state["candidate"])
    # Without advice the next proposal does as well as it can, or meets the same cap.
    with suppress(BudgetSpent):
        situation = loop.situation(list(member.parents))
        loop.ledger.advise(steps.diagnosis(loop, member, situation))
    return {}


def select(state: State, runtime: Runtime[Loop]) -> State:
    """Confirms a challenger, crowns who won, and draws the parents of the next round."""
    del state  # everything that selection rests on stands in the events
    loop = runtime.context
    candidates = len(loop.ledger.progress.tracks)
    halted = _hold_challenges(loop, is_last_call=_is_last_call(loop))
    halted = halted or loop.why_halted() or loop.budget.why_stopped(candidates)
    if stopped_by := halted or _why_given_up(loop):
        return {"stopped_by": stopped_by}
    return {"parents": list(_parents(loop))}


def _parents(loop: Loop) -> tuple[str, ...]:
    progress = loop.ledger.progress
    rng = random.Random(f"{loop.seed}:{len(progress.tracks)}:parents")
    return progress.archive.parents(rng)


def _foresee(loop: Loop) -> None:
    """Has the referee begin the next candidate, as it is if this one changes nothing.

    A guess, good for what is idle meanwhile; on the target `cpu` nothing is.
    """
    if target_of(loop.target).is_cpu:
        return
    guess = loop.coder.propose(loop.situation(_parents(loop)))
    if isinstance(guess, Proposal):
        loop.ledger.foresee_proposed(guess)


def _assignment(loop: Loop, parents: tuple[str, ...]) -> Assignment:
    """A new place for every proposal; what a Coder that asks a model is to do there."""
    progress = loop.ledger.progress
    place = Place(len(progress.tracks) + len(progress.missing), 0)
    if not parents:
        return Assignment(place=place, mode=Mode.WRITE)
    base = loop.ledger.member(parents[0])
    return Assignment(place=place, mode=Mode.OPTIMISE, base=base, advice=base.advice)


def _why_given_up(loop: Loop) -> str | None:
    """A Coder whose last proposals were all useless is not asked for ever."""
    progress = loop.ledger.progress
    made = len(progress.tracks) + len(progress.missing)
    last = [Place(number, 0) in progress.missing for number in range(made - USELESS, made)]
    return "no candidate" if made >= USELESS and all(last) else None


def _hold_challenges(loop: Loop, *, is_last_call: bool) -> str | None:
    """Confirms who is due, against the champion of that moment; says what cut it short, if so."""
    progress = loop.ledger.progress
    _settle(loop)
    while challenger := progress.challenger(is_last_call=is_last_call):
        if halted := loop.why_halted():
            return halted
        if progress.champion is not None and not _has_time_to_confirm(loop):
            # It waits for a resumption: the champion stands, and the user's limit is near.
            return None
        loop.ledger.evaluate(challenger, Protocol.CONFIRM, progress.champion)
        _settle(loop)
    return None


def _has_time_to_confirm(loop: Loop) -> bool:
    """Whether a confirmation that takes as long as the last one ends in time."""
    took_s = loop.ledger.progress.last_took_s.get(Protocol.CONFIRM, 0.0)
    return loop.budget.left(0).seconds >= took_s


def _is_last_call(loop: Loop) -> bool:
    """Whether one more screening would leave no time, or no candidate, for a confirmation."""
    progress = loop.ledger.progress
    left = loop.budget.left(len(progress.tracks))
    reserve_s = max(LEAST_RESERVE_S, sum(progress.last_took_s.values()))
    return left.seconds <= reserve_s or left.evaluations < 1


def _settle(loop: Loop) -> None:
    """Crowns the candidate that was confirmed last, if it won."""
    progress = loop.ledger.progress
    candidate = progress.to_settle
    if candidate is None:
        return
    confirmed = progress.tracks[candidate].verdicts[Protocol.CONFIRM]
    if displaces(confirmed, has_champion=progress.champion is not None):
        loop.ledger.crown(candidate, confirmed)


def _resume_at(loop: Loop) -> State:
    """The cursor for the events so far: the last candidate, if its round is unfinished."""
    last = loop.ledger.progress.last
    is_unfinished = last is not None and (last.verdict is None or last.advice is None)
    return {"candidate": last.proposed.candidate} if last and is_unfinished else {}


def _enter(state: State) -> str:
    return "evaluate" if "candidate" in state else "select"


@cache
def build() -> CompiledStateGraph[State, Loop, State, State]:
    """The graph. A node that sets `stopped_by` is the last."""
    graph = StateGraph(State, context_schema=Loop)
    graph.add_node(propose)
    graph.add_node(evaluate)
    graph.add_node(diagnose)
    graph.add_node(select)
    graph.add_conditional_edges(START, _enter, ["evaluate", "select"])
    _then(graph, "propose", "evaluate")
    _then(graph, "evaluate", "diagnose")
    _then(graph, "diagnose", "select")
    _then(graph, "select", "propose")
    return graph.compile()


def _then(graph: StateGraph[State, Loop], name: str, following: str) -> None:
    graph.add_conditional_edges(
        name, lambda state: END if state.get("stopped_by") else following, [following, END]
    )


def run(loop: Loop) -> str:
    """Runs the campaign on from where its events stand; says what stopped it."""
    if loop.slots or loop.options:
        return generations.run(loop)
    # Traces of a campaign must not leave this machine, whatever the environment asks for.
    with tracing_context(enabled=False):
        try:
            end = build().invoke(_resume_at(loop), {"recursion_limit": STEPS_BOUND}, context=loop)
        except Halt as halt:
            return halt.by
    return str(end["stopped_by"])


RULES = Rules(run, generations.Settings, generations.questions, generations.first)
