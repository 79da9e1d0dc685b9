# SPDX-License-Identifier: Apache-2.0
"""`eval`: verify and time one candidate, and keep what was found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import ExitCode
from ..kernelbench.languages import list_names
from . import common
from .completing import complete_problem

if TYPE_CHECKING:
    from rich.console import Console

    from ..config import Config
    from ..traces.records import Verdict
    from ..workbench.candidate import Candidate
    from ..workbench.evaluating import Evaluator
    from .shapes import EvalDocument

WorkloadOption = Annotated[
    str | None,
    common.option("--workload", f"The workload to time it on. {common.TIMING}"),
]
LanguageOption = Annotated[
    str | None,
    common.option("--language", f"{list_names()} [default: by the file's ending]."),
]
RecordOption = Annotated[
    bool, typer.Option("--record", help="300 trials instead of 30; takes several times as long.")
]

NoSaveOption = Annotated[bool, typer.Option("--no-save", help="Keep nothing of it in the store.")]


def evaluate(
    ctx: typer.Context,
    problem: Annotated[
        str,
        typer.Argument(help="The problem it solves, or its file.", autocompletion=complete_problem),
    ],
    file: Annotated[Path, typer.Argument(help="The candidate's one source file.")],
    target: common.TargetOption = None,
    workload: WorkloadOption = None,
    matrix: common.MatrixOption = None,
    axes: common.AxesOption = None,
    workloads: common.WorkloadsOption = None,
    language: LanguageOption = None,
    policy: common.PolicyOption = None,
    problems: common.ProblemsOption = None,
    jail: common.JailOption = None,
    cpus: common.CpusOption = None,
    max_preparation: common.PreparationOption = None,
    accept_weak_isolation: common.WeakOption = None,
    home: common.HomeOption = None,
    cache_dir: common.CacheOption = None,
    record: RecordOption = False,
    no_save: NoSaveOption = False,
    every_check: common.AllOption = False,
    as_json: common.JsonOption = False,
) -> None:
    """Verify and time one candidate; exit status 0 only if it is VERIFIED.

    What is found is kept as a campaign of one candidate: `list`, `show`, `report`, `audit` and
    `export` take it like any other.
    """
    resolved = common.load(
        ctx,
        target=target,
        problems=problems,
        jail=jail,
        cpus=cpus,
        home=home,
        cache_dir=cache_dir,
        accept_weak_isolation=accept_weak_isolation,
        max_preparation=max_preparation,
    )
    config = resolved.config
    from ..running import UnkeptVerdictError
    from ..traces.records import Status
    from ..workbench import tasks
    from ..workbench.evaluating import Evaluator
    from ..workbench.own_kernel import language_of_source, read_source_file

    source = read_source_file(file)
    spoken = language or language_of_source(file, source, config.target)
    evaluator = Evaluator(
        tasks.word_in(problem, policy),
        language=spoken,
        workload=workload,
        matrix=matrix,
        axes=axes or (),
        workloads=workloads,
        home=None if no_save else config.home,
        config=config,
    )
    where, on = evaluator.target, evaluator.task.workload.name
    prose = common.console(config)
    prose.print(f"evaluating {file} as {evaluator.task.problem} / {on} on {where}", markup=False)
    own = evaluator.take(source, file.name)
    if own.note or own.fault:
        prose.print(own.note or f"no launch plan could be written: {own.fault}", markup=False)
    try:
        candidate = _judge(evaluator, own.text, file, config, prose, record=record)
    except UnkeptVerdictError as error:
        _print(config, error.verdict, None, as_json=as_json, is_full=every_check)
        raise
    assert candidate.verdict is not None
    _print(config, candidate.verdict, candidate.campaign, as_json=as_json, is_full=every_check)
    if candidate.campaign:
        show = f"kernelwright show {candidate.campaign} {common.home_flag(resolved)}".rstrip()
        prose.print(f"kept as campaign {candidate.campaign}; {show}", markup=False, soft_wrap=True)
    if candidate.status is not Status.VERIFIED:
        raise typer.Exit(int(ExitCode.NOT_MET))


def _judge(
    evaluator: Evaluator, source: str, file: Path, config: Config, prose: Console, *, record: bool
) -> Candidate:
    from . import planning

    with evaluator:
        planning.warn_of_weakness(prose, evaluator.isolation)
        planning.tell_emulated(prose, evaluator.target, evaluator.is_emulated)
        planning.tell_other(prose, config, evaluator.is_emulated)
        return evaluator.evaluate(source, record=record, file=file)


def _print(
    config: Config, verdict: Verdict, campaign: str | None, *, as_json: bool, is_full: bool
) -> None:
    from ..traces import documents
    from .summary import print_verdict

    if as_json:
        told = documents.verdict_document(verdict)
        document: EvalDocument = {**told, "campaign": campaign or None}
        common.emit(document)
    else:
        print_verdict(common.console(config, is_stderr=False), verdict, is_full=is_full)
