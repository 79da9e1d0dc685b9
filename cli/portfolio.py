# SPDX-License-Identifier: Apache-2.0
"""`portfolio`: a few kernels and the dispatcher between them, where no single one is best."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ExitCode, UsageError
from . import common
from .completing import complete_problem

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

    from ..config import Config
    from ..kernelbench.problem import Workload
    from ..portfolio.building import Portfolio
    from ..portfolio.measuring import Contender, OpenReferee
    from ..portfolio.standing import Line
    from ..portfolio.times import Seen
    from ..verifier.request import Referee

RECORD, DOCUMENT, SOURCE = "seen.jsonl", "portfolio.json", "portfolio.cpp"
WorkloadsOption = Annotated[
    str, typer.Option("--workloads", help="NAME:WEIGHT,…, pack:NAME, or a trace (.jsonl, .csv).")
]
OutputOption = Annotated[
    Path, typer.Option("-o", "--output", help="The folder of the record, the tree and the source.")
]
RuleOption = Annotated[
    str | None, common.option("--rule", "A rule to hold it beside: 'N <= 8'.", metavar="RULE")
]
LeavesOption = Annotated[int, typer.Option("--leaves", min=1, help="Of the tree, at most.")]
MaxTimeOption = Annotated[str | None, common.option("--max-time", "Stop measuring after 90s, 2m.")]


@common.takes_options
def portfolio(
    ctx: typer.Context,
    problem: Annotated[
        str, typer.Argument(help="The problem, or its file.", autocompletion=complete_problem)
    ],
    candidates: Annotated[
        list[str], typer.Argument(help="C++ files, ID@best, ID/NUMBER, or ID for all right ones.")
    ],
    workloads: WorkloadsOption,
    output: OutputOption,
    rule: RuleOption = None,
    leaves: LeavesOption = 6,
    max_time: MaxTimeOption = None,
    problems: common.ProblemsOption = None,
    *,
    settings: common.Given,
    as_json: common.JsonOption = False,
) -> None:
    """Learn which of several kernels to call when, and write them as one.

    Every candidate is judged right and timed on every workload beside the first one. Asked again
    with the same -o, it goes on where it stopped. Exit status 0 only if the result is VERIFIED.
    """
    config = common.load(ctx, max_time=max_time, problems=problems, **settings).config
    from ..kernelbench import registry
    from ..portfolio.building import learn_portfolio
    from ..portfolio.candidates import read_contenders
    from ..portfolio.workloads import list_workloads
    from ..workbench import tasks

    tasks.add_problems(config)
    name = tasks.name_problem(config, problem)
    weighed = list_workloads(registry.get(name), workloads)
    contenders = read_contenders(candidates, config.home)
    _make_folder(output)
    prose = common.console(config)
    seen = _measure(config, name, weighed, contenders, output / RECORD)
    found = learn_portfolio(registry.get(name), seen, leaves=leaves, rule=rule or "")
    for what, why in {**found.left_out.candidates, **found.left_out.workloads}.items():
        prose.print(f"left out {what}: {why}", markup=False, soft_wrap=True)
    sources = {each.name: each.source for each in contenders}
    document = found.document(sources)
    if as_json:
        common.emit(document)
    else:
        for part in _tables(found):
            common.console(config, is_stderr=False).print(part)
        for line in document["leaves"]:
            common.put(line)
    (output / DOCUMENT).write_text(json.dumps(document, indent=2) + "\n")
    (output / SOURCE).write_text(found.source(sources))
    _judge(config, found, weighed, contenders, output / SOURCE, prose)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"-o {folder} cannot be made: {error.strerror}") from error


def _open_for(config: Config, problem: str) -> OpenReferee:
    from ..kernelbench.languages import CPP
    from ..kernelbench.targets import CPU
    from ..verifier.process.client import open_referee
    from ..workbench import tasks

    def open_one(workload: Workload) -> AbstractContextManager[Referee]:
        return open_referee(tasks.task_for(config, problem, workload, CPU, CPP.name))

    return open_one


def _measure(
    config: Config,
    problem: str,
    weighed: Sequence[tuple[Workload, float]],
    contenders: Sequence[Contender],
    record: Path,
) -> list[Seen]:
    """What the record holds once all is measured, or the time is over."""
    from ..kernelbench import registry
    from ..portfolio.measuring import Cell, measure, pick_looks
    from ..portfolio.times import is_wrong, read_seen

    workloads = [workload for workload, _ in weighed]
    before = read_seen(record) if record.exists() else []
    seen = pick_looks(before, workloads, contenders)
    known = {
        Cell(each.workload, each.group, each.source)
        for each in seen
        if each.ratio is not None or is_wrong(each.status)
    }
    prose, end = common.console(config), time.monotonic() + (config.max_time or float("inf"))
    with record.open("a", encoding="utf-8") as out:
        for each in measure(
            registry.get(problem),
            workloads,
            contenders,
            _open_for(config, problem),
            weights={workload.name: weight for workload, weight in weighed},
            is_known=lambda cell: cell in known,
            is_over=lambda: time.monotonic() > end,
        ):
            out.write(each.model_dump_json(exclude_defaults=True) + "\n")
            out.flush()
            seen.append(each)
            ratio = f", {each.ratio:.2f} times as fast" if each.ratio is not None else ""
            told = f"{each.workload}: {each.candidate} {each.status}{ratio}"
            prose.print(told, markup=False, soft_wrap=True)
    return seen


def _judge(
    config: Config,
    found: Portfolio,
    weighed: Sequence[tuple[Workload, float]],
    contenders: Sequence[Contender],
    file: Path,
    prose: Console,
) -> None:
    """Confirms each kernel and then the whole, which is kept; leaves with 1 where one is not."""
    from ..kernelbench.languages import CPP
    from ..kernelbench.targets import CPU
    from ..portfolio.building import confirm, join_representatives
    from ..running import run_evaluation
    from ..traces.records import Depth, Status
    from ..traces.store import Store
    from ..verifier.process.client import open_referee
    from ..workbench import tasks

    by_name = {workload.name: workload for workload, _ in weighed}
    kernels = {each.name: each for each in contenders}
    problem, is_well = found.problem.name, True
    for one in confirm(found, by_name, kernels, _open_for(config, problem)):
        told = "; ".join((str(one.verdict.status), *one.verdict.reasons))
        prose.print(f"{one.name} on {one.workload}: {told}", markup=False, soft_wrap=True)
        is_well &= one.verdict.status is Status.VERIFIED
    if not is_well:
        prose.print("a kernel is not confirmed: leave it out, and ask again", markup=False)
        raise typer.Exit(int(ExitCode.NOT_MET))
    task = tasks.task_for(config, problem, join_representatives(found, by_name), CPU, CPP.name)
    with Store.open(config.home) as store, open_referee(task) as referee:
        kept = run_evaluation(
            task, file.read_text(), CPP.name, Depth.FULL, store, referee, file=file
        )
    verdict = kept.entry.verdict
    status = verdict.status if verdict else None
    prose.print(f"{file}: {status}, kept as campaign {kept.campaign}", markup=False)
    if status is not Status.VERIFIED:
        raise typer.Exit(int(ExitCode.NOT_MET))
    prose.print(f"kernelwright export {kept.campaign}@best -o DIR makes a package", markup=False)


def _tables(found: Portfolio) -> list[RichTable]:
    from rich.table import Table as RichTable

    table = RichTable("way", "share of the oracle", "95 %", "worst", "takes")
    for line in (*found.standing.ways, *found.standing.singles[1:]):
        table.add_row(line.name, *tell_line(line))
    return [table]


def tell_line(line: Line) -> tuple[str, str, str, str]:
    """Share, interval, worst and what is taken, for people."""
    interval = f"{line.low:.1%} to {line.high:.1%}"
    return f"{line.share:.1%}", interval, f"{line.worst:.0%}", line.chooses
