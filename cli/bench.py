# SPDX-License-Identifier: Apache-2.0
"""`bench`: workflows against each other at equal spend. It wires parts together and prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from ..config import Config
from ..errors import ExitCode, UsageError
from . import common

if TYPE_CHECKING:
    from rich.console import Console

    from ..agents.books.ledger import OnEvent
    from ..agents.models.choosing import ModelSettings
    from ..compare.plan import Bench
    from ..compare.running import Standing
    from ..compare.scores import Score
    from ..traces.store import Store
    from ..verifier.request import Referee

GOES_ON = "the same command goes on where this one stopped"
USUAL_BUDGET = "evaluations=10,seconds=60"


WorkflowsOption = Annotated[
    str, typer.Option("--workflows", help="The first one is what others are held against.")
]
ProblemsOption = Annotated[
    str, typer.Option("--problems", help="Names of problems; see `kernelwright problems`.")
]
BudgetOption = Annotated[
    str,
    typer.Option(
        "--budget",
        help="Caps of each campaign: evaluations, seconds, usd, tokens, device_seconds.",
    ),
]
SeedsOption = Annotated[int, typer.Option("--seeds", min=1, help="Campaigns of each pair.")]
WorkloadOption = Annotated[
    str | None, common.option("--workload", "A workload that every problem has, e.g. tiny.")
]
LabelOption = Annotated[str | None, common.option("--label", "Another label is another bench.")]


@common.takes_options
def bench(
    ctx: typer.Context,
    workflows: WorkflowsOption = "forge,refine,best_of_n",
    problems: ProblemsOption = "spmm_csr",
    budget: BudgetOption = USUAL_BUDGET,
    seeds: SeedsOption = 3,
    workload: WorkloadOption = None,
    target: common.TargetOption = None,
    language: common.LanguageOption = None,
    model: common.ModelOption = None,
    judge_model: common.JudgeModelOption = None,
    label: LabelOption = None,
    *,
    settings: common.Given,
    as_json: common.JsonOption = False,
) -> None:
    """Compare workflows on the same problems with the same models, seeds and caps.

    Every workflow runs once for each problem and seed. Asked again with the same arguments, it goes
    on where it stopped, and a finished bench is only told again.
    """
    config = common.load(
        ctx, target=target, model=model, judge_model=judge_model, **settings
    ).config
    from ..compare.plan import Bench, check, parse_budget, parse_names
    from ..workbench import tasks

    tasks.add_problems(config)
    chosen = tasks.choose_target(config.target, language or "")
    planned = Bench(
        workflows=parse_names(workflows, "--workflows"),
        problems=parse_names(problems, "--problems"),
        seeds=seeds,
        limits=parse_budget(budget),
        target=chosen,
        language=language or tasks.languages_of(chosen)[0],
        workload=workload or "",
        model=config.model,
        judge_model=config.judge_model,
        label=label or "",
        cpus=config.cpus,
    )
    check(planned)
    _tell(planned, run_trials(planned, config), config, as_json=as_json)


def _tell(planned: Bench, scores: list[Score] | None, config: Config, *, as_json: bool) -> None:
    from ..compare.summary import summarise
    from . import standings

    if scores is None:
        common.console(config).print(GOES_ON)
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    arms = summarise(planned, scores)
    if as_json:
        common.emit(standings.document(planned, arms))
        return
    out = common.console(config, is_stderr=False)
    for part in standings.tables(planned, arms):
        out.print(part, soft_wrap=isinstance(part, str))


def run_trials(planned: Bench, config: Config) -> list[Score] | None:
    """Runs what is left of the bench; None after a Ctrl-C."""
    from ..agents.models.choosing import ModelSettings
    from ..agents.stop import Stop
    from ..compare import running
    from ..traces.store import Store
    from ..verifier.clock.turns import find_other
    from ..verifier.process.client import RefereeProcess, open_referee
    from ..workbench import tasks
    from . import carry_out
    from .progress import ProgressLines

    prose, settings, stop = common.console(config), ModelSettings.from_config(config), Stop()
    opened: list[RefereeProcess] = []

    def referee_of(problem: str) -> AbstractContextManager[Referee]:
        name, workload = planned.find_task(problem)
        task = tasks.make_task(
            config, name, workload or None, None, planned.target, planned.language
        )
        prose.print(f"starting the referee for {problem} …", markup=False)
        opened.append(open_referee(task))
        return opened[-1]

    @contextmanager
    def watch(standing: Standing) -> Iterator[OnEvent]:
        prose.print(_heading(standing), markup=False, soft_wrap=True)
        before = store.events(standing.campaign) if standing.campaign else ()
        with (
            ProgressLines(
                prose,
                dict(planned.limits),
                before,
                find_other=partial(find_other, config.timing_lock),
            ) as progress,
            carry_out.interrupts(stop, progress, opened[-1].kill, lambda: GOES_ON),
        ):
            yield progress.on_event

    tasks.check_cpus(config.cpus)
    _check_budget(planned, settings)
    with Store.open(config.home) as store:
        _tell_plan(planned, store, prose)
        return running.carry_out(
            planned, store, referee_of, watch=watch, stop=stop, settings=settings
        )


def _heading(standing: Standing) -> str:
    workflow, problem, seed = standing.trial
    goes_on = f", goes on with {standing.campaign}" if standing.campaign else ""
    return f"{standing.number} of {standing.of}: {workflow} on {problem}, seed {seed}{goes_on}"


def _check_budget(planned: Bench, settings: ModelSettings) -> None:
    """Names of models and prices are looked at before anything is started."""
    from ..agents.casting.cast import choose
    from ..agents.models.replay import PREFIX
    from ..compare.plan import BenchCampaign, check_ends

    if planned.model.startswith(PREFIX):
        raise UsageError(
            "a bench cannot replay a campaign", hint="give it a model that answers anything"
        )
    trial = BenchCampaign(planned.workflows[0], planned.problems[0], 0)
    players = choose(planned.request(trial), None, settings)
    try:
        check_ends(planned.limits, players.models)
    finally:
        for model in players.models:
            model.close()


def _tell_plan(planned: Bench, store: Store, prose: Console) -> None:
    from ..compare.running import known_campaigns
    from ..traces.wording import usd
    from .planning import limit_text

    known = len(known_campaigns(planned, store))
    count = len(planned.workflows) * len(planned.problems) * planned.seeds
    caps = ", ".join(limit_text(name, value) for name, value in planned.limits.items())
    lines = [
        f"{count} campaigns ({len(planned.workflows)} workflows, {len(planned.problems)} problems, "
        f"{planned.seeds} seeds), {known} of them known from before",
        f"each may spend {caps}; Coder {planned.model}, Judge {planned.judge_model}",
    ]
    if "usd" in planned.limits:
        lines.append(f"at most {usd(planned.limits['usd'] * (count - known))} more in all")
    for line in lines:
        prose.print(line, markup=False, soft_wrap=True)
