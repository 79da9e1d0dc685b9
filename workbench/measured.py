# SPDX-License-Identifier: Apache-2.0
"""The workloads that a verdict has times of, with their sizes: what `apply()` keeps near to."""

from __future__ import annotations

from collections.abc import Iterator

from ..errors import KernelwrightError
from ..kernelbench import registry
from ..kernelbench.features import features
from ..kernelbench.problem import Workload
from ..traces.events import CampaignStarted
from ..traces.export import Measured
from ..traces.records import Verdict


def list_measured(started: CampaignStarted, verdict: Verdict) -> tuple[Measured, ...]:
    """Each timed workload whose sizes can be had; a matrix file that has moved has none."""
    timed = {measurement.workload for measurement in verdict.measurements}
    return tuple(each for each in _describe_workloads(started) if each.name in timed)


def _describe_workloads(started: CampaignStarted) -> Iterator[Measured]:
    problem = registry.get(started.problem)
    whole = Workload.model_validate(started.workload_spec)
    for workload in (part.workload for part in whole.parts) if whole.parts else (whole,):
        try:
            structure = problem.structure(workload)
        except (KernelwrightError, OSError):
            continue
        sizes = {name: float(value) for name, value in structure.axes.items()}
        rows = features(structure)
        if rows.get("avg_row"):
            sizes["skew"] = rows["max_row"] / rows["avg_row"]
        yield Measured(workload.name, sizes)
