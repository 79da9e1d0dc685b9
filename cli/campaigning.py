"""Opens the store and the referee, shows the plan, runs a campaign and hears Ctrl-C.

What a campaign does is decided in `campaign`; this file holds the ends of its strings.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from ..agents.stop import Stop
from ..config import Config, format_duration
from ..traces.history import History, derive
from . import setting_up
from .progress import Progress

if TYPE_CHECKING:
    from rich.console import Console

    from ..campaign import CampaignRequest, CampaignResult
    from ..traces.store import Store
    from ..verifier.request import Referee, Task


@dataclass(frozen=True)
class Fresh:
    """A campaign that is to begin."""

    config: Config
    problem: str
    language: str
    workload: str | None
    matrix: Path | None
    limits: dict[str, float]
    seed: int


@dataclass(frozen=True)
class Resume:
    """A campaign that goes on; a limit replaces the one it had, and what was spent counts."""

    config: Config
    name: str
    limits: dict[str, float]


Job = Fresh | Resume


@dataclass(frozen=True)
class Outcome:
    """What a run left behind; a dry run has only a plan."""

    plan: dict[str, Any]
    history: History | None = None
    result: CampaignResult | None = None
    is_interrupted: bool = False


@dataclass(frozen=True)
class _Ready:
    """Everything that is settled before the referee starts."""

    task: Task
    request: CampaignRequest | None
    campaign: str | None
    limits: dict[str, float]
    brains: tuple[str, str]
    language: str
    note: str = ""


def carry_out(job: Job, prose: Console, *, is_dry: bool) -> Outcome:
    """Prints the plan and, unless it is a dry run, carries it out."""
    from ..traces.store import Store
    from ..verifier.client import open_referee

    prose.print("starting the referee, trying the sandbox, preparing the baselines …")
    if isinstance(job, Fresh) and is_dry:
        ready = _ready_fresh(job)
        with open_referee(ready.task) as referee:
            return Outcome(_show_plan(ready, referee, prose))
    with Store.open(job.config.home) as store:
        ready = _ready_fresh(job) if isinstance(job, Fresh) else _ready_resume(job, store)
        with open_referee(ready.task) as referee:
            plan = _show_plan(ready, referee, prose)
            if is_dry:
                return Outcome(plan)
            return _run(ready, plan, store, referee, prose)


def _run(
    ready: _Ready, plan: dict[str, Any], store: Store, referee: Referee, prose: Console
) -> Outcome:
    from ..campaign import resume_campaign, run_campaign

    stop = Stop()
    with Progress(prose, ready.limits) as progress, _interrupts(stop, progress):
        if ready.request is not None:
            result = run_campaign(
                ready.request, store, referee, stop=stop, on_event=progress.on_event
            )
        else:
            assert ready.campaign is not None
            result = resume_campaign(
                ready.campaign, store, referee, ready.limits, stop=stop, on_event=progress.on_event
            )
    history = derive(store.events(result.campaign))
    return Outcome(plan, history, result, is_interrupted=stop.requested)


@contextmanager
def _interrupts(stop: Stop, progress: Progress) -> Iterator[None]:
    """The first Ctrl-C asks for an end in order, the second raises KeyboardInterrupt."""

    def hear(number: int, frame: FrameType | None) -> None:
        if stop.requested:
            signal.default_int_handler(number, frame)
        stop.request()
        progress.note("stopping after the running evaluation; Ctrl-C again stops at once")

    before = {number: signal.signal(number, hear) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _ready_fresh(job: Fresh) -> _Ready:
    from ..campaign import CampaignRequest

    config = job.config
    target = setting_up.choose_target(config.target, job.language)
    language = job.language or setting_up.languages_of(target)[0]
    task = setting_up.make_task(config, job.problem, job.workload, job.matrix, target, language)
    _check_names(config, job.problem, language)
    request = CampaignRequest(
        problem=job.problem,
        workload=task.workload.matrix or task.workload.name,
        target=target,
        language=language,
        workflow=config.workflow,
        model=config.model,
        judge_model=config.judge_model,
        limits=job.limits,
        seed=job.seed,
        accept_weak_isolation=config.accept_weak_isolation,
        cpus=config.cpus,
    )
    brains = (config.model, config.judge_model)
    return _Ready(task, request, None, job.limits, brains, language)


def _check_names(config: Config, problem: str, language: str) -> None:
    """Unknown names are told before anything is started."""
    from ..agents import roster
    from ..kernelbench.recipes import recipes_for

    recipes = recipes_for(problem, language)
    roster.workflow(config.workflow)
    roster.coder(config.model, recipes)
    roster.judge(config.judge_model, recipes)


def _ready_resume(job: Resume, store: Store) -> _Ready:
    from ..kernelbench.problem import Workload

    campaign = store.resolve(job.name)
    history = derive(store.events(campaign))
    started = history.started
    workload = Workload.model_validate(started.workload_spec)
    task = setting_up.task_for(
        job.config, started.problem, workload, started.target, started.language
    )
    return _Ready(
        task,
        None,
        campaign,
        {**history.limits, **job.limits},
        (started.model, started.judge_model),
        started.language,
        note=f"goes on with campaign {campaign}, {history.evaluated} evaluated",
    )


def _show_plan(ready: _Ready, referee: Referee, prose: Console) -> dict[str, Any]:
    from ..kernelbench.recipes import recipes_for

    task, facts = ready.task, referee.facts
    sizes = {r.family: r.size(facts) for r in recipes_for(task.problem, ready.language)}
    axes = " ".join(f"{name}={value}" for name, value in task.workload.axes.items())
    spoken = ", ".join(limit_text(name, value) for name, value in ready.limits.items())
    total = sum(sizes.values())
    lines = {
        "problem": task.problem,
        "workload": f"{task.workload.name} ({axes or task.workload.matrix})",
        "target": f"{task.target}, {ready.language}",
        "sandbox": referee.isolation.mechanism,
        "coder": ready.brains[0],
        "judge": ready.brains[1],
        "limits": spoken or "none",
        "recipes": f"{total:,} variants: " + ", ".join(f"{f} {n:,}" for f, n in sizes.items()),
    }
    if ready.note:
        lines["resume"] = ready.note
    for name, text in lines.items():
        prose.print(f"{name:9} {text}", markup=False, soft_wrap=True)
    setting_up.warn_of_weakness(prose, referee.isolation)
    setting_up.tell_emulated(prose, task.target)
    return {
        "problem": task.problem,
        "workload": task.workload.model_dump(mode="json"),
        "target": task.target,
        "language": ready.language,
        "isolation": referee.isolation.model_dump(mode="json"),
        "model": ready.brains[0],
        "judge_model": ready.brains[1],
        "limits": ready.limits,
        "recipe_space": sizes,
        "campaign": ready.campaign,
    }


def limit_text(name: str, value: float) -> str:
    """A limit in words."""
    if name == "seconds":
        return format_duration(value)
    return f"{value:g} {name}"
