# SPDX-License-Identifier: Apache-2.0
"""`eval`: verify and time one candidate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ExitCode
from ..kernelbench.languages import list_names
from . import common

WorkloadOption = Annotated[str | None, common.option("--workload", "The workload to time it on.")]
LanguageOption = Annotated[
    str | None,
    common.option("--language", f"{list_names()} [default: by the file's ending]."),
]
RecordOption = Annotated[
    bool, typer.Option("--record", help="300 trials instead of 30; takes several times as long.")
]


def evaluate(
    ctx: typer.Context,
    problem: Annotated[str, typer.Argument(help="The problem it solves, or its file.")],
    file: Annotated[Path, typer.Argument(help="The candidate's one source file.")],
    target: common.TargetOption = None,
    workload: WorkloadOption = None,
    matrix: common.MatrixOption = None,
    language: LanguageOption = None,
    problems: common.ProblemsOption = None,
    jail: common.JailOption = None,
    cpus: common.CpusOption = None,
    max_preparation: common.PreparationOption = None,
    accept_weak_isolation: common.WeakOption = None,
    cache_dir: common.CacheOption = None,
    record: RecordOption = False,
    every_check: common.AllOption = False,
    as_json: common.JsonOption = False,
) -> None:
    """Verify and time one candidate; exit status 0 only if it is VERIFIED."""
    config = common.load(
        ctx,
        target=target,
        problems=problems,
        jail=jail,
        cpus=cpus,
        cache_dir=cache_dir,
        accept_weak_isolation=accept_weak_isolation,
        max_preparation=max_preparation,
    ).config
    from ..traces.records import Status
    from ..workbench.evaluating import Evaluator
    from ..workbench.own_kernel import language_of_source, read_source_file
    from . import documents, planning
    from .summary import print_verdict

    source = read_source_file(file)
    spoken = language or language_of_source(file, source, config.target)
    evaluator = Evaluator(problem, language=spoken, workload=workload, matrix=matrix, config=config)
    where, on = evaluator.target, evaluator.task.workload.name
    prose = common.console(config)
    prose.print(f"evaluating {file} as {evaluator.task.problem} / {on} on {where}", markup=False)
    own = evaluator.take(source)
    if own.note or own.fault:
        prose.print(own.note or f"no launch plan could be written: {own.fault}", markup=False)
    with evaluator:
        planning.warn_of_weakness(prose, evaluator.isolation)
        planning.tell_emulated(prose, where, evaluator.is_emulated)
        planning.tell_other(prose, config, evaluator.is_emulated)
        verdict = evaluator.evaluate(own.text, record=record).verdict
    assert verdict is not None
    if as_json:
        common.emit(documents.verdict_document(verdict))
    else:
        print_verdict(common.console(config, is_stderr=False), verdict, is_full=every_check)
    if verdict.status is not Status.VERIFIED:
        raise typer.Exit(int(ExitCode.NOT_MET))
