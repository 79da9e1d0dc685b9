# SPDX-License-Identifier: Apache-2.0
"""The page of one problem: the best of each task over all campaigns, and how it came about.

Pure functions of the lines of campaigns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from .home_page import HomeRow


class Task(NamedTuple):
    """What can be compared."""

    workload: str
    target: str
    language: str


@dataclass(frozen=True)
class TaskRow:
    """The campaigns of one task."""

    task: Task
    campaigns: tuple[HomeRow, ...]
    """The oldest first."""

    @property
    def steps(self) -> list[HomeRow]:
        """Those that credited more than all before them."""
        best, found = 0.0, []
        for row in self.campaigns:
            if row.credited > best:
                best = row.credited
                found.append(row)
        return found

    @property
    def best(self) -> HomeRow | None:
        """The one with the highest credit, or the shortest modelled time where nothing is timed."""
        if self.steps:
            return self.steps[-1]
        modelled = [row for row in self.campaigns if row.modelled_us is not None]
        return min(modelled, key=lambda row: row.modelled_us or 0.0, default=None)


def list_tasks(rows: Iterable[HomeRow], problem: str) -> list[TaskRow]:
    """The tasks of a problem, those with most campaigns first."""
    found: defaultdict[Task, list[HomeRow]] = defaultdict(list)
    for row in rows:
        told = row.told
        if told["problem"] == problem:
            found[Task(told["workload"], told["target"], told["language"])].append(row)
    tasks = [
        TaskRow(task, tuple(sorted(each, key=lambda row: row.told["started_at"])))
        for task, each in found.items()
    ]
    return sorted(tasks, key=lambda row: (-len(row.campaigns), row.task))
