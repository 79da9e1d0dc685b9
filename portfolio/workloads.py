# SPDX-License-Identifier: Apache-2.0
"""The workloads that a portfolio is for: what `--workloads` names, all of them."""

from __future__ import annotations

from ..errors import UsageError
from ..kernelbench.packs import read_calls
from ..kernelbench.problem import Problem, Workload
from ..kernelbench.registry import workload_for

LEAST = 2


def list_workloads(problem: Problem, asked: str) -> list[tuple[Workload, float]]:
    """Each workload with how much it counts; one that is named twice counts as both.

    Args:
        asked: As `kernelbench.packs.read_calls` takes it. None stands for others here.

    Raises:
        UsageError: it cannot be read, or names fewer than two.
    """
    calls, _ = read_calls(problem, asked)
    weights: dict[str, float] = {}
    found: dict[str, Workload] = {}
    for call in calls:
        workload = workload_for(problem, call.name, matrix="", **call.axes)
        found[workload.name] = workload
        weights[workload.name] = weights.get(workload.name, 0.0) + call.weight
    if len(found) < LEAST:
        raise UsageError(
            f"--workloads {asked} is one workload: there is nothing to choose by",
            hint="name several, a trace or a pack; `kernelwright run` tunes for one",
        )
    return [(workload, weights[name]) for name, workload in found.items()]
