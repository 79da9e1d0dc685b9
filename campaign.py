"""A campaign from request to result: wires problem, brains, ledger, budget and workflow together.

Here stands the outermost loop, which records how a campaign ended, whatever ended it. What one is
asked and answers stands in `agents/terms.py`, how candidates are found in `agents/workflows/`, how
they are proved in `verifier/`. The referee is opened and closed by the caller.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol as Interface

from .agents import roster
from .agents.budget import Budget, Clock, check_limits
from .agents.ledger import Ledger, OnEvent, Recorder
from .agents.loop import Loop
from .agents.progress import Progress
from .agents.protocols import Coder, Judge
from .agents.stop import Stop
from .agents.terms import Best, CampaignRequest, CampaignResult, first_event, result_of
from .errors import StorageError, UsageError
from .kernelbench.problem import Problem, Workload
from .traces.events import CampaignFinished, CampaignResumed, CampaignStarted, Event
from .verifier.request import Referee

__all__ = [
    "Best",
    "CampaignRequest",
    "CampaignResult",
    "CampaignStore",
    "Players",
    "campaign_started",
    "resume_campaign",
    "run_campaign",
]


class CampaignStore(Recorder, Interface):
    """What a campaign needs of a store; `traces.store.Store` is one."""

    def create(self, started: CampaignStarted) -> str:
        """Begins a campaign with its first event; gives its id."""

    def events(self, campaign: str, after: int = 0) -> list[Event]:
        """The campaign's events in order."""

    def lease(self, campaign: str) -> AbstractContextManager[object]:
        """Keeps every other process off the campaign."""


@dataclass(frozen=True)
class Players:
    """The problem and the brains that take part."""

    problem: Problem
    coder: Coder
    judge: Judge


def run_campaign(
    request: CampaignRequest,
    store: CampaignStore,
    referee: Referee,
    *,
    stop: Stop | None = None,
    on_event: OnEvent | None = None,
    workload: Workload | None = None,
    players: Players | None = None,
    clock: Clock = time.monotonic,
) -> CampaignResult:
    """Runs a new campaign to its end.

    Args:
        stop: asks for an end in order; see Stop.
        on_event: told every event after it was recorded.
        workload: the one that the referee was started for, if it is at hand; else the request's
            name of it is looked up.
        players: in place of the problem and the models that the request names.

    Raises:
        KernelwrightError: the harness failed; everything before is saved and can be resumed.
    """
    players = players or _players(
        request.problem, request.language, request.model, request.judge_model
    )
    workload = workload or _workload(players.problem, request.workload)
    roster.workflow(request.workflow)
    campaign = store.create(first_event(request, players.problem, workload, referee))
    if on_event:
        on_event(store.events(campaign)[0])
    with store.lease(campaign):
        ledger = Ledger(store, campaign, referee, Progress(store.events(campaign)), on_event)
        return _work_on(ledger, referee, players, stop or Stop(), clock)


def resume_campaign(
    campaign: str,
    store: CampaignStore,
    referee: Referee,
    limits: Mapping[str, float] | None = None,
    *,
    stop: Stop | None = None,
    on_event: OnEvent | None = None,
    players: Players | None = None,
    clock: Clock = time.monotonic,
) -> CampaignResult:
    """Takes a campaign up where its events end; nothing that has a verdict is evaluated again.

    Args:
        limits: caps that replace those of the same name; what was spent before counts.

    Raises:
        UsageError: another process runs it, or it cannot be compared with what is installed.
        KernelwrightError: as for `run_campaign`.
    """
    new_limits = check_limits(limits or {})
    started = campaign_started(store, campaign)
    players = players or _players(
        started.problem, started.language, started.model, started.judge_model
    )
    if players.problem.version != started.problem_version:
        raise UsageError(
            f"campaign {campaign} was run on version {started.problem_version} of "
            f"{started.problem}, and this is version {players.problem.version}",
            hint="its verdicts cannot be compared with new ones: start a new campaign",
        )
    with store.lease(campaign):
        ledger = Ledger(store, campaign, referee, Progress(store.events(campaign)), on_event)
        ledger.record(CampaignResumed(limits=ledger.progress.limits | new_limits))
        return _work_on(ledger, referee, players, stop or Stop(), clock)


def campaign_started(store: CampaignStore, campaign: str) -> CampaignStarted:
    """The first event of a campaign: what a referee for its resumption is opened with."""
    first = next(iter(store.events(campaign)), None)
    if first is None or not isinstance(first.payload, CampaignStarted):
        raise StorageError(
            f"the events of campaign {campaign} do not begin with its start",
            hint="the store was changed by something else; start a new campaign",
        )
    return first.payload


def _work_on(
    ledger: Ledger, referee: Referee, players: Players, stop: Stop, clock: Clock
) -> CampaignResult:
    """Runs the workflow from where the events stand, and records the end."""
    progress = ledger.progress
    started = progress.require_started()
    budget = Budget(progress.limits, spent_s=progress.spent_s, clock=clock)
    loop = Loop(
        problem=players.problem,
        target=started.target,
        language=started.language,
        seed=started.seed,
        facts=referee.facts,
        coder=players.coder,
        judge=players.judge,
        ledger=ledger,
        budget=budget,
        stop=stop,
    )
    with _end_recorded(ledger):
        stopped_by = roster.workflow(started.workflow)(loop)
        ledger.record(CampaignFinished(stopped_by=stopped_by, best=progress.champion))
    return result_of(ledger, budget.spent_s, stopped_by)


@contextmanager
def _end_recorded(ledger: Ledger) -> Iterator[None]:
    """Whatever ends the block is recorded as the campaign's end before it goes on its way."""
    try:
        yield
    except BaseException as error:
        by = "interrupted" if isinstance(error, KeyboardInterrupt) else "error"
        try:
            ledger.record(CampaignFinished(stopped_by=by, best=ledger.progress.champion))
        except StorageError as unrecorded:
            error.add_note(f"the end could not be recorded either: {unrecorded}")
        raise


def _players(problem: str, language: str, model: str, judge_model: str) -> Players:
    from .kernelbench.recipes.catalogue import recipes_for
    from .kernelbench.registry import get

    recipes = recipes_for(problem, language)
    return Players(
        problem=get(problem),
        coder=roster.coder(model, recipes),
        judge=roster.judge(judge_model, recipes),
    )


def _workload(problem: Problem, name: str) -> Workload:
    if not name:
        return problem.default_workload
    if name in {workload.name for workload in problem.workloads}:
        return problem.workload(name)
    from .kernelbench.registry import workload_for

    return workload_for(problem, name)
