# SPDX-License-Identifier: Apache-2.0
"""Right float32 implementations of a problem, its own baselines, held against its gates and costs.

Part of a problem's admission. They run as beside a candidate, in a process of their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...kernelbench.problem import Problem
from ...sandbox.builders.workshop import Workshop
from ...traces.records import Check
from ..truth import gates, soundness
from ..truth.trials import Item, make_item
from .process import BaselineProcess

HEADROOM = 0.8
"""Of a gate's limit, which no right implementation may pass."""
EAGER = "torch eager"
"""The baseline whose operations are counted."""
COUNTS = 4.0
"""By so much `flops` may be off what is counted: a product and its sum are one to some and two to
others, and a baseline may compute a little beside the answer. A lost axis or power is more."""


class SkippedCheck(Check):
    """What could not be looked at: it has neither passed nor failed."""

    passed: bool = False
    is_skipped: bool = True


def hold_baselines(
    problem: Problem, workshop: Workshop, rng: np.random.Generator
) -> Iterator[Check]:
    """How near right implementations come to the gates, and what they count, on a tiny workload."""
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
        process.call(name, [slot])
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
