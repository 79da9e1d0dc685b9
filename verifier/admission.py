# SPDX-License-Identifier: Apache-2.0
"""Whether a problem can verify anybody: what is looked at before a campaign relies on it.

Its answers are drawn and computed, held against a second and against null kernels; its sizes are
drawn; right float32 implementations, its own baselines, are held against the gates. A finding is a
Check: what failed names the figure and says what to mend.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..errors import NotDiscriminatingError, UsageError
from ..kernelbench.machine import available_bytes
from ..kernelbench.problem import Problem
from ..sandbox.builders.workshop import Workshop
from ..traces.records import Check
from .baselines import headroom
from .baselines.headroom import SkippedCheck
from .stands.session import note_sound
from .truth import null_kernels, soundness

HELD = 6
"""Calls' bytes that an evaluation holds."""


def is_admitted(found: Sequence[Check]) -> bool:
    """Whether nothing of what was looked at has failed."""
    return all(each.passed or isinstance(each, SkippedCheck) for each in found)


def check_problem(problem: Problem, workshop: Workshop) -> list[Check]:
    """One check for each thing that is looked at; a problem is admitted where none has failed.

    Args:
        problem: with functions that can be called.

    Raises:
        PrerequisiteError, SandboxError: the machine or the harness; never the problem.
    """
    found = list(_guard("workloads", _workloads(problem)))
    if not all(check.passed for check in found):
        return found
    # Baselines run in a process of their own, which begins with seconds of imports.
    with ThreadPoolExecutor(1) as beside:
        holding = beside.submit(_hold, problem, workshop)
        rng = np.random.default_rng(0)
        sound = [
            check
            for name, look in soundness.ASPECTS.items()
            for check in _guard(name, look(problem, rng))
        ]
        nulls = list(_guard("null kernels", _nulls(problem, rng)))
        held = holding.result()
    if problem.text and is_admitted([*sound, *held]):
        note_sound(problem, workshop.folder)
    return [*found, *sound, *nulls, *held]


def _hold(problem: Problem, workshop: Workshop) -> list[Check]:
    checks = headroom.hold_baselines(problem, workshop, np.random.default_rng(0))
    return list(_guard("headroom", checks))


def _guard(name: str, checks: Iterator[Check]) -> Iterator[Check]:
    """What is wrong with the user's file is a finding."""
    try:
        yield from checks
    except UsageError as error:
        yield Check(name=name, passed=False, detail=str(error))


def _workloads(problem: Problem) -> Iterator[Check]:
    """They can be made, and fit."""
    room = available_bytes()
    for workload in problem.workloads:
        structure = problem.structure(workload)
        needed = HELD * problem.bytes_moved(structure.axes)
        flops = problem.flops(structure.axes)
        yield Check(
            name="workload fits",
            passed=(room is None or needed <= room) and flops > 0,
            figure=needed / (1 << 20),
            limit=None if room is None else room / (1 << 20),
            detail=f"MiB of {HELD} calls; {flops:,.0f} operations",
            workload=workload.name,
        )


def _nulls(problem: Problem, rng: np.random.Generator) -> Iterator[Check]:
    for workload in problem.workloads:
        try:
            checks = null_kernels.admit(problem, problem.structure(workload), rng)
        except NotDiscriminatingError as error:
            yield Check(
                name="null kernels fail",
                passed=False,
                detail=f"{error}; {error.hint}",
                workload=workload.name,
            )
            continue
        yield Check(
            name="null kernels fail",
            passed=True,
            figure=float(len(checks)),
            detail=f"of so many each, on {len(problem.families)} families of inputs",
            workload=workload.name,
        )
