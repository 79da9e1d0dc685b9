# SPDX-License-Identifier: Apache-2.0
"""What chains share: one candidate a round, each an edit of one before (`forge`, `transpile`).

admit → (judge →) propose → evaluate → promote → decide → admit. What a round is, what it edits and
when it ends is the workflow's own: it brings the steps `admit`, `judge`, `propose` and `decide`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypedDict

from langgraph.graph import END, StateGraph
from langgraph.typing import StateT

from . import knobs, steps
from .loop import Loop


class Link(TypedDict, total=False):
    """What the state of every chain has."""

    current: str | None
    """The candidate of this round."""
    champion: str | None


def evaluate(state: Link, loop: Loop) -> Link:
    """Has the round's candidate screened."""
    if state["current"]:
        steps.screen(loop, state["current"])
    return {}


def promote(state: Link, loop: Loop) -> Link:
    """Confirms a candidate that may be the new champion, and tunes it; its best is the round's."""
    if not state["current"]:
        return {}
    current, champion = state["current"], state["champion"]
    champion = steps.promote(loop, current, champion)
    if leader := knobs.find_leader(loop, [current], champion):
        current, champion = knobs.tune(loop, leader, champion)
    return {"current": current, "champion": champion}


def close(
    chain: StateGraph[StateT, Loop, StateT, StateT], begin: Callable[[StateT], str]
) -> StateGraph[StateT, Loop, StateT, StateT]:
    """Adds the common steps and every edge to a graph that has the workflow's own steps.

    Where it enters is the workflow's to say.

    Args:
        begin: After `admit`: `judge`, `propose` or END.
    """
    chain.add_node("evaluate", steps.node(evaluate), input_schema=Link)
    chain.add_node("promote", steps.node(promote, is_owed=True), input_schema=Link)
    chain.add_conditional_edges("admit", begin, ["judge", "propose", END])
    chain.add_edge("judge", "propose")
    chain.add_edge("propose", "evaluate")
    chain.add_edge("evaluate", "promote")
    chain.add_edge("promote", "decide")
    chain.add_edge("decide", "admit")
    return chain
