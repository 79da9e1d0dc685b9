# SPDX-License-Identifier: Apache-2.0
"""`suite`: a campaign for each of several problems, and one table. It wires parts and prints."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..config import Config
from ..errors import ExitCode
from . import common
from .bench import GOES_ON, BudgetOption, LabelOption, run_trials
from .completing import complete_suite

if TYPE_CHECKING:
    from rich.table import Table

    from ..compare.scores import Score
    from ..compare.suite import Suite
    from ..traces.suites import SuiteRow
    from .shapes import SuiteDocument, SuiteTask

USUAL_BUDGET = "seconds=60"


@common.takes_options
def suite(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            help="sparse, dense, attention, quantised, training, fused, all, or a .toml of tasks.",
            autocompletion=complete_suite,
        ),
    ],
    budget: BudgetOption = USUAL_BUDGET,
    target: common.TargetOption = None,
    language: common.LanguageOption = None,
    workflow: Annotated[str, typer.Option("--workflow", help="What works on each.")] = "tune",
    model: common.ModelOption = None,
    judge_model: common.JudgeModelOption = None,
    label: LabelOption = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write the table here as well.")
    ] = None,
    as_csv: Annotated[
        Path | None, typer.Option("--csv", help="Write the figures here as well.")
    ] = None,
    *,
    settings: common.Given,
    as_json: common.JsonOption = False,
) -> None:
    """Work on several problems, one campaign each at equal caps, and print one table.

    Asked again with the same arguments, it goes on where it stopped, and a finished suite is only
    told again. A file names its tasks: [[task]] with `problem`, and perhaps `workload`.
    """
    config = common.load(
        ctx, target=target, model=model, judge_model=judge_model, **settings
    ).config
    from ..compare.plan import check, parse_budget
    from ..compare.suite import Suite, average_gains, list_tasks, word_gains
    from ..workbench import tasks

    tasks.add_problems(config)
    chosen = tasks.choose_target(config.target, language or "")
    written_in = language or tasks.languages_of(chosen)[0]
    for path in (markdown, as_csv):
        if path is not None:
            common.check_output(path)
    planned = Suite(
        workflows=(workflow,),
        problems=list_tasks(name, chosen, written_in),
        seeds=1,
        limits=parse_budget(budget),
        target=chosen,
        language=written_in,
        model=config.model,
        judge_model=config.judge_model,
        label=f"suite {label or ''}".strip(),
        name=Path(name).stem,
        cpus=config.cpus,
    )
    check(planned)
    scores = run_trials(planned, config)
    if scores is None:
        common.console(config).print(GOES_ON)
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    rows = _sum_up(config, scores)
    _write(name, planned, rows, markdown, as_csv)
    if as_json:
        document: SuiteDocument = {
            "suite": name,
            "tasks": [_document(row) for row in rows],
            "means": average_gains(rows),
        }
        common.emit(document)
        return
    common.console(config, is_stderr=False).print(_table(rows))
    common.put(word_gains(rows))


def _sum_up(config: Config, scores: list[Score]) -> list[SuiteRow]:
    from ..traces.store import Store
    from ..traces.suites import sum_up

    rows = []
    with Store.open(config.home, read_only=True) as store:
        for each in scores:
            with store.sheet(each.campaign) as sheet:
                rows.append(sum_up(sheet))
    return rows


def _write(
    name: str, planned: Suite, rows: list[SuiteRow], markdown: Path | None, as_csv: Path | None
) -> None:
    from ..compare.suite import write_csv, write_markdown
    from ..kernelbench.machine import machine_facts, versions

    facts = machine_facts()
    budget = ",".join(f"{cap}={value:g}" for cap, value in planned.limits.items())
    about = [
        f"`kernelwright suite {name} --budget {budget} --target {planned.target}`, "
        f"{datetime.date.today().isoformat()}, {facts['cpu']}, {facts['cpus']} CPUs, kernelwright "
        f"{versions()['kernelwright']}. Speed-ups are against the best baseline, with 95 % "
        "intervals; what is credited is the lower end."
    ]
    if markdown is not None:
        common.write_text(markdown, write_markdown(Path(name).stem, rows, about))
    if as_csv is not None:
        common.write_text(as_csv, write_csv(rows))


def _document(row: SuiteRow) -> SuiteTask:
    return {
        "problem": row.task,
        "workload": row.workload,
        "campaign": row.campaign,
        "status": row.status,
        "us": row.candidate.median_us if row.candidate else None,
        "speedup": row.gain.model_dump(mode="json") if row.gain else None,
        "best_baseline": row.best_baseline or None,
        "baselines_us": row.baselines,
        "roofline": row.roofline,
        "regret_at_most": row.regret,
    }


def _table(rows: list[SuiteRow]) -> Table:
    from rich import box
    from rich.table import Table

    from ..traces.wording import micros, percent, speedup

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("problem", "workload", "", "time", "faster by", "than", "roofline", "campaign"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(
            row.task,
            row.workload,
            row.status,
            micros(row.candidate.median_us) if row.candidate else "",
            speedup(row.gain) if row.gain else "",
            row.best_baseline,
            percent(row.roofline) if row.roofline is not None else "",
            row.campaign,
        )
    return table
