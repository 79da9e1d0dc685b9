"""From settings to what the referee is started with. Shared by `run`, `eval` and `audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..config import Config
from ..errors import UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from ..kernelbench.problem import Workload
    from ..traces.records import Isolation
    from ..verifier.request import Task

LANGUAGE_OF = {"cpu": "cpp"}
"""The language that a target's kernels are written in unless told otherwise."""
TAKEN = {"cpu": ("cpp", "python")}
"""The languages that a target takes."""


def choose_target(target: str, language: str = "") -> str:
    """The target's name; `auto` is the CPU as long as no GPU target is built in.

    Raises:
        UsageError: this version has no such target, or not in this language.
    """
    name = "cpu" if target == "auto" else target
    if name not in LANGUAGE_OF:
        raise UsageError(
            f"this version cannot run kernels on '{name}'",
            hint="--target cpu verifies and times C++ and Python kernels on this machine",
        )
    if language and language not in TAKEN[name]:
        raise UsageError(
            f"target {name} takes no candidates in '{language}'",
            hint=f"language {' or '.join(TAKEN[name])}",
        )
    return name


def make_workload(problem: str, name: str | None, matrix: Path | None) -> Workload:
    """The workload of that name, of that matrix file, or the problem's default."""
    from ..kernelbench import registry

    matrix_path = str(matrix) if matrix else ""
    return registry.workload_for(registry.get(problem), name or "", matrix=matrix_path)


def make_task(
    config: Config, problem: str, workload: str | None, matrix: Path | None, target: str
) -> Task:
    """What the referee is started for."""
    return task_for(config, problem, make_workload(problem, workload, matrix), target)


def task_for(config: Config, problem: str, workload: Workload, target: str) -> Task:
    """What the referee is started for, with a workload at hand."""
    from ..verifier.request import Task

    return Task(
        problem=problem,
        workload=workload,
        target=target,
        cpus=config.cpus,
        cache_dir=str(config.cache_dir),
        accept_weak_isolation=config.accept_weak_isolation,
        jail=config.jail,
    )


def warn_of_weakness(prose: Console, isolation: Isolation) -> None:
    """Says aloud what the sandbox does not enforce."""
    if isolation.lacking:
        prose.print(
            f"warning: the sandbox ({isolation.mechanism}) does not enforce "
            f"{', '.join(isolation.lacking)}; kernels can do harm here, and results say so",
            style="yellow",
            markup=False,
        )
