# SPDX-License-Identifier: Apache-2.0
"""A campaign from request to result: wires problem, brains, ledger, budget and workflow together.

Here stands the outermost loop, which records how a campaign ended, whatever ended it. What one is
asked and answers stands in `agents/books/request.py`, how candidates are found in
`agents/workflows/`, how they are proved in `verifier/`. The referee is opened and closed by the
caller.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Protocol

from .agents.books.asking import book_cut_off
from .agents.books.budget import Budget, Clock, check_limits, check_priced
from .agents.books.ledger import Ledger, OnEvent, Recorder
from .agents.books.model_memory import recall
from .agents.books.past import Past, find_past, past_of
from .agents.books.progress import Progress
from .agents.books.request import (
    BestFound,
    CampaignRequest,
    CampaignResult,
    add_recorded_problem,
    first_event,
    result_of,
)
from .agents.casting.cast import Players, seat_players
from .agents.models import replay
from .agents.models.choosing import ModelSettings
from .agents.prompting.target_card import card_of
from .agents.roles import KnowsKnobs, Proposal
from .agents.stop import Stop
from .agents.workflows import admission, race
from .agents.workflows.loop import Loop
from .agents.workflows.workflow import find_workflow
from .errors import ProviderError, StorageError, UsageError
from .kernelbench.problem import Problem, Workload
from .kernelbench.registry import get, workload_for
from .traces.events import (
    BY_HAND,
    EVALUATION,
    CampaignFinished,
    CampaignPrepared,
    CampaignResumed,
    CampaignStarted,
    Event,
)
from .traces.fold import Entry
from .traces.options import Options
from .traces.records import Depth, KnobShare, Status, Verdict
from .verifier.request import Referee, Task

__all__ = [
    "BestFound",
    "CampaignRequest",
    "CampaignResult",
    "CampaignStore",
    "Kept",
    "Players",
    "UnkeptVerdictError",
    "campaign_started",
    "check_comparable",
    "resume_campaign",
    "run_campaign",
    "run_evaluation",
]


class UnkeptVerdictError(StorageError):
    """A candidate has its verdict, and the store took it no more. It ends as the store's fault."""

    def __init__(self, verdict: Verdict, fault: StorageError) -> None:
        super().__init__(f"the verdict is not kept: {fault}", hint=fault.hint)
        self.exit_code = fault.exit_code
        self.verdict = verdict


class Kept(NamedTuple):
    """A campaign of one candidate, and that one."""

    campaign: str
    entry: Entry


class CampaignStore(Recorder, Protocol):
    """What a campaign needs of a store; `traces.store.Store` is one."""

    def create(self, started: CampaignStarted) -> str:
        """Begins a campaign with its first event; gives its id."""

    def events(self, campaign: str, after: int = 0) -> list[Event]:
        """The campaign's events in order."""

    def starts(self) -> Iterator[tuple[str, CampaignStarted]]:
        """Every campaign with its first event, oldest first."""

    def lease(self, campaign: str) -> AbstractContextManager[object]:
        """Keeps every other process off the campaign."""

    def cursor_path(self, campaign: str) -> Path:
        """Where a workflow may keep where it stands; it may be lost without loss."""


def run_campaign(
    request: CampaignRequest,
    store: CampaignStore,
    referee: Referee,
    *,
    stop: Stop | None = None,
    on_event: OnEvent | None = None,
    workload: Workload | None = None,
    players: Players | None = None,
    settings: ModelSettings | None = None,
    clock: Clock = time.monotonic,
) -> CampaignResult:
    """Runs a new campaign to its end.

    Args:
        stop: asks for an end in order; see Stop.
        on_event: told every event after it was recorded.
        workload: the one that the referee was started for, if it is at hand; else the request's
            name of it is looked up.
        players: in place of the problem and the models that the request names.
        settings: how models are reached: endpoint, keys, prices.

    Raises:
        KernelwrightError: the harness failed; everything before is saved and can be resumed.
    """
    with seat_players(players, request, store, settings) as players:
        workload = workload or _workload(players.problem, request.workload)
        admission.check_request(request)
        admission.check_coder(request.workflow, has_model=players.has_model)
        check_priced(request.limits, players.models)
        if request.source:
            store.put_blob(request.source)
        past = _past_for(request, store, players, workload)
        campaign = store.create(plan_campaign(request, players, workload, referee, past))
        if on_event:
            on_event(store.events(campaign)[0])
        with store.lease(campaign):
            ledger = _ledger(store, campaign, referee, players, on_event)
            return _work_on(ledger, store, referee, players, stop or Stop(), clock)


def _past_for(
    request: CampaignRequest, store: CampaignStore, players: Players, workload: Workload
) -> Past:
    """What a search over recipes begins with; a replay with what its recording began with."""
    if request.model.startswith(replay.PREFIX):
        return past_of(campaign_started(store, request.model.removeprefix(replay.PREFIX)))
    if players.models or not request.transfer:
        return Past()
    asked = (request.problem, request.target, request.language, workload.name)
    return find_past(store, *asked)


def plan_campaign(
    request: CampaignRequest,
    players: Players,
    workload: Workload,
    referee: Referee,
    past: Past | None = None,
) -> CampaignStarted:
    """The first event of a campaign that is to begin."""
    version = admission.version_of(request.workflow, asks_models=bool(players.models))
    card = card_of(request.target, referee) if players.models else None
    return first_event(request, players.problem, workload, referee, version, card, past)


def run_evaluation(
    task: Task,
    source: str,
    language: str,
    depth: Depth,
    store: CampaignStore,
    referee: Referee,
    *,
    file: Path | None = None,
) -> Kept:
    """Evaluates one source, of which only the user knows where it is from, as a campaign of one.

    A referee that is not prepared is not waited for: what does not even build needs no baselines.

    Args:
        task: what the referee was started for.
        file: where the source was read; what it is called is kept, its folder is not.

    Raises:
        UnkeptVerdictError: there is a verdict, and the store failed after it.
        KernelwrightError: the harness failed before there was one.
    """
    request = CampaignRequest(
        problem=task.problem,
        workload=task.workload.matrix or task.workload.name,
        target=task.target,
        language=language,
        workflow=EVALUATION,
        model=BY_HAND,
        judge_model="",
    )
    problem = get(task.problem).for_target(task.target)
    campaign = store.create(first_event(request, problem, task.workload, referee, ""))
    called = _print_name(file) if file else ""
    proposal = Proposal(
        source, language, family=BY_HAND, knobs={}, operator=EVALUATION, file=called
    )
    with store.lease(campaign):
        ledger = Ledger(store, campaign, referee, Progress(store.events(campaign)))
        try:
            with _end_recorded(ledger):
                _judge_only(ledger, proposal, depth)
        except StorageError as fault:
            if ledger.heard is None:
                raise
            raise UnkeptVerdictError(ledger.heard, fault) from fault
    (entry,) = ledger.progress.entries.values()
    assert ledger.heard is not None
    # A ledger keeps no check that passed, and whoever asks for one verdict wants all of it.
    return Kept(campaign, replace(entry, verdicts=(ledger.heard,), relied_on=(ledger.heard,)))


def _print_name(file: Path) -> str:
    """What the file is called; a name may hold bytes that are no text, and escape sequences."""
    return "".join(c if c.isprintable() else "?" for c in file.name)


def _judge_only(ledger: Ledger, proposal: Proposal, depth: Depth) -> None:
    """Its only candidate, which is the champion once it is verified."""
    candidate = ledger.propose(proposal)
    verdict = ledger.evaluate(candidate, depth)
    if verdict.status is Status.VERIFIED:
        ledger.crown(candidate, verdict)
    ledger.record(CampaignFinished(stopped_by="evaluated", best=ledger.progress.champion))


def resume_campaign(
    campaign: str,
    store: CampaignStore,
    referee: Referee,
    limits: Mapping[str, float] | None = None,
    *,
    stop: Stop | None = None,
    on_event: OnEvent | None = None,
    players: Players | None = None,
    settings: ModelSettings | None = None,
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
    admission.check_searched(campaign, started)
    with seat_players(players, started, store, settings) as players:
        check_comparable(campaign, started, players)
        with store.lease(campaign):
            ledger = _ledger(store, campaign, referee, players, on_event)
            now_holds = ledger.progress.limits | new_limits
            check_priced(now_holds, players.models)
            ledger.record(CampaignResumed(limits=now_holds))
            return _work_on(ledger, store, referee, players, stop or Stop(), clock)


def check_comparable(campaign: str, started: CampaignStarted, players: Players) -> None:
    """Whether what was found before means the same as what would be found now.

    Raises:
        UsageError: problem, workflow or prompts are not those that the campaign began with.
    """
    if players.problem.version != started.problem_version:
        raise UsageError(
            f"campaign {campaign} was run on version {started.problem_version} of "
            f"{started.problem}, and this is version {players.problem.version}",
            hint="its verdicts cannot be compared with new ones: start a new campaign",
        )
    has_model, asks_models = players.has_model, bool(players.models)
    admission.check_version(campaign, started, has_model=has_model, asks_models=asks_models)


def campaign_started(store: CampaignStore, campaign: str) -> CampaignStarted:
    """The first event of a campaign: what a referee for its resumption is opened with."""
    first = next(iter(store.events(campaign)), None)
    if first is None or not isinstance(first.payload, CampaignStarted):
        raise StorageError(
            f"the events of campaign {campaign} do not begin with its start",
            hint="the store was changed by something else; start a new campaign",
        )
    add_recorded_problem(first.payload)
    return first.payload


def _ledger(
    store: CampaignStore,
    campaign: str,
    referee: Referee,
    players: Players,
    on_event: OnEvent | None,
) -> Ledger:
    progress = Progress(store.events(campaign))
    return Ledger(
        store,
        campaign,
        referee,
        progress,
        on_event,
        recorded=players.recorded,
        recalled=players.recalled,
    )


def _work_on(
    ledger: Ledger,
    store: CampaignStore,
    referee: Referee,
    players: Players,
    stop: Stop,
    clock: Clock,
) -> CampaignResult:
    """Runs the workflow from where the events stand, and records the end."""
    progress = ledger.progress
    with _end_recorded(ledger):
        if not _prepared(ledger, referee, stop):
            ledger.record(CampaignFinished(stopped_by="interrupted", best=progress.champion))
            return result_of(ledger, progress.spent_s, "interrupted")
        budget = Budget(
            progress.limits,
            spent_s=progress.spent_s,
            spending=progress.spending,
            clock=clock,
            keep_s=lambda limit_s: race.compute_reserve(ledger, limit_s),
        )
        recall(players.models, ledger, store.events(ledger.campaign))
        loop = _loop(ledger, store, referee, players, stop, budget)
        book_cut_off(ledger)
        stopped_by = find_workflow(progress.started.workflow).rules.run(loop)
        race.run(loop)
        ledger.record(
            CampaignFinished(
                stopped_by=stopped_by,
                best=progress.champion,
                sureness=race.compute_sureness(loop),
                knobs=_weigh_knobs(loop),
            )
        )
    return result_of(ledger, budget.spent_s, stopped_by)


def _weigh_knobs(loop: Loop) -> tuple[KnobShare, ...]:
    coder = loop.coder
    return coder.weigh_knobs(loop.situation(())) if isinstance(coder, KnowsKnobs) else ()


def _prepared(ledger: Ledger, referee: Referee, stop: Stop) -> bool:
    """Waits for the referee before the budget's clock starts; False: the user wants the end."""
    found = referee.prepare(lambda: not stop.requested)
    if found is not None:
        ledger.record(CampaignPrepared.model_validate(found.model_dump()))
    return found is not None


def _loop(
    ledger: Ledger,
    store: CampaignStore,
    referee: Referee,
    players: Players,
    stop: Stop,
    budget: Budget,
) -> Loop:
    started = ledger.progress.started
    coder, judge, aids = players.brains(ledger, budget, stop)
    return Loop(
        problem=players.problem,
        target=started.target,
        language=started.language,
        facts=referee.facts,
        coder=coder,
        judge=judge,
        ledger=ledger,
        budget=budget,
        stop=stop,
        asked=Options.from_record(started),
        slots=players.slots,
        asks_models=bool(players.models),
        aids=aids,
        source=ledger.source(started.source) if started.source else "",
        past=past_of(started),
        cursor=store.cursor_path(ledger.campaign),
    )


@contextmanager
def _end_recorded(ledger: Ledger) -> Iterator[None]:
    """Whatever ends the block is recorded as the campaign's end before it goes on its way."""
    try:
        yield
    except BaseException as error:
        by = _ended_by(error)
        try:
            ledger.record(CampaignFinished(stopped_by=by, best=ledger.progress.champion))
        except StorageError as unrecorded:
            error.add_note(f"the end could not be recorded either: {unrecorded}")
        raise


def _ended_by(error: BaseException) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return "provider" if isinstance(error, ProviderError) else "error"


def _workload(problem: Problem, name: str) -> Workload:
    if not name:
        return problem.default_workload
    if name in {workload.name for workload in problem.workloads}:
        return problem.workload(name)
    return workload_for(problem, name)
