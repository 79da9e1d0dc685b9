# SPDX-License-Identifier: Apache-2.0
"""A campaign that is to begin or to go on: what is settled before its referee starts, and its run.

Everything that can be refused without running anything is refused here. Who calls opens the
referee, which is what takes its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..agents.books.budget import check_priced
from ..agents.books.progress import Progress
from ..agents.books.request import add_recorded_problem
from ..agents.casting.cast import TRANSPILE, Players, recording_of, replay_request, seat_players
from ..agents.models import replay
from ..agents.models.choosing import ModelSettings
from ..agents.offered import OFFLINE, usual_workflow
from ..agents.stop import Stop
from ..agents.workflows import admission
from ..agents.workflows.workflow import find_workflow
from ..config import Config
from ..errors import UnknownNameError, UsageError
from ..kernelbench import registry
from ..kernelbench.languages import language_of, list_names
from ..kernelbench.packs import Axes
from ..kernelbench.problem import Workload
from ..running import (
    CampaignRequest,
    CampaignResult,
    check_comparable,
    resume_campaign,
    run_campaign,
)
from ..traces import names
from ..traces.events import CampaignStarted, Event
from ..traces.options import Options
from ..traces.store import Store
from ..verifier.request import Referee, Task
from . import tasks
from .limits import with_an_end
from .own_kernel import OwnKernel, take_own


@dataclass(frozen=True)
class Fresh:
    """A campaign that is to begin."""

    config: Config
    problem: str
    language: str = ""
    """Empty: the usual one of the target."""
    workload: str | None = None
    matrix: Path | None = None
    axes: Axes | Sequence[Axes] = ()
    """Sizes in place of the workload's own; several make as many workloads."""
    several: str | None = None
    """Workloads with weights, a trace or a pack (kernelbench/packs.py)."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """As asked for; none at all: the usual ones of the Coder."""
    asked: Options = Options()
    start: OwnKernel | None = None
    """The user's own kernel to begin from, or what `transpile` translates; see `read_start`."""

    @property
    def is_replay(self) -> bool:
        """Whether a recorded campaign stands in for the models."""
        return self.config.model.startswith(replay.PREFIX)


@dataclass(frozen=True)
class Resume:
    """A campaign that goes on; a limit replaces the one it had, and what was spent counts."""

    config: Config
    name: str
    """An id, a unique part of it, or `@last`: the newest campaign that is no evaluation."""
    limits: Mapping[str, float] = field(default_factory=dict)


Job = Fresh | Resume


@dataclass(frozen=True)
class Settled:
    """What is decided of a campaign before the referee starts."""

    task: Task
    names: CampaignRequest | CampaignStarted
    """Who takes part: what is asked for, or what the campaign began with."""
    campaign: str | None
    """The one that goes on."""
    limits: dict[str, float]
    note: str = ""
    """Where it goes on from, in words."""


@dataclass(frozen=True)
class Ready:
    """A campaign whose players are seated: it runs once there is a referee."""

    settled: Settled
    players: Players
    store: Store | None
    """None: of a dry run that needs none."""

    def list_events(self) -> list[Event]:
        """What is recorded of it by now."""
        campaign = self.settled.campaign
        return self.store.events(campaign) if self.store and campaign else []

    def run(
        self,
        referee: Referee,
        *,
        stop: Stop | None = None,
        on_event: Callable[[Event], None] | None = None,
    ) -> CampaignResult:
        """Begins the campaign or goes on with it, to its end."""
        settled, store = self.settled, self.store
        assert store is not None, "a dry run has no store to run in"
        if isinstance(settled.names, CampaignRequest):
            return run_campaign(
                settled.names,
                store,
                referee,
                stop=stop,
                on_event=on_event,
                workload=settled.task.workload,
                players=self.players,
            )
        assert settled.campaign is not None
        return resume_campaign(
            settled.campaign,
            store,
            referee,
            settled.limits,
            stop=stop,
            on_event=on_event,
            players=self.players,
        )


@contextmanager
def make_ready(job: Job, *, is_dry: bool = False) -> Iterator[Ready]:
    """Everything but the referee, which is started for `settled.task`.

    Args:
        is_dry: It will not be run: no key is needed, and no home is made.

    Raises:
        KernelwrightError: the job cannot be done so; nothing was begun.
    """
    with ExitStack() as stack:
        store = None
        if not is_dry or isinstance(job, Resume) or job.is_replay:
            store = stack.enter_context(Store.open(job.config.home))
        settled = _settle(job, store)
        models = ModelSettings.from_config(
            job.config, settled.names.seed, is_to_be_asked=not is_dry
        )
        players = stack.enter_context(seat_players(None, settled.names, store, models))
        check_priced(settled.limits, players.models)
        if not isinstance(settled.names, CampaignRequest):
            assert settled.campaign is not None
            check_comparable(settled.campaign, settled.names, players)
        yield Ready(settled, players, store)


def _settle(job: Job, store: Store | None) -> Settled:
    if isinstance(job, Fresh) and not job.is_replay:
        return _settle_fresh(job)
    assert store is not None
    return _settle_resumed(job, store) if isinstance(job, Resume) else _settle_replay(job, store)


def _settle_fresh(job: Fresh) -> Settled:
    config = job.config
    workflow = config.workflow or usual_workflow(config.model)
    find_workflow(workflow)
    own = job.start if workflow != TRANSPILE else None
    language = job.language or (own.language if own else "")
    if own and not language:
        raise UsageError(
            f"{own.name or 'a text'} does not say which language it is in",
            hint=f"say it with --language {list_names()}, or end the file's name in its ending",
        )
    target = tasks.choose_target(config.target, language, devices=config.devices)
    language = language or tasks.languages_of(target)[0]
    task = tasks.make_task(
        config, job.problem, job.workload, job.matrix, target, language, job.axes, job.several
    )
    if own is not None:
        own = _take_own(own, task.problem, language, config)
    source = own or job.start
    limits = with_an_end(job.limits, config.model, config.judge_model)
    request = CampaignRequest(
        **dict(job.asked),
        problem=task.problem,
        workload=task.workload.matrix or task.workload.name,
        target=target,
        language=language,
        workflow=workflow,
        model=config.model,
        judge_model=config.judge_model,
        source=source.text if source else "",
        limits=limits,
    )
    admission.check_request(request)
    admission.check_coder(workflow, has_model=config.model not in OFFLINE)
    note = f"begins from {own.name or 'your own kernel'}" if own else ""
    told = f"{note}: {own.note}" if own and own.note else note
    return Settled(task, request, None, limits, told)


def _take_own(own: OwnKernel, problem: str, language: str, config: Config) -> OwnKernel:
    """The kernel as candidate #1. UsageError where it cannot be, and no model may mend it."""
    if own.language and not _share_a_form(own.language, language):
        raise UsageError(
            f"{own.name or 'the source'} is written in {own.language}, and the campaign in "
            f"{language}",
            hint=f"--language {own.language}; --workflow {TRANSPILE} has a model translate it",
        )
    taken = take_own(replace(own, language=language), registry.get(problem))
    if taken.fault and config.model in OFFLINE:
        raise UsageError(
            f"no launch plan could be written from the host code of {own.name or 'the source'}: "
            f"{taken.fault}",
            hint="write the plan at its head (docs/launch-plans.md), or have it written: "
            "--model openai/NAME",
        )
    note = f"its launch plan is asked of the model ({taken.fault})" if taken.fault else taken.note
    return replace(taken, note=note)


def _share_a_form(one: str, other: str) -> bool:
    """Whether files of both languages end alike, so that a file may be either."""
    return bool({*language_of(one).suffixes} & {*language_of(other).suffixes})


def _settle_replay(job: Fresh, store: Store) -> Settled:
    """A replay takes everything but its limits from what was recorded."""
    campaign = _find_searched(store, job.config.model.removeprefix(replay.PREFIX))
    recording = recording_of(store, campaign)
    tasks.add_problems(job.config)
    problem = tasks.name_problem(job.config, job.problem)
    add_recorded_problem(recording.started)
    asked = CampaignRequest(problem=problem, limits=dict(job.limits))
    request = replay_request(asked, recording)
    admission.check_coder(request.workflow, has_model=recording.coder not in OFFLINE)
    workload = Workload.model_validate(recording.started.workload_spec)
    task = tasks.task_for(job.config, problem, workload, request.target, request.language)
    note = f"replays campaign {campaign}"
    if recording.answers and not recording.same_words:
        note += ", made with other prompts: answers are found by their place alone"
    return Settled(task, request, None, dict(request.limits), note)


def _find_searched(store: Store, name: str) -> str:
    """The campaign of this name; `@last` is the newest that searched, whatever was evaluated since.

    Raises:
        UnknownNameError: there is none such.
    """
    newest = store.resolve(name)
    if name != names.LAST:
        return newest
    searched = [c for c, started in store.starts() if not started.is_evaluation]
    if not searched:
        raise UnknownNameError(
            f"'{name}' names no campaign that could go on or be replayed: {store.home} holds "
            f"evaluations of single files alone, at last {newest}",
            hint="`kernelwright run PROBLEM` begins a search",
        )
    return searched[-1]


def _settle_resumed(job: Resume, store: Store) -> Settled:
    campaign = _find_searched(store, job.name)
    progress = Progress(store.events(campaign))
    started = progress.started
    admission.check_searched(campaign, started)
    add_recorded_problem(started)
    workload = Workload.model_validate(started.workload_spec)
    task = tasks.task_for(job.config, started.problem, workload, started.target, started.language)
    limits = {**progress.limits, **job.limits}
    if limits and not started.model.startswith(replay.PREFIX):
        limits = with_an_end(limits, started.model, started.judge_model, progress.spent_s)
    note = f"goes on with campaign {campaign}, {progress.evaluated} evaluated"
    return Settled(task, started, campaign, limits, note)
