"""A campaign from request to result: wires problem, brains, ledger, budget and workflow together.

Here stands what a campaign is asked and what it answers, and the outermost loop that records how it
ended, whatever ended it. How candidates are found stands in `agents/`, how they are proved in
`verifier/`. The referee is opened and closed by the caller.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Protocol as Interface

from pydantic import Field, JsonValue, field_validator

from .agents import roster
from .agents.budget import Budget, Clock, check_limits
from .agents.champion import CHAMPION
from .agents.ledger import Ledger, OnEvent, Recorder
from .agents.loop import Loop
from .agents.machine import machine_facts, versions
from .agents.progress import Progress
from .agents.protocols import Coder, Judge
from .agents.stop import Stop
from .errors import StorageError, UsageError
from .kernelbench.problem import Problem, Tensor, Workload
from .traces.events import CampaignFinished, CampaignResumed, CampaignStarted, Event
from .traces.records import Record, Speedup, Tier
from .verifier.request import Referee


class CampaignRequest(Record):
    """What a user asks for."""

    problem: str
    workload: str = ""
    """A workload's name or a matrix file's path; empty: the problem's default."""
    target: str = "cpu"
    language: str = "cpp"
    workflow: str = "evolve"
    model: str = "recipe"
    judge_model: str = "rules"
    limits: dict[str, float] = Field(default_factory=dict)
    """Hard caps: `evaluations`, `seconds`, `usd`; each only where set."""
    seed: int = 0
    accept_weak_isolation: bool = False
    cpus: tuple[int, ...] = ()

    @field_validator("limits")
    @classmethod
    def _are_limits(cls, limits: dict[str, float]) -> dict[str, float]:
        return check_limits(limits)


class Best(Record):
    """The champion, as `run --json` tells it."""

    candidate: str
    status: str
    latency_us: float | None
    roofline: float | None
    speedup: dict[str, Speedup]
    """By baseline; the figures of the confirmation in a fresh process."""


class CampaignResult(Record):
    """The document of `run --json`."""

    campaign: str
    problem: str
    target: str
    tier: str
    workflow: str
    model: str
    best: Best | None
    evaluated: int
    """Candidates with a verdict."""
    by_status: dict[str, int]
    usd: float = 0.0
    tokens: int = 0
    wall_s: float
    """Seconds of work, over every process that worked on it."""
    stopped_by: str


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
    campaign = store.create(_first_event(request, players.problem, workload, referee))
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
    return _result(ledger, budget.spent_s, stopped_by)


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


def _first_event(
    request: CampaignRequest, problem: Problem, workload: Workload, referee: Referee
) -> CampaignStarted:
    return CampaignStarted(
        problem=problem.name,
        problem_version=problem.version,
        workload=workload.name,
        workload_spec=workload.model_dump(mode="json"),
        target=request.target,
        language=request.language,
        tier=Tier.NATIVE if request.language == "cpp" else Tier.DEVICE_ONLY,
        workflow=request.workflow,
        model=request.model,
        judge_model=request.judge_model,
        seed=request.seed,
        limits=request.limits,
        machine=machine_facts(),
        versions=versions(),
        config={
            "problem": _described(problem),
            "request": request.model_dump(mode="json"),
            "facts": dict(referee.facts),
            "isolation": referee.isolation.model_dump(mode="json"),
        },
    )


def _described(problem: Problem) -> dict[str, JsonValue]:
    """What the viewer and the exports need of a Problem, since they read the store only."""

    def tensors(of: tuple[Tensor, ...]) -> list[JsonValue]:
        return [
            {"name": t.name, "dtype": t.dtype, "shape": list(t.shape), "is_index": t.is_index}
            for t in of
        ]

    return {
        "title": problem.title,
        "definition": problem.definition,
        "axes": dict(problem.axes),
        "inputs": tensors(problem.inputs),
        "outputs": tensors(problem.outputs),
        "entry": problem.name,
    }


def _result(ledger: Ledger, wall_s: float, stopped_by: str) -> CampaignResult:
    progress = ledger.progress
    started = progress.require_started()
    return CampaignResult(
        campaign=ledger.campaign,
        problem=started.problem,
        target=started.target,
        tier=started.tier,
        workflow=started.workflow,
        model=started.model,
        best=_best(progress),
        evaluated=progress.evaluated,
        by_status=progress.by_status,
        wall_s=wall_s,
        stopped_by=stopped_by,
    )


def _best(progress: Progress) -> Best | None:
    verdict = progress.tracks[progress.champion].verdict if progress.champion else None
    if verdict is None:
        return None
    timed = verdict.measurement
    return Best(
        candidate=verdict.candidate,
        status=verdict.status,
        latency_us=timed.candidate.median_us if timed else None,
        roofline=timed.roofline if timed else None,
        speedup={k: v for k, v in timed.speedup.items() if k != CHAMPION} if timed else {},
    )
