# SPDX-License-Identifier: Apache-2.0
"""Whether a problem can verify anybody: what is looked at before a campaign relies on it.

Its answers are drawn and computed, held against a second and against null kernels; its sizes are
drawn; right float32 implementations, its own baselines, are held against the gates. A finding is a
Check: what failed names the figure and says what to mend.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter

import numpy as np

from ..errors import NotDiscriminatingError, UsageError
from ..kernelbench.machine import available_bytes
from ..kernelbench.problem import Axes, Family, Problem, Structure
from ..kernelbench.rows import shrink, take_rows
from ..sandbox.builders.workshop import Workshop
from ..traces.records import Check
from .baselines.process import BaselineProcess
from .truth import gates, null_kernels
from .truth.trials import Item, make_item

SHAPES = 6
"""Hidden shapes that answers are computed on."""
MOST_ELEMENTS = 1 << 20
"""Of the tensors of such a shape."""
DRAWN, DISTINCT = 40, 10
"""Hidden shapes that are drawn, and how many of them must differ where sizes vary at all."""
HEADROOM = 0.8
"""Of a gate's limit, which no right implementation may pass."""
MOST_NARROW = 0.5
"""Share of answers to random numbers that float32 holds, of an answer that float64 computed."""
FINER = 2.0**-30
"""Of an input, by so much it is moved to have digits that float32 has not."""
HELD = 6
"""Calls' bytes that an evaluation holds."""
BULKY = 2
"""Hidden shapes with two long axes that answers are asked for."""
EAGER = "torch eager"
"""The baseline whose operations are counted."""
COUNTS = 4.0
"""By so much `flops` may be off what is counted: a product and its sum are one to some and two to
others, and a baseline may compute a little beside the answer. A lost axis or power is more."""
_ASKED = (Family.NORMAL, Family.UNIFORM)


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
    for name, checks in (
        ("sizes", _sizes(problem, rng)),
        ("answers", _answers(problem, rng)),
        ("hidden shapes", _check_hidden(problem, rng)),
        ("rows", _rows(problem, rng)),
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


def _tiny(problem: Problem) -> Structure:
    tiny = next((w for w in problem.workloads if w.kind == "tiny"), problem.default_workload)
    return problem.structure(tiny)


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


def _sizes(problem: Problem, rng: np.random.Generator) -> Iterator[Check]:
    drawn = list(itertools.islice(problem.variations(_tiny(problem), rng), DRAWN))
    distinct = len({tuple(sorted(structure.axes.items())) for structure in drawn})
    yield Check(
        name="hidden sizes can be drawn",
        passed=distinct >= DISTINCT or distinct == 1,
        figure=float(distinct),
        limit=float(DISTINCT if distinct > 1 else 1),
        detail=f"of {DRAWN} hidden shapes so many differ"
        if distinct > 1
        else "no size of it can vary: kernels are judged at these alone",
    )


def _shapes(problem: Problem, rng: np.random.Generator) -> list[Structure]:
    tiny = _tiny(problem)
    drawn = itertools.islice(problem.variations(tiny, rng), DRAWN)
    small = (s for s in drawn if problem.bytes_moved(s.axes) <= 4 * MOST_ELEMENTS)
    return [tiny, *itertools.islice(small, SHAPES)]


def _longest(problem: Problem, rng: np.random.Generator) -> list[Structure]:
    """Of the hidden shapes that evaluations draw, those that ask most: of each axis the longest,
    the one of the most bytes, and some with two long axes."""
    tiny = _tiny(problem)
    drawn = list(itertools.islice(problem.variations(tiny, rng), DRAWN))
    asking: list[Callable[[Axes], float]] = [problem.bytes_moved, *map(itemgetter, tiny.axes)]
    chosen = [max(drawn, key=lambda s: count(s.axes)) for count in asking]
    chosen += itertools.islice(problem.bulk(tiny, rng), BULKY)
    return list({tuple(s.axes.items()): s for s in chosen}.values())


def _check_hidden(problem: Problem, rng: np.random.Generator) -> Iterator[Check]:
    """Answers can be had where evaluations will ask for them."""
    for structure in _longest(problem, rng):
        item = make_item(problem, structure, Family.NORMAL, rng)
        told = ", ".join(f"{axis}={size}" for axis, size in structure.axes.items())
        lost = [n for n, e in item.expected.items() if not np.isfinite(e.value).all()]
        if lost:
            yield Check(
                name="hidden shapes have answers",
                passed=False,
                detail=f"{lost[0]} is not finite for {told}: say in 'lengths' how long axes may be",
            )
            return
    yield Check(
        name="hidden shapes have answers",
        passed=True,
        detail=f"the longest, at last {told}",
    )


def _answers(problem: Problem, rng: np.random.Generator) -> Iterator[Check]:
    """Every family's answers: the same when asked again, finite, and of float64."""
    shapes, count, lost = _shapes(problem, rng), 0, ""
    for structure, family in itertools.product(shapes, problem.families):
        item = make_item(problem, structure, family, rng)
        count += 1
        bad = [n for n, e in item.expected.items() if not np.isfinite(e.value).all()]
        if bad and family is not Family.NONFINITE:
            lost = lost or f"{bad[0]} is not finite on {structure.axes}, inputs: {family}"
    yield Check(
        name="answers are finite",
        passed=not lost,
        detail=lost or f"{count} sets of inputs of {len(problem.families)} families",
    )
    item = make_item(problem, shapes[0], Family.NORMAL, rng)
    again = problem.oracle(item.structure, item.inputs)
    differ = [
        name
        for name, first in item.expected.items()
        if not np.array_equal(first.value, again[name].value, equal_nan=True)
    ]
    yield Check(
        name="answers are the same when asked again",
        passed=not differ,
        detail=f"{', '.join(differ)} differ" if differ else "bit for bit",
    )
    # Of inputs that float32 does not hold: what copies or doubles them gives none that it holds.
    fine = {
        name: array.astype(np.float64)
        * (1 + (0 if name in problem.constants else FINER * rng.random(array.shape)))
        for name, array in item.inputs.items()
    }
    for name, expected in problem.oracle(item.structure, fine).items():
        told = expected.value[expected.value != 0]
        narrow = float(np.mean(told == told.astype(np.float32))) if told.size else 0.0
        yield Check(
            name="answers are of float64",
            passed=expected.is_exact or narrow <= MOST_NARROW,
            figure=narrow,
            limit=MOST_NARROW,
            detail=f"share of {name} that float32 holds: compute in the type that is given",
        )


def _rows(problem: Problem, rng: np.random.Generator) -> Iterator[Check]:
    """Answers of some rows follow from their inputs alone, where the file says so."""
    if not problem.is_row_wise:
        return
    structure = next((s for s in _shapes(problem, rng) if s.axes["M"] > 1), _tiny(problem))
    item = make_item(problem, structure, Family.NORMAL, rng)
    rows = take_rows(structure, np.arange(0, structure.axes["M"], 2))
    part = item.part(rows).expected
    whole = rows.take(problem, {name: e.value for name, e in item.expected.items()})
    wrong = [n for n, e in part.items() if not np.allclose(e.value, whole[n], 1e-9, 0.0, True)]
    yield Check(
        name="no row says anything of another",
        passed=not wrong,
        detail=f"{', '.join(wrong)} changes with other rows: leave is_row_wise out"
        if wrong
        else f"every second of {structure.axes['M']} rows alone: the same answers",
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
    structure = _tiny(problem)
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
