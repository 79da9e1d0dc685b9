# SPDX-License-Identifier: Apache-2.0
"""Which inputs a candidate is tried on, drawn from a secret seed after it was frozen.

A plan mixes the workload itself, the problem's other workloads, hidden shapes that exist nowhere
but here, and every input family the problem declares (verification.md §3.2–3.6).
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ...kernelbench.problem import Arrays, Expected, Family, Problem, Structure
from ...kernelbench.rows import Rows, is_parted, take_rows
from ...kernelbench.sizes import ALL_OF_A_ROUND
from ...kernelbench.tried import RESIDUES, USUAL, Tried
from ...traces.records import Depth
from .asked_sizes import AskedSizes

LEAST_TRIALS = 30
"""Of a VERIFIED verdict (verification.md §3.5)."""
ROUNDS = {Depth.FULL: 8, Depth.CONFIRM: 8, Depth.RECORD: 16}
SHAPES = {Depth.SCREEN: 16, **{depth: ALL_OF_A_ROUND * count for depth, count in ROUNDS.items()}}
"""Hidden shapes: a screening sees each scale once, a verification every remainder modulo 64
of each axis twice or more, and modulo 8 of long ones. Most take four milliseconds."""
OFTEN = 3
"""So many shapes that bring a remainder are on sharp values for each that is on any: there is what
those hide and others show."""
FEW_BUILT = {Depth.SCREEN: 2, Depth.FULL: 28, Depth.CONFIRM: 28, Depth.RECORD: 280}
"""Where shapes are dear: a GPU's kernels may be built for each, an emulation takes its time."""
BULK_SHAPES = {Depth.FULL: 3, Depth.CONFIRM: 3, Depth.RECORD: 12}
"""Hidden shapes in which two axes are long at once."""
NO_BULK: Mapping[Depth, int] = {}
"""Where shapes are dear, too."""
ON_TARGET = {Depth.FULL: 5, Depth.CONFIRM: 5, Depth.RECORD: 25}
"""Trials on the workload itself, at least: it is the slow one."""
ON_ANY = 4
"""Of so many shapes with many entries, and no long axis else, one is on any values, and of so many
with a usual length."""
SHARP = (Family.EXACT, Family.PROBE, Family.LARGE)
"""Families that show what random values hide; tried first."""
SHOWING = (Family.EXACT, Family.LARGE)
"""Those of them of which no element is likely to be 0 in every place that would show it."""
SPECIAL = (Family.NONFINITE, Family.DENORMAL)
"""Families of values that a kernel may pass over; every plan beyond a screening has each of them on
the workload itself, a screening the first of them."""
LONG = 1 << 14
"""Shapes with an axis as long as this are few, and dear to an interpreter."""
FAR = 1 << 12
"""From here on a length is likely to be at an edge of a tile, and few shapes have that edge."""
BANDS = ((FAR, LONG, 2), (LONG, 1 << 62, 1))
"""Lengths of an axis along which values that are not finite are tried, and on how many shapes: of
the first some have a dozen rows beside it, of the second one to three."""
KNOWN = frozenset(itertools.chain(*USUAL))
"""Lengths that a kernel may be built for; a plan may have each of them once along an axis."""
ENTRIES = "nnz"
"""The axis that no one draws: it follows from a pattern."""
ROWS = "M"
"""The axis along which a row-wise problem computes the same again."""
FIRST = 4
"""Trials on small shapes before an interpreter is given long ones."""
SMALL_BYTES = 2 << 20
"""Other workloads above this size are tried only beyond a screening."""
LARGE_BYTES = 16 << 20
"""The values of one trial on more take as long to draw as a dozen hidden shapes."""
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

    @classmethod
    def of_known(
        cls,
        problem: Problem,
        structure: Structure,
        family: Family,
        inputs: Arrays,
        expected: dict[str, Expected] | None,
    ) -> Item:
        """With the right answers, where somebody has found them."""
        item = cls(problem, structure, inputs, family)
        if expected is not None:
            item.__dict__["expected"] = expected
        return item

    @property
    def is_parted(self) -> bool:
        """Whether its answer is judged a part at a time."""
        return is_parted(self.problem, self.structure.axes)

    def part(self, rows: Rows) -> Item:
        """The same inputs as these rows of it see them."""
        inputs = rows.take(self.problem, self.inputs)
        return Item(self.problem, rows.structure, inputs, self.family)

    def among(self, numbers: np.ndarray | None) -> Item:
        """The part that these rows are, by their numbers; None: the whole."""
        return self if numbers is None else self.part(take_rows(self.structure, numbers))

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
    tried: Tried = field(default_factory=Tried)
    """The hidden sizes of all evaluations so far."""
    asked: AskedSizes | None = None
    """Where several workloads are asked for: what lies between them."""


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
    shapes: Mapping[Depth, int] = SHAPES,
    bulk: Mapping[Depth, int] = BULK_SHAPES,
) -> list[Trial]:
    """The trials of one evaluation, in the order they are run: small and sharp ones first.

    Args:
        drawn: the hidden shapes to take them from.
        shapes: how many of them.
        bulk: how many more in which two axes are long at once.
    """
    families = list(stage.problem.families)
    sharp: list[Family] = [f for f in SHARP if f in families]
    special: list[Family] = [f for f in SPECIAL if f in families]
    drawn = drawn or hidden_shapes(stage, rng)
    between = stage.asked.draw(stage.problem, protocol, rng) if stage.asked else []
    asked = [Trial(*shape, _draw_family([*sharp, *families], rng)) for shape in between]
    if protocol.is_quick:
        count = shapes[Depth.SCREEN]
        quick = _screening(stage, sharp or families, special or families, drawn, count, rng)
        return [*quick, *asked, *on_long_rows(stage, quick, rng)]
    trials = [*_on_others(stage, sharp, rng), *asked]
    usual, seen = itertools.cycle(families), _Seen()
    for name, structure in itertools.islice(drawn, shapes[protocol]):
        family = seen.choose_sharp(structure, sharp) or next(usual)
        trials.append(Trial(name, structure, family))
    trials += on_long_rows(stage, trials, rng)
    trials += _bulky(stage, sharp or families, bulk.get(protocol, 0), rng)
    on_target = [*special, *sharp]
    while len(on_target) < ON_TARGET[protocol] or len(trials) + len(on_target) < LEAST_TRIALS:
        on_target.append(_draw_family(families, rng))
    trials += [Trial(stage.target_name, stage.target, family) for family in on_target]
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

    trials = plan(stage, protocol, rng, list_short(), FEW_BUILT, NO_BULK)
    return [*trials[:FIRST], *long.values(), *trials[FIRST:]]


def _on_others(stage: Stage, sharp: list[Family], rng: np.random.Generator) -> Iterator[Trial]:
    """The other workloads on sharp values, then on any; a large one has a turn of the sharp."""
    turns = itertools.cycle(rng.permutation(np.array(sharp[:2], object)))
    for name, structure in stage.others:
        is_small = not sharp or _bytes(stage.problem, structure) <= LARGE_BYTES
        for family in sharp[:2] if is_small else [next(turns)]:
            yield Trial(name, structure, family)
    for name, structure in stage.others:
        yield Trial(name, structure, _draw_family(list(stage.problem.families), rng))


class _Seen:
    """What shapes were tried on values that hide nothing.

    What is wrong on long axes only has few calls to be seen in: none is on values that hide it, and
    each axis has had one family of those as often as another, but for the probe, of which little is
    not zero: half as often. Of the shapes that are long in their entries alone, which are many,
    some are on any. What lies FAR along an axis, at the edge of a tile mostly, is never on a probe,
    nor on any. What has a usual length is on any once in four. A remainder has been tried once a
    shape that is short in all axes, and very short in none, had it on such values. Every other of
    the middling ones is on them. Of the others most are on them that bring a remainder which was
    not tried yet.
    """

    def __init__(self) -> None:
        self._long: Counter[tuple[str, Family]] = Counter()
        self._entries = 0
        self._remainders: set[tuple[str, int]] = set()
        self._middling = self._far = self._few = 0
        self._turns = {True: 0, False: 0}

    def choose_sharp(self, structure: Structure, sharp: list[Family]) -> Family | None:
        """The family for this shape; None where it may be any."""
        axes = _list_long_axes(structure)
        if axes and sharp:
            if axes == {ENTRIES} and structure.axes[ENTRIES] < 1 << 16:
                self._entries += 1
                if self._entries % ON_ANY == 0:
                    return None
            family = min(sharp, key=lambda f: sum(self._long[axis, f] for axis in axes))
            for axis in axes:
                self._long[axis, family] += 1 if family in SHOWING else 2
            return family
        showing = [family for family in sharp if family in SHOWING]
        drawn = {
            name: length
            for name, length in structure.axes.items()
            if name != ENTRIES and name not in structure.follows
        }
        remainders = {(name, length % RESIDUES) for name, length in drawn.items()}
        if showing and max(drawn.values()) >= FAR:
            self._far += 1
            return showing[self._far % len(showing)]
        if showing and KNOWN.intersection(drawn.values()):
            self._few += 1
            turn = self._few + self._few // ON_ANY
            return showing[turn % len(showing)] if self._few % ON_ANY else None
        if structure.is_middling:
            self._middling += 1
            turn, is_any = divmod(self._middling, 2)
            return None if is_any or not showing else showing[turn % len(showing)]
        is_new = bool(sharp) and not remainders <= self._remainders
        if is_new and showing and structure.is_telling:
            self._remainders |= remainders
            return showing[len(self._remainders) % len(showing)]
        if is_new and self._turns[True] <= OFTEN * self._turns[False]:
            self._turns[True] += 1
            return sharp[self._turns[True] % len(sharp)]
        self._turns[False] += 1
        return None


def _screening(
    stage: Stage,
    sharp: list[Family],
    special: list[Family],
    drawn: Iterator[tuple[str, Structure]],
    shapes: int,
    rng: np.random.Generator,
) -> list[Trial]:
    """A wide shape, other hidden ones, the small workloads and the workload itself."""
    small = [o for o in stage.others if _bytes(stage.problem, o[1]) <= SMALL_BYTES]
    # In turn, so that each screening has all of the sharp ones that there is room for.
    turns = itertools.cycle(rng.permutation(np.array(sharp, object)))
    families = list(stage.problem.families)
    trials = [Trial(*next(drawn), next(turns)), Trial(*next(drawn), special[0])]
    trials += [Trial(stage.target_name, stage.target, next(turns))]
    for name, structure in small:
        trials.append(Trial(name, structure, _draw_family([*sharp, *families], rng)))
    trials += [Trial(*shape, next(turns)) for shape in itertools.islice(drawn, shapes - 2)]
    return trials


def on_long_rows(stage: Stage, known: Iterable[Trial], rng: np.random.Generator) -> list[Trial]:
    """Shapes of these trials once more, on values that are not finite: some in each of BANDS along
    each axis, with few rows, if there are any. The first is the one with the most places for them.

    What a kernel makes of a NaN is a matter of how it shares a row out among threads and pieces,
    and it shares out long ones alone. All else that is LONG has values that hide nothing.
    """
    problem = stage.problem
    if Family.NONFINITE not in problem.families:
        return []
    rows = [ROWS] if problem.is_row_wise else []
    each = {trial.name: trial for trial in known}.values()
    few = [t for t in each if all(t.structure.axes[axis] < FAR for axis in rows)]
    chosen: list[Trial] = []
    along = [axis for axis in problem.axes if axis not in rows]
    for axis, (least, most, count) in itertools.product(along, BANDS):
        left = count - sum(least <= trial.structure.axes[axis] < most for trial in chosen)
        fitting = [trial for trial in few if least <= trial.structure.axes[axis] < most]
        fitting.sort(key=lambda trial: -_count_rows(trial.structure, axis))
        others = [fitting[at] for at in 1 + rng.permutation(max(0, len(fitting) - 1))]
        taken = [*fitting[:1], *others][: max(0, left)]
        chosen += [replace(trial, family=Family.NONFINITE) for trial in taken]
    return chosen


def _count_rows(structure: Structure, axis: str) -> int:
    """Beside an axis."""
    others = (axis, ENTRIES, *structure.follows)
    return math.prod(size for name, size in structure.axes.items() if name not in others)


def small_trials(stage: Stage, rng: np.random.Generator) -> list[Trial]:
    """The small workloads, then a few hidden shapes that are not long, each with its own family.

    For checks under which a candidate is many times slower, or that add up to its trials.
    """
    known = [*stage.others, (stage.target_name, stage.target)]
    shapes = [s for s in known if _bytes(stage.problem, s[1]) <= FEW_BYTES]
    drawn = (shape for shape in hidden_shapes(stage, rng) if not _list_long_axes(shape[1]))
    shapes += itertools.islice(drawn, FEW_SHAPES)
    families = list(stage.problem.families)
    return [Trial(name, structure, _draw_family(families, rng)) for name, structure in shapes]


def hidden_shapes(stage: Stage, rng: np.random.Generator) -> Iterator[tuple[str, Structure]]:
    """Endless shapes that exist nowhere but here, each with a name for people.

    What the stage's evaluations have tried before comes last.
    """
    return _name("hidden shape", stage.problem.variations(stage.target, rng, stage.tried))


def _name(kind: str, structures: Iterator[Structure]) -> Iterator[tuple[str, Structure]]:
    for number, structure in enumerate(structures, 1):
        axes = ", ".join(f"{name}={value}" for name, value in structure.axes.items())
        yield f"{kind} {number} ({axes})", structure


def _bulky(
    stage: Stage, sharp: list[Family], count: int, rng: np.random.Generator
) -> Iterator[Trial]:
    """Shapes that are long in two axes at once, on values that hide nothing.

    Each pair of axes has one or two: a probe, which has few values that are not 0, is none of them.
    """
    dense = [family for family in sharp if family is not Family.PROBE] or sharp
    turns = itertools.cycle(rng.permutation(np.array(dense, object)))
    drawn = _name("hidden bulk", stage.problem.bulk(stage.target, rng))
    return (Trial(*shape, next(turns)) for shape in itertools.islice(drawn, count))


def _list_long_axes(structure: Structure) -> frozenset[str]:
    return frozenset(
        axis
        for axis, length in structure.axes.items()
        if length >= LONG and axis not in structure.follows
    )


def _draw_family(families: list[Family], rng: np.random.Generator) -> Family:
    return families[int(rng.integers(len(families)))]


def _bytes(problem: Problem, structure: Structure) -> float:
    return problem.bytes_moved(structure.axes)
