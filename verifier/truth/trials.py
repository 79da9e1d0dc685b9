# SPDX-License-Identifier: Apache-2.0
"""Which inputs a candidate is tried on, drawn from a secret seed after it was frozen.

A plan mixes the workload itself, the problem's other workloads, hidden shapes that exist nowhere
but here, and every input family the problem declares (verification.md §3.2–3.6). The counts per
protocol are those of §3.5: 5 for a screening, 30 and more for a VERIFIED verdict, 300 for a record.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...kernelbench.problem import Arrays, Expected, Family, Problem, Structure
from ...traces.records import Depth

TRIALS = {Depth.SCREEN: 5, Depth.FULL: 30, Depth.CONFIRM: 30, Depth.RECORD: 300}
ON_TARGET = 12
"""One trial in this many, and at least five, is on the workload itself: it is the slow one."""
SHARP = (Family.EXACT, Family.PROBE, Family.LARGE)
"""Families that show what random values hide; tried first."""
SPECIAL = (Family.NONFINITE, Family.DENORMAL)
"""Families of values that a kernel may pass over; every plan beyond a screening has each of them on
the workload itself, a screening the first of them."""
LONG = 1 << 16
"""Beyond what 16 bits can count."""
FIRST = 4
"""Trials on small shapes before an interpreter is given long ones."""
SMALL_BYTES = 2 << 20
"""Other workloads above this size are tried only beyond a screening."""
FEW_SHAPES = 6
"""Hidden shapes among the small trials."""
FEW_BYTES = 1 << 20
"""Workloads above this size are none of the small trials."""


@dataclass(frozen=True)
class Trial:
    """One set of inputs to be right on."""

    name: str
    """The workload's name, or `hidden shape 3`."""
    structure: Structure
    family: Family


@dataclass(frozen=True, eq=False)
class Item:
    """Inputs of one call, used once and then thrown away."""

    problem: Problem
    structure: Structure
    inputs: Arrays
    family: Family

    @cached_property
    def expected(self) -> dict[str, Expected]:
        """The right answers in float64; computed for those calls whose answers are judged."""
        return self.problem.oracle(self.structure, self.inputs)


@dataclass(frozen=True)
class Stage:
    """The structures of a problem that trials choose from, made once per referee."""

    problem: Problem
    target: Structure
    target_name: str
    others: tuple[tuple[str, Structure], ...]


def make_item(
    problem: Problem, structure: Structure, family: Family, rng: np.random.Generator
) -> Item:
    """Draws the inputs of one call."""
    return Item(problem, structure, problem.values(structure, family, rng), family)


def plan(
    stage: Stage,
    protocol: Depth,
    rng: np.random.Generator,
    drawn: Iterator[tuple[str, Structure]] | None = None,
) -> list[Trial]:
    """The trials of one evaluation, in the order they are run: small and sharp ones first.

    Args:
        drawn: the hidden shapes to take them from.
    """
    families = list(stage.problem.families)
    sharp: list[Family] = [f for f in SHARP if f in families]
    special: list[Family] = [f for f in SPECIAL if f in families]
    drawn = drawn or hidden_shapes(stage, rng)
    if protocol is Depth.SCREEN:
        return _screening(stage, sharp or families, special or families, drawn, rng)
    trials = [Trial(name, structure, f) for name, structure in stage.others for f in sharp[:2]]
    trials += [Trial(name, s, _draw_family(families, rng)) for name, s in stage.others]
    last = max(5, TRIALS[protocol] // ON_TARGET)
    # What is wrong on long axes only has few calls to be seen in: none is on values that hide it.
    long, usual = itertools.cycle(sharp or families), itertools.cycle(families)
    while len(trials) < TRIALS[protocol] - last:
        name, structure = next(drawn)
        trials.append(Trial(name, structure, next(long if _list_long_axes(structure) else usual)))
    trials += [Trial(stage.target_name, stage.target, f) for f in (*special, *sharp)]
    while len(trials) < TRIALS[protocol]:
        trials.append(Trial(stage.target_name, stage.target, _draw_family(families, rng)))
    return trials


def patient_plan(stage: Stage, protocol: Depth, rng: np.random.Generator) -> list[Trial]:
    """A plan for an interpreter: one shape that is long in each axis, early, on sharp values.

    A long shape takes it as long as all others together, and at first it has patience for them.
    """
    long: dict[frozenset[str], Trial] = {}
    sharp = next((f for f in SHARP if f in stage.problem.families), Family.NORMAL)

    def list_short() -> Iterator[tuple[str, Structure]]:
        for name, structure in hidden_shapes(stage, rng):
            axes = _list_long_axes(structure)
            if not axes:
                yield name, structure
            elif axes not in long:
                long[axes] = Trial(name, structure, sharp)

    trials = plan(stage, protocol, rng, list_short())
    return [*trials[:FIRST], *long.values(), *trials[FIRST:]]


def _screening(
    stage: Stage,
    sharp: list[Family],
    special: list[Family],
    drawn: Iterator[tuple[str, Structure]],
    rng: np.random.Generator,
) -> list[Trial]:
    """A wide shape, a hidden one, the small workloads and the workload itself."""
    small = [o for o in stage.others if _bytes(stage.problem, o[1]) <= SMALL_BYTES]
    # In turn, so that each screening has all of the sharp ones that there is room for.
    turns = itertools.cycle(rng.permutation(np.array(sharp, object)))
    families = list(stage.problem.families)
    trials = [Trial(*next(drawn), next(turns)), Trial(*next(drawn), special[0])]
    trials += [Trial(stage.target_name, stage.target, next(turns))]
    for name, structure in small:
        trials.append(Trial(name, structure, _draw_family([*sharp, *families], rng)))
    while len(trials) < TRIALS[Depth.SCREEN]:
        trials.append(Trial(*next(drawn), next(turns)))
    return trials


def small_trials(stage: Stage, rng: np.random.Generator) -> list[Trial]:
    """The small workloads, then a few hidden shapes, each with a family of its own.

    For checks under which a candidate is many times slower, or that add up to its trials.
    """
    known = [*stage.others, (stage.target_name, stage.target)]
    shapes = [s for s in known if _bytes(stage.problem, s[1]) <= FEW_BYTES]
    drawn = hidden_shapes(stage, rng)
    shapes += [next(drawn) for _ in range(FEW_SHAPES)]
    families = list(stage.problem.families)
    return [Trial(name, structure, _draw_family(families, rng)) for name, structure in shapes]


def hidden_shapes(stage: Stage, rng: np.random.Generator) -> Iterator[tuple[str, Structure]]:
    """Endless shapes that exist nowhere but here, each with a name for people."""
    for number, structure in enumerate(stage.problem.variations(stage.target, rng), 1):
        axes = ", ".join(f"{name}={value}" for name, value in structure.axes.items())
        yield f"hidden shape {number} ({axes})", structure


def _list_long_axes(structure: Structure) -> frozenset[str]:
    return frozenset(axis for axis, length in structure.axes.items() if length >= LONG)


def _draw_family(families: list[Family], rng: np.random.Generator) -> Family:
    return families[int(rng.integers(len(families)))]


def _bytes(problem: Problem, structure: Structure) -> float:
    return problem.bytes_moved(structure.axes)
