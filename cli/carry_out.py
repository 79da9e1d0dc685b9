# SPDX-License-Identifier: Apache-2.0
"""Opens the store and the referee, shows the plan, runs a campaign and hears Ctrl-C.

What a campaign does is decided in `campaign`; this file holds the ends of its strings.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..agents.stop import Stop
from ..config import Config
from ..errors import ExitCode
from ..traces.history import History, derive
from ..traces.options import Options
from ..workbench import tasks
from ..workbench.limits import with_an_end
from . import planning
from .progress import ProgressLines

if TYPE_CHECKING:
    from rich.console import Console

    from ..agents.casting.cast import Players
    from ..campaign import CampaignRequest, CampaignResult
    from ..traces.events import CampaignStarted
    from ..traces.store import Store
    from ..verifier.process.client import RefereeProcess
    from ..verifier.request import Task


@dataclass(frozen=True)
class Fresh:
    """A campaign that is to begin."""

    config: Config
    problem: str
    language: str
    workload: str | None
    matrix: Path | None
    limits: dict[str, float]
    """As asked for; none at all: the usual ones of the Coder."""
    asked: Options
    source: str = ""


@dataclass(frozen=True)
class Resume:
    """A campaign that goes on; a limit replaces the one it had, and what was spent counts."""

    config: Config
    name: str
    limits: dict[str, float]


Job = Fresh | Resume


@dataclass(frozen=True)
class RunOutcome:
    """What a run left behind; a dry run has only a plan."""

    plan: dict[str, Any]
    history: History | None = None
    result: CampaignResult | None = None
    is_interrupted: bool = False


@dataclass(frozen=True)
class _Ready:
    """Everything that is settled before the referee starts."""

    task: Task
    names: CampaignRequest | CampaignStarted
    """Who takes part: what is asked for, or what the campaign began with."""
    campaign: str | None
    limits: dict[str, float]
    note: str = ""

    @property
    def request(self) -> CampaignRequest | None:
        """Of a campaign that is to begin."""
        from ..campaign import CampaignRequest

        return self.names if isinstance(self.names, CampaignRequest) else None


def carry_out(job: Job, prose: Console, *, is_dry: bool, tail: str = "") -> RunOutcome:
    """Prints the plan and, unless it is a dry run, carries it out.

    Args:
        tail: `--home …` where a command that goes on with the campaign needs it.
    """
    from ..agents.books.budget import check_priced
    from ..agents.casting.cast import seat_players
    from ..agents.models.choosing import ModelSettings
    from ..campaign import CampaignRequest, check_comparable
    from ..traces.store import Store
    from ..verifier.process.client import open_referee

    with ExitStack() as stack:
        pressed = stack.enter_context(remembered_presses())
        store = None
        if not is_dry or isinstance(job, Resume) or _is_replay(job):
            store = stack.enter_context(Store.open(job.config.home))
        ready = _ready(job, store)
        settings = ModelSettings.from_config(
            job.config, ready.names.seed, is_to_be_asked=not is_dry
        )
        players = stack.enter_context(seat_players(None, ready.names, store, settings))
        check_priced(ready.limits, players.models)
        if not isinstance(ready.names, CampaignRequest):
            assert ready.campaign is not None
            check_comparable(ready.campaign, ready.names, players)
        prose.print("starting the referee and trying the sandbox …")
        referee = stack.enter_context(open_referee(ready.task))
        subject = planning.Subject(ready.task, ready.names, ready.campaign, ready.limits)
        plan = planning.show_plan(subject, players, referee, prose, note=ready.note)
        if is_dry:
            foreseen = planning.show_foreseen(subject, players, referee, prose)
            return RunOutcome(plan | {"first_call": foreseen})
        assert store is not None
        if pressed:
            raise KeyboardInterrupt
        return _run(_Running(ready, store, referee, players, prose, tail), plan)


@dataclass(frozen=True)
class _Running:
    """The parts of a campaign that is about to run."""

    ready: _Ready
    store: Store
    referee: RefereeProcess
    players: Players
    prose: Console
    tail: str


def _run(parts: _Running, plan: dict[str, Any]) -> RunOutcome:
    from ..campaign import resume_campaign, run_campaign

    ready, store, referee = parts.ready, parts.store, parts.referee
    stop = Stop()
    before = store.events(ready.campaign) if ready.campaign else ()
    watched = ProgressLines(parts.prose, ready.limits, before)
    with (
        watched as progress,
        interrupts(stop, progress, referee.kill, lambda: _resume_line(progress, parts.tail)),
    ):
        heard = progress.on_event
        if ready.request is not None:
            result = run_campaign(
                ready.request, store, referee, stop=stop, on_event=heard, players=parts.players
            )
        else:
            assert ready.campaign is not None
            result = resume_campaign(
                ready.campaign,
                store,
                referee,
                ready.limits,
                stop=stop,
                on_event=heard,
                players=parts.players,
            )
    history = derive(store.events(result.campaign))
    return RunOutcome(plan, history, result, is_interrupted=stop.requested)


def _resume_line(progress: ProgressLines, tail: str) -> str:
    resume = f"kernelwright run --resume {progress.campaign} {tail}".rstrip()
    return f"resume   {resume}" if progress.campaign else ""


@contextmanager
def remembered_presses() -> Iterator[list[int]]:
    """The Ctrl-C since then: an exception that one raises is lost where a finalizer runs."""
    pressed: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        del frame
        pressed.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hear)
    try:
        yield pressed
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interrupts(
    stop: Stop, progress: ProgressLines, kill: Callable[[], None], goes_on: Callable[[], str]
) -> Iterator[None]:
    """The first Ctrl-C asks for an end in order; the second ends everything at once.

    Nothing is lost by that: all that was found is recorded, and what was cut off is done again.

    Args:
        kill: ends the referee and what runs below it.
        goes_on: how the user goes on later, in a line.
    """

    def hear(number: int, frame: FrameType | None) -> None:
        del number, frame
        if stop.requested:
            kill()
            progress.abandon(f"stopped at once; what was running is done again\n{goes_on()}")
            # Threads that wait for a model or for the store would keep an orderly end waiting.
            os._exit(int(ExitCode.INTERRUPTED))
        stop.request()
        progress.stopping()

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ready(job: Job, store: Store | None) -> _Ready:
    if isinstance(job, Resume):
        assert store is not None
        return _ready_resume(job, store)
    return _ready_replay(job, store) if store and _is_replay(job) else _ready_fresh(job)


def _is_replay(job: Job) -> bool:
    from ..agents.models.replay import PREFIX

    return isinstance(job, Fresh) and job.config.model.startswith(PREFIX)


def _ready_fresh(job: Fresh) -> _Ready:
    from ..agents.offered import OFFLINE, usual_workflow
    from ..agents.workflows import admission
    from ..agents.workflows.workflow import find_workflow
    from ..campaign import CampaignRequest

    config = job.config
    target = tasks.choose_target(config.target, job.language, devices=config.devices)
    language = job.language or tasks.languages_of(target)[0]
    workflow = config.workflow or usual_workflow(config.model)
    find_workflow(workflow)
    task = tasks.make_task(config, job.problem, job.workload, job.matrix, target, language)
    limits = with_an_end(job.limits, config.model, config.judge_model)
    request = CampaignRequest(
        **dict(job.asked),
        problem=job.problem,
        workload=task.workload.matrix or task.workload.name,
        target=target,
        language=language,
        workflow=workflow,
        model=config.model,
        judge_model=config.judge_model,
        source=job.source,
        limits=limits,
    )
    admission.check_request(request)
    admission.check_coder(workflow, has_model=config.model not in OFFLINE)
    return _Ready(task, request, None, limits)


def _ready_replay(job: Fresh, store: Store) -> _Ready:
    """A replay takes everything but its limits from what was recorded."""
    from ..agents.casting.cast import recording_of, replay_request
    from ..agents.models import replay
    from ..agents.offered import OFFLINE
    from ..agents.workflows import admission
    from ..campaign import CampaignRequest
    from ..kernelbench.problem import Workload

    config = job.config
    campaign = store.resolve(config.model.removeprefix(replay.PREFIX))
    recording = recording_of(store, campaign)
    asked = CampaignRequest(problem=job.problem, limits=job.limits)
    request = replay_request(asked, recording)
    admission.check_coder(request.workflow, has_model=recording.coder not in OFFLINE)
    workload = Workload.model_validate(recording.started.workload_spec)
    task = tasks.task_for(config, job.problem, workload, request.target, request.language)
    note = f"replays campaign {campaign}"
    if recording.answers and not recording.same_words:
        note += ", made with other prompts: answers are found by their place alone"
    return _Ready(task, request, None, request.limits, note=note)


def _ready_resume(job: Resume, store: Store) -> _Ready:
    from ..agents.books.progress import Progress as WhereItStands
    from ..agents.models.replay import PREFIX
    from ..kernelbench.problem import Workload

    campaign = store.resolve(job.name)
    events = store.events(campaign)
    history = derive(events)
    started = history.started
    workload = Workload.model_validate(started.workload_spec)
    task = tasks.task_for(job.config, started.problem, workload, started.target, started.language)
    note = f"goes on with campaign {campaign}, {history.evaluated} evaluated"
    limits = {**history.limits, **job.limits}
    if limits and not started.model.startswith(PREFIX):
        limits = with_an_end(
            limits, started.model, started.judge_model, WhereItStands(events).spent_s
        )
    return _Ready(task, started, campaign, limits, note)
