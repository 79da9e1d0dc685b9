"""`eval`: verify and time one candidate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ExitCode, UsageError
from ..kernelbench.languages import LANGUAGES, languages_of_suffix, listed
from ..kernelbench.targets import AUTO, CPU
from . import common

WorkloadOption = Annotated[str | None, common.option("--workload", "The workload to time it on.")]
LanguageOption = Annotated[
    str | None,
    common.option("--language", f"{listed()} [default: by the file's ending]."),
]
RecordOption = Annotated[
    bool, typer.Option("--record", help="300 trials instead of 30; takes several times as long.")
]


def evaluate(
    ctx: typer.Context,
    problem: Annotated[str, typer.Argument(help="The problem it solves.")],
    file: Annotated[Path, typer.Argument(help="The candidate's one source file.")],
    target: common.TargetOption = None,
    workload: WorkloadOption = None,
    matrix: common.MatrixOption = None,
    language: LanguageOption = None,
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
        jail=jail,
        cpus=cpus,
        cache_dir=cache_dir,
        accept_weak_isolation=accept_weak_isolation,
        max_preparation=max_preparation,
    ).config
    source = _read(file)
    from ..traces.records import Protocol, Status
    from ..verifier.process.client import open_referee
    from ..verifier.request import Order
    from . import documents, task_of
    from .summary import print_verdict

    spoken = language or _spoken(file, config.target)
    where = task_of.choose_target(config.target, spoken, devices=config.devices)
    task = task_of.make_task(config, problem, workload, matrix, where, spoken)
    prose = common.console(config)
    prose.print(f"evaluating {file} as {problem} / {task.workload.name} on {where}", markup=False)
    with open_referee(task) as referee:
        task_of.warn_of_weakness(prose, referee.isolation)
        task_of.tell_emulated(prose, where, referee.is_emulated)
        protocol = Protocol.RECORD if record else Protocol.FULL
        order = Order(source=source, language=spoken, protocol=protocol)
        verdict = referee.evaluate(order)
    if as_json:
        common.emit(documents.verdict_document(verdict))
    else:
        print_verdict(common.console(config, is_stderr=False), verdict, is_full=every_check)
    if verdict.status is not Status.VERIFIED:
        raise typer.Exit(int(ExitCode.NOT_MET))


def _spoken(file: Path, target: str) -> str:
    """The language by the file's ending; of two the one for a GPU where the target is one."""
    found = languages_of_suffix(file.suffix)
    if not found:
        known = dict.fromkeys(end for each in LANGUAGES.values() for end in each.suffixes)
        raise UsageError(
            f"the ending of {file.name} names no language that candidates are written in",
            hint=f"say it with --language {listed()}, or end it in one of {' '.join(known)}",
        )
    wants_gpu = target not in (AUTO, CPU)
    return min(found, key=lambda each: each.is_for_gpu is not wants_gpu).name


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"the candidate {file} cannot be read: {error.strerror}",
            hint="give the path of one source file",
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"the candidate {file} is not UTF-8 text", hint=str(error)) from error
