"""`run`: a campaign, from the plan to the winner. It wires parts together and decides nothing."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ..config import DEFAULT_MAX_TIME_S, Config, Resolved, Source
from ..errors import ExitCode, UsageError
from . import common


def _text(flag: str, meaning: str) -> Any:
    return typer.Option(flag, help=meaning, show_default=False)


def run(
    ctx: typer.Context,
    problem: Annotated[
        str | None, typer.Argument(help="What to work on; see `kernelwright problems`.")
    ] = None,
    target: common.TargetOption = None,
    language: Annotated[str | None, _text("--language", "cpp, cuda or triton.")] = None,
    workflow: Annotated[str | None, _text("--workflow", "How the agents work together.")] = None,
    model: Annotated[
        str | None, _text("--model", "The Coder's brain [default: recipe, offline].")
    ] = None,
    judge_model: Annotated[
        str | None, _text("--judge-model", "The Judge's brain [default: rules, offline].")
    ] = None,
    matrix: Annotated[Path | None, _text("--matrix", "Your own .mtx, .mtx.gz or .npz.")] = None,
    workload: Annotated[str | None, _text("--workload", "The workload to be fast on.")] = None,
    max_evals: Annotated[
        str | None, _text("--max-evals", "Stop after so many evaluations.")
    ] = None,
    max_time: Annotated[str | None, _text("--max-time", "Stop after 90s, 2m, 1h30m.")] = None,
    max_usd: Annotated[float | None, _text("--max-usd", "Stop after so many dollars.")] = None,
    seed: Annotated[int | None, _text("--seed", "Of every random choice [default: 0].")] = None,
    resume: Annotated[str | None, _text("--resume", "Take up this campaign again.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan only.")] = False,
    jail: common.JailOption = None,
    cpus: common.CpusOption = None,
    accept_weak_isolation: common.WeakOption = None,
    home: common.HomeOption = None,
    cache_dir: common.CacheOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Search for the fastest verified kernel for a problem.

    Exit status 0 if a verified winner was found, 5 if the budget went by without one.
    """
    resolved = common.load(
        ctx, target=target, workflow=workflow, model=model, judge_model=judge_model, jail=jail,
        cpus=cpus, accept_weak_isolation=accept_weak_isolation, home=home, cache_dir=cache_dir,
        max_evals=max_evals, max_time=max_time,
    )  # fmt: skip
    config = resolved.config
    fixed = {
        "--target": target, "--language": language, "--workflow": workflow, "--model": model,
        "--judge-model": judge_model, "--matrix": matrix, "--workload": workload, "--seed": seed,
    }  # fmt: skip
    if resume is not None:
        _refuse_changes(problem, fixed)
    elif problem is None:
        raise UsageError(
            "run needs the name of a problem", hint="`kernelwright problems` lists them"
        )
    from . import campaigning, documents
    from .summary import next_steps, winner_lines

    if resume is not None:
        job: campaigning.Job = campaigning.Resume(config, resume, _asked_limits(config, max_usd))
    else:
        assert problem is not None
        job = campaigning.Fresh(
            config, problem, language=language or "", workload=workload, matrix=matrix,
            limits=_asked_limits(config, max_usd) or {"seconds": DEFAULT_MAX_TIME_S},
            seed=seed or 0,
        )  # fmt: skip
    prose = common.console(config)
    outcome = campaigning.carry_out(job, prose, is_dry=dry_run)
    if dry_run:
        if as_json:
            common.emit({"plan": outcome.plan})
        return
    history = outcome.history
    assert history is not None
    if as_json:
        common.emit(documents.campaign_document(history, result=outcome.result))
    else:
        for line in winner_lines(history):
            common.put(line)
    for line in next_steps(history, _home_flag(resolved)):
        prose.print(line, markup=False, soft_wrap=True)
    if outcome.is_interrupted:
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    if history.champion is None:
        raise typer.Exit(int(ExitCode.NO_WIN))


def _asked_limits(config: Config, max_usd: float | None) -> dict[str, float]:
    limits = {"evaluations": config.max_evals, "seconds": config.max_time, "usd": max_usd}
    return {name: float(value) for name, value in limits.items() if value is not None}


def _refuse_changes(problem: str | None, fixed: Mapping[str, object]) -> None:
    """A resumed campaign keeps what it was started with, apart from its limits."""
    changed = [flag for flag, value in fixed.items() if value is not None]
    if problem is not None:
        changed.insert(0, "PROBLEM")
    if changed:
        raise UsageError(
            f"a resumed campaign cannot be given {', '.join(changed)}",
            hint="--resume ID takes limits only; start a new campaign for other settings",
        )


def _home_flag(resolved: Resolved) -> str:
    if resolved.origins["home"].source is not Source.FLAG:
        return ""
    return f"--home {shlex.quote(str(resolved.config.home))}"
