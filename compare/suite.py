# SPDX-License-Identifier: Apache-2.0
"""A suite: one campaign for each of several problems at equal caps, and a table of what they found.

It runs as a bench of one workflow does: the key of each campaign stands in its first event, so that
the same suite goes on where it stopped and a finished one is only told again. All campaigns have
the same budget and run one after the other; they begin with what earlier ones found.
"""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..agents.books.request import CampaignRequest
from ..errors import UnknownNameError, UsageError
from ..kernelbench import registry
from ..kernelbench.recipes.catalogue import recipes_for
from ..kernelbench.targets import target_of
from ..traces.suites import SuiteRow, average
from ..traces.wording import duration, micros, percent, speedup
from .plan import Bench, BenchCampaign

FAMILIES: dict[str, tuple[str, ...]] = {
    "sparse": ("sparse",),
    "dense": ("dense",),
    "attention": ("attention",),
    "quantised": ("quantised",),
    "training": ("training", "backward"),
    "fused": ("fused",),
    "all": (),
}
"""Suites by name, and the tags of which their problems have one; none: every problem."""
AT = "/"
"""Between a problem and one of its workloads: `spmm_csr/enron-33`."""
COLUMNS = (
    "problem",
    "workload",
    "status",
    "time (us)",
    "speed-up",
    "low",
    "high",
    "best baseline",
    "roofline share",
    "regret at most",
    "baselines (us)",
    "campaign",
)


@dataclass(frozen=True)
class Suite(Bench):
    """Its `problems` are tasks: a problem, or one with a workload behind a slash."""

    name: str = ""
    """`sparse`, `all`, or a file's name: what a viewer calls it."""

    def find_task(self, problem: str) -> tuple[str, str]:
        """See Bench."""
        name, _, workload = problem.partition(AT)
        return name, workload

    def request(self, trial: BenchCampaign) -> CampaignRequest:
        """See Bench; a suite is there to find kernels, so what is known already is used."""
        caps = ",".join(f"{cap}={value:g}" for cap, value in self.limits.items())
        told = f"{self.name} {caps} {self.target} {self.language}"
        return super().request(trial).model_copy(update={"transfer": True, "suite": told})


def list_tasks(name: str, target: str, language: str) -> tuple[str, ...]:
    """The tasks of a suite: those of one of FAMILIES that a recipe can write, or of a file.

    Raises:
        UsageError: the file cannot be used, or nothing is left.
        UnknownNameError: there is no such suite.
    """
    if name not in FAMILIES:
        if not Path(name).suffix:
            raise UnknownNameError.for_name("suite", name, FAMILIES)
        return _read_file(Path(name))
    tags = FAMILIES[name]
    device = target_of(target).torch_device
    found = [
        problem
        for problem in registry.names()
        if not tags or set(tags).intersection(registry.get(problem).tags)
        if recipes_for(problem, language)
        if any(baseline.runs_on(device) for baseline in registry.get(problem).baselines)
    ]
    if not found:
        raise UsageError(
            f"no problem of the suite {name} has a recipe in {language} for {target}",
            hint="name another suite or --language, or the tasks in a file",
        )
    return tuple(found)


def _read_file(path: Path) -> tuple[str, ...]:
    """`[[task]]` with `problem` and, where it is not the default one, `workload`."""
    form = 'it has [[task]] tables with `problem = "NAME"` and perhaps `workload = "NAME"`'
    try:
        tasks = tomllib.loads(path.read_text("utf-8")).get("task", [])
        if not isinstance(tasks, list) or not tasks:
            raise ValueError("it has no [[task]]")
        found = [_name_task(number, task) for number, task in enumerate(tasks, 1)]
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is no suite: {error}", hint=form) from error
    twice = sorted({task for task in found if found.count(task) > 1})
    if twice:
        raise UsageError(f"{path} names {', '.join(twice)} twice", hint="each one is run once")
    return tuple(found)


def _name_task(number: int, task: object) -> str:
    if not isinstance(task, dict) or not isinstance(task.get("problem"), str):
        raise ValueError(f"task {number} names no problem")
    if unknown := task.keys() - {"problem", "workload"}:
        raise ValueError(f"task {number} has the unknown key {min(unknown)}")
    workload = task.get("workload", "")
    if not isinstance(workload, str):
        raise ValueError(f"the workload of task {number} is {workload!r}, no name")
    return f"{task['problem']}{AT}{workload}" if workload else str(task["problem"])


def average_gains(rows: Sequence[SuiteRow]) -> dict[str, float]:
    """By suite the geometric mean of what its verified kernels are credited with: the lower ends of
    their speed-ups against the best baseline. A suite without one is left out."""
    found = {
        name: average(
            row.gain.low
            for row in rows
            if row.gain
            if not tags or set(tags).intersection(registry.get(row.task).tags)
        )
        for name, tags in FAMILIES.items()
    }
    return {name: mean for name, mean in found.items() if mean is not None}


def word_gains(rows: Sequence[SuiteRow]) -> str:
    """How many have a winner, and the averages; where the best baseline is faster is named."""
    won = [row for row in rows if row.gain]
    lost = [f"{row.task} ({speedup(row.gain)})" for row in won if row.gain and row.gain.high < 1]
    means = [f"{name} {mean:.2f}" for name, mean in average_gains(rows).items()]
    took = duration(sum(row.seconds for row in rows))
    told = f"{len(won)} of {len(rows)} have a verified kernel; all campaigns together took {took}."
    if means:
        told += f" Geometric means of what is credited: {', '.join(means)}."
    return told + (f" The best baseline is faster at {', '.join(lost)}." if lost else "")


def write_markdown(name: str, rows: Sequence[SuiteRow], about: Sequence[str]) -> str:
    """A page with one table.

    Args:
        about: Lines on the machine, the date and the command.
    """
    head = [f"# Suite {name}", "", *about, ""]
    columns = COLUMNS[:4] + COLUMNS[4:5] + COLUMNS[7:]
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for row in rows:
        cells = [
            row.task,
            row.workload,
            row.status,
            micros(row.candidate.median_us) if row.candidate else "",
            speedup(row.gain) if row.gain else "",
            row.best_baseline,
            percent(row.roofline) if row.roofline is not None else "",
            percent(row.regret) if row.regret is not None else "",
            ", ".join(f"{baseline} {micros(us)}" for baseline, us in row.baselines.items()),
            row.campaign,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*head, *lines, "", word_gains(rows), ""])


def write_csv(rows: Iterable[SuiteRow]) -> str:
    """The table with plain numbers; times in microseconds."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for row in rows:
        gain = row.gain
        interval = (gain.median, gain.low, gain.high) if gain else (None, None, None)
        table.writerow(
            [
                row.task,
                row.workload,
                row.status,
                _number(row.candidate.median_us if row.candidate else None),
                *map(_number, interval),
                row.best_baseline,
                _number(row.roofline),
                _number(row.regret),
                " ".join(f"{name}={us:.6g}" for name, us in row.baselines.items()),
                row.campaign,
            ]
        )
    return text.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"
