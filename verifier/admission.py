# SPDX-License-Identifier: Apache-2.0
"""Whether a problem can verify anybody: what is looked at before a campaign relies on it.

Its answers are drawn and computed, held against a second and against null kernels; its sizes are
drawn; right float32 implementations, its own baselines, are held against the gates. A finding is a
Check: what failed names the figure and says what to mend.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..errors import NotDiscriminatingError, UsageError
from ..kernelbench.machine import available_bytes
from ..kernelbench.problem import Problem
from ..kernelbench.rows import shrink
from ..sandbox.builders.workshop import Workshop
from ..traces.records import Check
from .baselines.process import BaselineProcess
from .stands.session import note_sound
from .truth import gates, null_kernels, soundness
from .truth.trials import Item, make_item

HEADROOM = 0.8
"""Of a gate's limit, which no right implementation may pass."""
HELD = 6
"""Calls' bytes that an evaluation holds."""
EAGER = "torch eager"
"""The baseline whose operations are counted."""
COUNTS = 4.0
"""By so much `flops` may be off what is counted: a product and its sum are one to some and two to
others, and a baseline may compute a little beside the answer. A lost axis or power is more."""


class SkippedCheck(Check):
    """What could not be looked at: it has neither passed nor failed."""

    passed: bool = False
    is_skipped: bool = True


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
    rng = np.random.default_rng(0)
    found = list(_guard("workloads", _workloads(problem)))
    if not all(check.passed for check in found):
        return found
    sound = [
        check
        for name, look in soundness.ASPECTS.items()
        for check in _guard(name, look(problem, rng))
    ]
    if problem.text and all(check.passed for check in sound):
        note_sound(problem, workshop.folder)
    found += sound
    for name, checks in (
        ("null kernels", _nulls(problem, rng)),
        ("headroom", _headroom(problem, workshop, rng)),
    ):
        found += _guard(name, checks)
    return found


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
        structure = shrink(problem, problem.structure(workload), rng)
        try:
            checks = null_kernels.admit(problem, structure, rng)
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


def _headroom(problem: Problem, workshop: Workshop, rng: np.random.Generator) -> Iterator[Check]:
    """How near right implementations come to the gates."""
    structure = soundness.tiny_of(problem)
    process = BaselineProcess(workshop, problem, structure, slots=1)
    try:
        # Compiled it computes what eager does, and takes half a minute.
        asked = [b for b in problem.baselines if b.runs_on("") and b.name != "torch.compile"]
        usable, missing = process.prepare(tuple(b.name for b in asked), rng)
        for name, why in missing.items():
            yield Check(
                name="a baseline is right",
                passed="its answer is wrong" not in why,
                detail=f"{name}: {why}",
            )
        for name in usable:
            yield _ratio_of(problem, process, name, rng)
        yield _count(problem, process, usable)
        if not usable:
            yield Check(name="headroom", passed=False, detail="no baseline runs here to hold it")
    finally:
        process.close()


def _count(problem: Problem, process: BaselineProcess, usable: Sequence[str]) -> Check:
    """Whether the operations that the file tells are those that its baseline takes."""
    name, slot = "flops are what is counted", process.slots[0]
    declared = problem.flops(slot.structure.axes)
    counted = process.count(EAGER, slot) if EAGER in usable else "it runs no by_torch"
    if isinstance(counted, str):
        told = f"not counted: {counted}; declared {declared:,.0f}"
        return SkippedCheck(name=name, limit=COUNTS, detail=told)
    least, most = counted
    off = max(1.0, least / declared, declared / most)
    told = f"times off: declared {declared:,.0f}, {EAGER} takes {least:,}"
    if most != least:
        told += f" to {most:,}, an element of a function as 1 to 10"
    if off > COUNTS:
        told += ": correct flops, or have by_torch compute nothing beside the answer"
    return Check(name=name, passed=off <= COUNTS, figure=off, limit=COUNTS, detail=told)


def _ratio_of(
    problem: Problem, process: BaselineProcess, name: str, rng: np.random.Generator
) -> Check:
    """The worst of a baseline's errors to its limit, on every family."""
    slot, worst, where = process.slots[0], 0.0, ""
    for family in problem.families:
        item: Item = make_item(problem, slot.structure, family, rng)
        for key, array in item.inputs.items():
            slot.inputs[key][...] = array
        process.call(name, slot)
        for output, expected in item.expected.items():
            got = np.array(slot.outputs[output])
            for check in gates.check_output(
                output, got, expected, problem.precision, family, poison=None
            ):
                ratio = check.figure / check.limit if check.figure and check.limit else 0.0
                ratio = ratio if check.passed else max(ratio, 1.0)
                if ratio >= worst:
                    worst, where = ratio, f"{check.name}, inputs: {family}"
    return Check(
        name="right implementations have headroom",
        passed=worst < HEADROOM,
        figure=worst,
        limit=HEADROOM,
        detail=f"{name}: {where}",
    )
