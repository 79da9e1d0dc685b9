# SPDX-License-Identifier: Apache-2.0
"""The correctness phase: every trial of the plan, then the metamorphic ones.

Each trial is one call on fresh inputs at a fresh address, with poisoned outputs and guard bands.
The metamorphic trials catch answers that were kept: the same data again at another address, and
new data at the same address that differ in one element that matters (verification.md §3.10). Where
there is a sparse pattern, others of exactly its sizes stand in for it at the same address, so that
what was kept of the pattern is caught as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...kernelbench.problem import Family, Problem, Structure
from ...kernelbench.rows import RowTurns, changed_rows, count_parts, is_large, take_rows
from ...traces.records import Check, Depth
from ..clock.timed_sides import CandidateSide
from ..truth import gates
from ..truth.drawing import Drawing
from ..truth.trials import Item, Stage, Trial, make_item, plan

_CHANGES = {Depth.SCREEN: 2, Depth.RACE: 2, Depth.FULL: 4, Depth.CONFIRM: 4, Depth.RECORD: 12}
_TWINS = {Depth.FULL: 3, Depth.CONFIRM: 3, Depth.RECORD: 18}
"""Other patterns on each of two structures; a screening has those of its timed calls."""
CHANGED = 2
"""Of the rows that a trial judges of a large answer one in so many is looked at here."""
_ATTEMPTS = 24
_VISIBLE = 100.0
"""A change counts once it moves an output by this many times what gate G1 forgives."""


def run_trials(
    side: CandidateSide,
    stage: Stage,
    protocol: Depth,
    rng: np.random.Generator,
    trials: Sequence[Trial] = (),
    *,
    apart: bool = False,
) -> list[Check]:
    """The plan's trials, then the metamorphic ones, up to the first failure. Raises RunFault.

    Args:
        trials: Of a plan that was drawn before, since the candidate was built for its shapes.
        apart: See try_all.
    """
    checks = try_all(side, stage, trials or plan(stage, protocol, rng), rng, apart=apart)
    if not checks[-1].passed:
        return checks
    smallest = min(
        (structure for _, structure in stage.others),
        key=lambda s: stage.problem.bytes_moved(s.axes),
        default=stage.target,
    )
    structures = [smallest]
    # Of a large answer each call shows a part: what was kept shows in timed calls.
    if not protocol.is_quick and not is_large(stage.problem, stage.target.axes):
        structures.append(stage.target)
    for structure in structures:
        checks += _metamorphic(side, stage.problem, structure, _CHANGES[protocol], rng)
        if not checks[-1].passed:
            return checks
        if protocol in _TWINS:
            checks += _twins(side, stage.problem, structure, _TWINS[protocol], rng)
        if not checks[-1].passed:
            return checks
    return checks


def try_all(
    side: CandidateSide,
    stage: Stage,
    trials: Sequence[Trial],
    rng: np.random.Generator,
    *,
    apart: bool = False,
) -> list[Check]:
    """One Check per trial; stops after the first that failed. Raises RunFault.

    Args:
        apart: Inputs and truths are found in a process of their own.
    """
    checks: list[Check] = []
    with Drawing(stage.problem, trials, rng, apart=apart) as drawing:
        for trial, item in drawing:
            slot = side.place(trial.structure, 1)[0]
            checks.append(_verdict_on(trial, side.answer(item, slot)))
            if not checks[-1].passed:
                break
    return checks


def _verdict_on(trial: Trial, found: list[Check]) -> Check:
    failed = gates.first_failure(found)
    if failed:
        detail = f"{failed.name}: {failed.detail} (inputs: {trial.family})"
        return failed.model_copy(
            update={"name": f"correct on {trial.name}", "detail": detail, "workload": trial.name}
        )
    figures = [c.figure for c in found if c.limit == 1.0 and c.figure is not None]
    return Check(
        name=f"correct on {trial.name}",
        passed=True,
        figure=max(figures, default=0.0),
        limit=1.0,
        detail=f"inputs: {trial.family}; the worst error as a share of what the gates allow",
        workload=trial.name,
    )


def _metamorphic(
    side: CandidateSide,
    problem: Problem,
    structure: Structure,
    changes: int,
    rng: np.random.Generator,
) -> list[Check]:
    item = _plain_item(problem, structure, rng)
    rows = _draw_rows(item, rng)
    first, second = side.place(structure, 2)
    found = side.answer(item, first, rows)
    before = {name: array.copy() for name, array in first.outputs.items()}
    checks = [_rename_check("same data at a new address", found + side.answer(item, second, rows))]
    if not checks[0].passed:
        return checks
    spread = any(
        not np.array_equal(before[name].view(np.uint8), second.outputs[name].view(np.uint8))
        for name in before
    )
    checks.append(
        Check(
            name="determinism",
            passed=True,
            figure=float(spread),
            detail="two calls differ in their last bits, within the gates"
            if spread
            else "two calls on the same data agree bit for bit",
        )
    )
    for _ in range(changes):
        item = _change_item(problem, item, rows, rng)
        found = side.answer(item, second, rows)
        checks.append(_rename_check("one element changed at the same address", found))
        if not checks[-1].passed:
            break
    return checks


def _twins(
    side: CandidateSide,
    problem: Problem,
    structure: Structure,
    count: int,
    rng: np.random.Generator,
) -> list[Check]:
    """The structure, then others of its sizes, then itself again, all at one address."""
    item = _plain_item(problem, structure, rng)
    others: list[Item] = []
    # A near twin can leave every maximum as it was: a few more are drawn than are needed.
    for twin in itertools.islice(problem.twins(structure, rng), 2 * count):
        other, last = replace(item, structure=twin), others[-1] if others else item
        rows = changed_rows(last.structure, twin) if item.is_parted else None
        if _moves(problem, last.among(rows), other.among(rows)):
            others.append(other)
        if len(others) == count:
            break
    if not others:
        return []
    slot = side.place(structure, 1)[0]
    for each in (item, *others, item):
        check = _rename_check("other patterns of the same sizes", side.answer(each, slot))
        if not check.passed:
            return [check]
    detail = f"{len(others)} others and the first one again, at one address"
    return [check.model_copy(update={"detail": detail})]


def _plain_item(problem: Problem, structure: Structure, rng: np.random.Generator) -> Item:
    family = Family.NORMAL if Family.NORMAL in problem.families else problem.families[0]
    return make_item(problem, structure, family, rng)


def _rename_check(name: str, found: list[Check]) -> Check:
    failed = gates.first_failure(found)
    if failed:
        detail = f"{failed.name}: {failed.detail}"
        return failed.model_copy(update={"name": name, "detail": detail})
    return Check(name=name, passed=True)


def _draw_rows(item: Item, rng: np.random.Generator) -> np.ndarray | None:
    """The rows on which a change is made and looked for; None: all of them."""
    if not item.is_parted:
        return None
    axes = item.structure.axes
    return RowTurns(rng).take(axes["M"], CHANGED * count_parts(item.problem, axes))


def _change_item(
    problem: Problem, item: Item, numbers: np.ndarray | None, rng: np.random.Generator
) -> Item:
    """The item with one input element changed such that some output of these rows moves visibly."""
    # A constant is what it is: a kernel may know it.
    names = [name for name in item.inputs if name not in problem.constants]
    rows = None if numbers is None else take_rows(item.structure, numbers)
    before = item.among(numbers)
    changed = item
    for attempt in range(_ATTEMPTS):
        name = names[int(rng.integers(len(names)))]
        places = rows.of(problem, name) if rows else None
        array = item.inputs[name].copy()
        if not array.size:
            continue
        if name in problem.bound:
            drawn = problem.values(item.structure, Family.NORMAL, rng)[name]
            changed = replace(item, inputs={**item.inputs, name: drawn})
            if _moves(problem, before, changed.among(numbers)):
                return changed
            continue
        lines = np.atleast_1d(array)
        first = int(rng.integers(len(lines) if places is None else len(places)))
        row = lines[first if places is None else places[first] :][:1].reshape(-1)
        at = int(rng.integers(row.size))
        scale = max(float(array.max()), -float(array.min())) or 1.0
        row[at] = _move(row[at], (1 + attempt) * (0.5 + rng.random()) * scale)
        changed = replace(item, inputs={**item.inputs, name: array})
        if _moves(problem, before, changed.among(numbers)):
            return changed
    return changed


def _move(number: np.generic, by: float) -> float:
    """So much more; of whole numbers as much more as their type holds, or else its least."""
    moved = float(number) + by
    if not isinstance(number, np.integer):
        return moved
    ends = np.iinfo(number.dtype)
    whole = min(round(moved), int(ends.max))
    return whole if whole > number else max(int(ends.min), -int(ends.max))


def _moves(problem: Problem, old: Item, new: Item) -> bool:
    for name, expected in new.expected.items():
        was = old.expected[name].value
        if was.shape != expected.value.shape:
            return True  # rows of other lengths, where each entry has an answer
        allowed = gates.allowed_error(expected, problem.precision_of(name))
        with np.errstate(invalid="ignore"):
            if np.any(np.abs(expected.value - was) > _VISIBLE * allowed):
                return True
    return False
