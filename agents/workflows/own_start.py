# SPDX-License-Identifier: Apache-2.0
"""A campaign that begins from the user's own kernel: candidate #1, verified and timed as any other.

Whatever the workflow, it is screened first and confirmed where it is right, and the workflow goes
on from it: as the base of its first edits, a founder of its islands, or a family of the space that
is searched. CUDA whose launches no plan could be written from has its plan written by the Coder.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from ...sandbox.host_plan.convert import is_published_form
from ...traces.place import Place
from ..books.candidate import KnownCandidate
from ..roles import Assignment, Mode, Proposal
from ..stop import Halt
from ..text.own_recipe import OWN, find_own_knobs
from . import knobs, steps
from .loop import Loop

START = Place(slot="source")
NEEDS_PLAN = (
    "It launches its kernels from host code of its own, and no launch plan could be written from "
    "that: keep its kernels, and say their launches as a launch plan."
)


class Begun(NamedTuple):
    """What a campaign has before its workflow begins."""

    seed: str | None = None
    """The user's own kernel, or a variant of it that is faster; None: there is none."""
    is_right: bool = False
    champion: str | None = None


def begin(loop: Loop, go: Callable[[Begun], str]) -> str:
    """Has the user's own kernel verified, where there is one; then the workflow runs.

    Args:
        go: Runs the workflow from there; says what stopped it.
    """
    try:
        begun = _verify_own(loop)
    except Halt as halt:
        return halt.by
    return go(begun)


def find_own(loop: Loop) -> KnownCandidate | None:
    """The user's own kernel, or the variant of it that is faster; None: there is none."""
    own = loop.progress.candidate_at(START)
    if own is None:
        return None
    return loop.progress.get_candidate(loop.progress.find_tuned(own.candidate))


def edit_own(loop: Loop, draft: Assignment) -> Assignment:
    """A first kernel as an edit of the user's own, where there is one."""
    own = find_own(loop)
    if own is None:
        return draft
    mode = Mode.OPTIMISE if own.worth() is not None else Mode.REPAIR
    return replace(draft, base=loop.ledger.member(own.candidate), mode=mode)


def _verify_own(loop: Loop) -> Begun:
    if not loop.source:
        return Begun()
    if by := loop.why_halted():
        raise Halt(by)
    if by := steps.why_not_admitted(loop, START):
        raise Halt(by)
    candidate = _record(loop)
    if candidate is None:
        return Begun()
    steps.screen(loop, candidate)
    champion = steps.promote(loop, candidate, None)
    if leader := knobs.find_leader(loop, [candidate], champion):
        candidate, champion = knobs.tune(loop, leader, champion)
    return Begun(candidate, loop.progress.get_candidate(candidate).worth() is not None, champion)


def _record(loop: Loop) -> str | None:
    if is_published_form(loop.source):
        told = (NEEDS_PLAN,)
        wanted = Assignment(place=START, mode=Mode.CONVERT, source=loop.source, told=told)
        return steps.propose(loop, wanted)
    now = find_own_knobs(loop.source, loop.language)
    own = Proposal(loop.source, loop.language, OWN, now, OWN, strategy="your own kernel")
    return steps.record(loop, own, START)
