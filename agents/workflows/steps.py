# SPDX-License-Identifier: Apache-2.0
"""The steps that workflows share: admit, propose, evaluate, judge, promote.

Each answers from the ledger where its work was done before, so that a graph may run again from any
point. A step takes the place of its work in the workflow, `round/slot`, and never decides what
comes after it. No step raises for a bad candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Protocol, TypeVar

from langgraph.runtime import Runtime

from ...errors import SandboxError
from ...traces.decisions import NothingLeft, Postponed
from ...traces.place import Place
from ...traces.records import Advice, Depth, Status, Verdict
from ..books.asking import PromptTooLong
from ..books.candidate import KnownCandidate
from ..prompting.words import same_source
from ..roles import Assignment, Member, NoProposal, Proposal, Situation
from ..search.championship import best_of, may_challenge
from ..stop import Halt
from ..text.found import ReplyOutcome
from .loop import Loop

MOST_CONFIRMING = 0.25
"""Of the time that was spent, confirmations may have taken so much ahead of the race."""
LEAST_CONFIRMING_S = 15.0
"""And so much in any case where models write candidates, since they take longer than that."""
CONFIRMATION_S = 6.0
"""What one takes, while none was timed yet."""

MOST_COUNTING = 0.25
"""Of the time that was spent, reading hardware counters for the Judge may have taken so much."""
LEAST_COUNTING_S = 15.0
"""And so much in any case."""

DUPLICATE = "duplicate"
"""The outcome of a reply that repeats a candidate to the letter."""

S = TypeVar("S")


class Exhausted(Halt):
    """The Coder has nothing new to propose."""

    def __init__(self) -> None:
        super().__init__("space exhausted")


class StepNode(Protocol[S]):
    """A step as langgraph calls it."""

    def __call__(self, state: S, *, runtime: Runtime[Loop]) -> S:
        """The keys of the state that change."""


def node(step: Callable[[S, Loop], S], *, is_owed: bool = False) -> StepNode[S]:
    """A step as a node of a graph. Nothing is begun once the user or the clock wants the end.

    Args:
        is_owed: The step ends what was begun in time: the clock does not stop it, the user does.
            A candidate's confirmation belongs to its evaluation; without it the result is nothing.
    """

    def run(state: S, *, runtime: Runtime[Loop]) -> S:
        loop = runtime.context
        by = loop.why_halted()
        if by and (loop.stop.requested or not is_owed):
            raise Halt(by)
        return step(state, loop)

    return run


def is_placed(loop: Loop, place: Place) -> bool:
    """Whether the proposal of this place was made or given up, whatever became of it."""
    progress = loop.progress
    is_left = progress.decisions.at(place, NothingLeft) is not None
    return is_left or place in progress.placed or place in progress.missing


def rounds_of(loop: Loop, own: int) -> int:
    """As many as the user set, else the workflow's own number."""
    return own if loop.asked.rounds is None else loop.asked.rounds


def why_ended(
    loop: Loop,
    done: int,
    most: int,
    champion: str | None,
    stale: int,
    patience: int | None = None,
    leader: str | None = None,
) -> str | None:
    """What ends a workflow by itself, or None.

    Args:
        done: Rounds, or generations, of `most`.
        patience: The workflow's own number, which holds where the user set none.
        stale: Rounds in a row without a gain.
        leader: The candidate with the best figure so far, which may be a modelled one.
    """
    patience = patience if loop.asked.patience is None else loop.asked.patience
    if done >= most:
        return "rounds"
    fastest, best = loop.progress.find(champion), loop.progress.find(leader)
    if (fastest and fastest.is_near_roof) or (best and best.is_near_floor):
        return "roofline"
    return "plateau" if patience is not None and stale >= patience else None


def why_not_admitted(loop: Loop, place: Place) -> str | None:
    """The cap that forbids a proposal at this place; what was done before needs no leave."""
    if is_placed(loop, place):
        return None
    return loop.budget.why_stopped(loop.progress.count)


def propose(loop: Loop, assignment: Assignment, parents: tuple[str, ...] = ()) -> str | None:
    """The candidate of the assignment's place, or None where no usable one came.

    Raises:
        Exhausted: the Coder has nothing new.
        BudgetSpent: a model could not be asked without the risk of passing a cap.
    """
    ledger, place = loop.ledger, assignment.place
    if is_placed(loop, place):
        return loop.progress.placed.get(place)
    base = assignment.base.candidate if assignment.base else ""
    if assignment.advice and assignment.base:
        check_same(assignment.advice, assignment.base.candidate)
    try:
        proposal = loop.coder.propose(loop.situation(parents, assignment))
    except PromptTooLong as error:
        proposal = NoProposal("prompt too long", str(error), error.call)
    if proposal is None:
        raise Exhausted
    if isinstance(proposal, NoProposal):
        ledger.record_missing(proposal, place, base)
        return None
    return record(loop, proposal, place)


def record(loop: Loop, proposal: Proposal, place: Place) -> str | None:
    """The proposal as the candidate of a place, once; None where its source was proposed before."""
    ledger = loop.ledger
    if is_placed(loop, place):
        return loop.progress.placed.get(place)
    before = loop.progress.count
    candidate = ledger.propose(proposal, place)
    if loop.progress.count == before:
        same = NoProposal(DUPLICATE, same_source(loop.progress.get_candidate(candidate).number))
        ledger.record_missing(same, place, *proposal.parents[:1])
        return None
    return candidate


def rehearse(loop: Loop, assignment: Assignment) -> Proposal | None:
    """Has a model's answers for this place paid and stored; what they hold is not recorded yet."""
    # A prompt that is too long is recorded; whoever proposes comes to it again.
    with suppress(PromptTooLong):
        found = loop.coder.propose(loop.situation((), assignment))
        return found if isinstance(found, Proposal) else None
    return None


def screen(loop: Loop, candidate: str) -> Verdict:
    """The candidate's screening beside the champion, done once."""
    return loop.ledger.evaluate(candidate, Depth.SCREEN, loop.ledger.rival_of(candidate))


def diagnosis(loop: Loop, base: Member, situation: Situation) -> Advice:
    """The Judge's words, or those of rules where the candidate does not fit the Judge's model.

    Raises:
        BudgetSpent: the model could not be asked without the risk of passing a cap.
        SandboxError: they are about another candidate.
    """
    try:
        advice = loop.judge.diagnose(base, situation)
    except PromptTooLong as error:
        # Loaded here: a campaign without models has no use for what speaks to them.
        from ..brains.llm_judge import FALLBACK
        from ..brains.rules import RuleJudge

        mode = "optimise" if base.verdict.status.is_pass else "repair"
        told = {"by": FALLBACK, "mode": mode, "notes": (f"prompt too long: {error}",)}
        advice = RuleJudge().diagnose(base, situation).model_copy(update=told)
    check_same(advice, base.candidate)
    return advice


def judge(loop: Loop, assignment: Assignment) -> None:
    """Has the Judge's words on exactly the assignment's base recorded, once for its place.

    Of a first failure to build it is not asked: the compiler has said what and where, and who
    repairs it reads the same log.
    """
    base = assignment.base
    assert base is not None
    if loop.progress.advised.get(assignment.place) or _is_plain(loop, base):
        return
    if _is_worth_counting(loop, base):
        loop.ledger.count(base.candidate)
        base = loop.ledger.member(base.candidate)
        assignment = replace(assignment, base=base)
    advice = diagnosis(loop, base, loop.situation(base.parents, assignment))
    loop.ledger.advise(advice, assignment.place)


def _is_worth_counting(loop: Loop, base: Member) -> bool:
    """Whether the hardware's counters are read before the Judge looks: of what is right, has none
    yet, and while counting has not taken more than its share of the time."""
    known = loop.progress.get_candidate(base.candidate)
    if not loop.ledger.counts or known.counted or not base.verdict.status.is_pass:
        return False
    if not base.verdict.protocol.is_quick:
        return False  # those of its confirmation are there
    share = MOST_COUNTING * loop.budget.spent_s
    return loop.progress.counted_s < max(LEAST_COUNTING_S, share)


def _is_plain(loop: Loop, base: Member) -> bool:
    """Whether it did not build, and is no attempt to mend what did not build either."""
    parents = [found for p in base.parents[:1] if (found := loop.progress.find(p))]
    verdicts = [base.verdict, *(parent.basis for parent in parents)]
    failed = [found is not None and found.status is Status.BUILD_FAILED for found in verdicts]
    return failed in ([True], [True, False])


def check_same(advice: Advice, base: str) -> None:
    """The thing diagnosed is the thing edited; anything else is a fault of ours."""
    if advice.candidate != base:
        raise SandboxError(
            f"advice on candidate {advice.candidate[:12]} was about to reach an edit of "
            f"{base[:12]}",
            hint="this is a fault of the workflow; nothing was recorded, please report it",
        )


def promote(loop: Loop, candidate: str, champion: str | None) -> str | None:
    """Times a challenger again in a fresh process, beside the champion; gives who is champion.

    `champion` is the one of this point of the workflow: the same on every run.
    """
    progress = loop.progress
    if candidate == champion or progress.get_candidate(candidate).screened_speed is None:
        return champion
    ahead = progress.compare_screened(candidate, champion) if champion else None
    if not may_challenge(ahead, has_champion=champion is not None):
        return champion
    if champion and _is_postponed(loop, candidate):
        return champion
    return confirm(loop, candidate, champion)


def _is_postponed(loop: Loop, candidate: str) -> bool:
    """Whether a challenger is left to the race, since confirmations had their share of the time.

    Decided once, whatever the clock says later.
    """
    known = loop.progress.get_candidate(candidate)
    if known.confirmed is not None:
        return False
    if loop.progress.find_decision(known.place, Postponed):
        return True
    recalled = loop.ledger.recalled
    was_postponed = recalled is not None and candidate in recalled.postponed
    if not was_postponed and (recalled or is_fair_to_confirm(loop, LEAST_CONFIRMING_S)):
        return False
    loop.ledger.decide(known.place, Postponed(candidate=candidate))
    return True


def is_fair_to_confirm(loop: Loop, least_s: float = 0.0) -> bool:
    """Whether with one more, confirmations ahead of the race stay within their share of the time
    that was spent, or within so many seconds."""
    taken_s = loop.progress.took_s[Depth.CONFIRM] + next_confirmation_s(loop)
    return taken_s <= max(least_s, MOST_CONFIRMING * loop.budget.spent_s)


def next_confirmation_s(loop: Loop) -> float:
    """As long as the last one took."""
    return loop.progress.last_took_s.get(Depth.CONFIRM, CONFIRMATION_S)


def confirm(loop: Loop, candidate: str, champion: str | None) -> str | None:
    """As `promote`, of one that was chosen already."""
    loop.ledger.evaluate(candidate, Depth.CONFIRM, champion)
    return loop.ledger.settle(candidate, champion)


def promote_best(
    loop: Loop, candidates: Sequence[KnownCandidate], champion: str | None
) -> str | None:
    """Confirms the best of a round, the next best where that one does not hold; the champion."""
    for candidate in best_of({each.candidate: each.score for each in candidates}):
        if promote(loop, candidate, champion) == candidate:
            return candidate
    return champion


def why_nothing_left(loop: Loop, place: Place) -> str:
    """Why Judge or Coder left the base of this place as it is; "": they did not."""
    progress = loop.progress
    said, missing = progress.advised.get(place), progress.missing.get(place)
    if said and said.nothing_left:
        return f"the Judge: {said.why}"
    if missing and missing.outcome == ReplyOutcome.NO_CHANGE:
        return f"the Coder: {missing.reason}"
    return ""
