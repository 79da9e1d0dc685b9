"""`evolve`: propose → evaluate → diagnose → select, round after round, as a langgraph graph.

The graph's state is a cursor: ids and a reason to stop. What is true stands in the events, which
Progress folds; so the graph can begin at any prefix of a campaign's events, and a node that runs
again finds its result in the ledger. The nodes hold the policy; they know no SQL and no compiler.
"""

from __future__ import annotations

import random
from functools import cache
from typing import TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langsmith import tracing_context

from ...traces.records import Protocol
from ..champion import displaces
from ..loop import Loop

LEAST_RESERVE_S = 10.0
"""Kept for confirming the best challenger while no confirmation was timed yet."""

STEPS_BOUND = 2**31 - 1
"""langgraph's bound on steps; budgets end a campaign, never this."""


class State(TypedDict, total=False):
    """The cursor. Every key takes the last value written."""

    candidate: str
    parents: list[str]
    stopped_by: str


def propose(state: State, runtime: Runtime[Loop]) -> State:
    """Asks the Coder for the next candidate."""
    loop = runtime.context
    proposal = loop.coder.propose(loop.situation(state.get("parents", [])))
    if proposal is None:
        return {"stopped_by": _hold_challenges(loop, is_last_call=True) or "space exhausted"}
    return {"candidate": loop.ledger.propose(proposal)}


def evaluate(state: State, runtime: Runtime[Loop]) -> State:
    """Has the candidate screened."""
    loop = runtime.context
    if halted := loop.why_halted():
        return {"stopped_by": halted}
    loop.ledger.evaluate(state["candidate"], Protocol.SCREEN)
    return {}


def diagnose(state: State, runtime: Runtime[Loop]) -> State:
    """Asks the Judge for one bottleneck and one change."""
    loop = runtime.context
    member = loop.ledger.member(state["candidate"])
    loop.ledger.advise(loop.judge.diagnose(member, loop.situation(list(member.parents))))
    return {}


def select(state: State, runtime: Runtime[Loop]) -> State:
    """Confirms a challenger, crowns who won, and draws the parents of the next round."""
    del state  # everything that selection rests on stands in the events
    loop = runtime.context
    candidates = len(loop.ledger.progress.tracks)
    halted = _hold_challenges(loop, is_last_call=_is_last_call(loop))
    if stopped_by := halted or loop.why_halted() or loop.budget.why_stopped(candidates):
        return {"stopped_by": stopped_by}
    rng = random.Random(f"{loop.seed}:{candidates}:parents")
    return {"parents": list(loop.ledger.progress.archive.parents(rng))}


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
    # Traces of a campaign must not leave this machine, whatever the environment asks for.
    with tracing_context(enabled=False):
        end = build().invoke(_resume_at(loop), {"recursion_limit": STEPS_BOUND}, context=loop)
    return str(end["stopped_by"])
