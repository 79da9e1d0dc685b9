# SPDX-License-Identifier: Apache-2.0
"""`run`: a campaign, from the plan to the winner. It wires parts together and decides nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from ..agents import offered
from ..agents.workflows.workflow import WORKFLOWS
from ..config import Resolved, parse_duration
from ..errors import ExitCode, UsageError
from ..traces.options import Options
from . import common
from .completing import complete_problem, complete_workflow, complete_workload

if TYPE_CHECKING:
    from ..traces.shapes import RunDocument
    from . import carry_out
    from .shapes import PlanDocument

EPILOG = "\n\n".join(
    (
        offered.table(
            "Workflows (--workflow):", {name: each.summary for name, each in WORKFLOWS.items()}
        ),
        offered.table("Models (--model, --judge-model):", {**offered.OFFLINE, **offered.MODELS}),
        offered.table(
            "Examples:",
            {
                "kernelwright run softmax --max-time 2m": "recipes only",
                "kernelwright run softmax --model openai/gpt-5 --workflow forge --max-usd 1": (
                    "a model"
                ),
            },
        ),
    )
)
_DECIDED = {
    "problem",
    "target",
    "language",
    "workflow",
    "model",
    "judge_model",
    "matrix",
    "workload",
    "axes",
    "workloads",
    "source",
    *Options.flags(),
}
"""What a campaign keeps from its beginning."""


ProblemArgument = Annotated[
    str | None,
    typer.Argument(
        help="What to work on; see `kernelwright problems`.", autocompletion=complete_problem
    ),
]
WorkflowOption = Annotated[
    str | None,
    common.option("--workflow", "How the agents work together.", autocompletion=complete_workflow),
]
WorkloadOption = Annotated[
    str | None,
    common.option(
        "--workload",
        f"The workload to be fast on. {common.TIMING}",
        autocompletion=complete_workload,
    ),
]
MaxEvalsOption = Annotated[
    str | None, common.option("--max-evals", "Stop after so many evaluations.")
]
MaxTimeOption = Annotated[str | None, common.option("--max-time", "Stop after 90s, 2m, 1h30m.")]
MaxUsdOption = Annotated[float | None, common.option("--max-usd", "Stop after so many dollars.")]
MaxTokensOption = Annotated[
    int | None, common.option("--max-tokens", "Stop after so many tokens.", min=1)
]
MaxDeviceTimeOption = Annotated[
    str | None,
    common.option("--max-device-time", "Stop after so long on the target, without builds."),
]
FromOption = Annotated[
    str | None,
    common.option("--from", "Your own kernel to begin from: a file, or ID@best, ID/NUMBER."),
]
ResumeOption = Annotated[
    str | None,
    common.option(
        "--resume", "Take up this campaign again; @last is the last one that is no evaluation."
    ),
]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Print the plan only.")]


@common.takes_options
def run(
    ctx: typer.Context,
    problem: ProblemArgument = None,
    target: common.TargetOption = None,
    language: common.LanguageOption = None,
    workflow: WorkflowOption = None,
    model: common.ModelOption = None,
    judge_model: common.JudgeModelOption = None,
    matrix: common.MatrixOption = None,
    workload: WorkloadOption = None,
    axes: common.AxesOption = None,
    workloads: common.WorkloadsOption = None,
    policy: common.PolicyOption = None,
    max_evals: MaxEvalsOption = None,
    max_time: MaxTimeOption = None,
    max_usd: MaxUsdOption = None,
    max_tokens: MaxTokensOption = None,
    max_device_time: MaxDeviceTimeOption = None,
    *,
    given: common.Given,
    source: FromOption = None,
    problems: common.ProblemsOption = None,
    resume: ResumeOption = None,
    dry_run: DryRunOption = False,
    settings: common.Given,
    as_json: common.JsonOption = False,
) -> None:
    """Search for the fastest verified kernel for a problem.

    Exit status 0 if a verified winner was found, 4 if a model's endpoint refused or failed, 5 if
    the budget went by without a winner.
    """
    resolved = common.load(
        ctx,
        target=target,
        workflow=workflow,
        model=model,
        judge_model=judge_model,
        problems=problems,
        max_evals=max_evals,
        max_time=max_time,
        **settings,
    )
    if resume is not None:
        _refuse_changes(ctx)
    from ..workbench import tasks
    from ..workbench.jobs import Fresh, Job, Resume
    from ..workbench.limits import limits_of
    from ..workbench.own_kernel import read_start
    from . import carry_out

    config, on_device = resolved.config, _seconds(max_device_time)
    limits = limits_of(config, usd=max_usd, tokens=max_tokens, device_seconds=on_device)
    job: Job = Resume(config, resume or "", limits)
    if resume is None:
        job = Fresh(
            config,
            tasks.word_in(_require_problem(problem), policy),
            language=language or "",
            workload=workload,
            matrix=matrix,
            axes=axes or (),
            several=workloads,
            limits=limits,
            asked=Options.read(given),
            start=read_start(source, config.home, config.target) if source else None,
        )
    outcome = carry_out.carry_out(
        job, common.console(config), is_dry=dry_run, tail=common.home_flag(resolved)
    )
    _tell(outcome, resolved, as_json=as_json)


def _tell(outcome: carry_out.RunOutcome, resolved: Resolved, *, as_json: bool) -> None:
    """Prints what came of it, and leaves with its exit status."""
    from ..traces import documents
    from ..traces.head import head_of
    from .summary import next_steps, winner_lines

    if outcome.campaign is None:
        if as_json:
            planned: PlanDocument = {"plan": outcome.plan}
            common.emit(planned)
        return
    history, result = outcome.campaign.history, outcome.result
    assert result is not None, "there is a campaign"
    head = head_of(history)
    if as_json:
        document: RunDocument = {
            **documents.campaign_document(history, wall_s=result.wall_s),
            "unconfirmed": result.unconfirmed,
        }
        common.emit(document)
    else:
        unconfirmed = history.entries.get(result.unconfirmed or "")
        for line in winner_lines(head, history.best, unconfirmed):
            common.put(line)
    prose = common.console(resolved.config)
    for line in next_steps(head, common.home_flag(resolved)):
        prose.print(line, markup=False, soft_wrap=True)
    if outcome.is_interrupted:
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    # Where nothing can be timed a ranking is all that there is to find.
    if head.winner is None:
        raise typer.Exit(int(ExitCode.NO_WIN))


def _seconds(duration: str | None) -> float | None:
    try:
        return parse_duration(duration) if duration is not None else None
    except ValueError as error:
        raise UsageError(f"--max-device-time '{duration}' {error}") from error


def _require_problem(problem: str | None) -> str:
    if problem is None:
        raise UsageError(
            "run needs the name of a problem", hint="`kernelwright problems` lists them"
        )
    return problem


def _refuse_changes(ctx: typer.Context) -> None:
    """A resumed campaign keeps what it was started with, apart from its limits."""
    changed = [
        "PROBLEM" if each.name == "problem" else each.opts[0]
        for each in ctx.command.params
        # A flag that may be repeated is an empty list where it is not given.
        if each.name in _DECIDED and ctx.params[each.name] not in (None, [], ())
    ]
    if changed:
        raise UsageError(
            f"a resumed campaign cannot be given {', '.join(changed)}",
            hint="--resume ID takes limits only; start a new campaign for other settings",
        )
