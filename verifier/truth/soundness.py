# SPDX-License-Identifier: Apache-2.0
"""Whether answers of a problem can be relied on: what is found in seconds, without a baseline.

`problems --check` tells all of it; a campaign on a user's problem begins with it. A finding is a
Check: what failed names the figure and says what to mend.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from operator import itemgetter

import numpy as np

from ...kernelbench.problem import Arrays, Axes, Family, Problem, Structure
from ...kernelbench.rows import take_rows
from ...kernelbench.sizes import LANES
from ...traces.records import Check
from .trials import ENTRIES, make_item

SHAPES = 6
"""Hidden shapes that answers are computed on."""
MOST_ELEMENTS = 1 << 20
"""Of the tensors of such a shape."""
DRAWN, DISTINCT = 40, 10
"""Hidden shapes that are drawn, and how many of them must differ where sizes vary at all."""
MOST_NARROW = 0.5
"""Share of answers to random numbers that float32 holds, of an answer that float64 computed."""
FINER = 2.0**-30
"""Of an input, by so much it is moved to have digits that float32 has not."""
TOLD, LEAST_MET = 120, 0.7
"""Hidden shapes that are looked at for the remainders of each axis, and what share of them they
must have; a whole evaluation draws nearly three times as many."""
BULKY = 2
"""Hidden shapes with two long axes that answers are asked for."""
_ASKED = (Family.NORMAL, Family.UNIFORM)


def tiny_of(problem: Problem) -> Structure:
    """The structure of its tiny workload, else of its usual one."""
    tiny = next((w for w in problem.workloads if w.kind == "tiny"), problem.default_workload)
    return problem.structure(tiny)


def _sizes(problem: Problem, rng: np.random.Generator) -> Iterator[Check]:
    endless = problem.variations(tiny_of(problem), rng)
    drawn = list(itertools.islice(endless, DRAWN))
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
    if distinct > 1:
        more = itertools.islice(endless, TOLD - DRAWN)
        yield from _remainders(problem, [*drawn, *more])


def _remainders(problem: Problem, drawn: list[Structure]) -> Iterator[Check]:
    """Whether lengths of every axis end in all ways, where nothing hides what is left out there."""
    telling = [structure.axes for structure in drawn if structure.is_telling]
    met = {
        axis: len({axes[axis] % LANES for axes in telling}) / min(LANES, kind.most)
        for axis, kind in problem.ranges.items()
        if not kind.choices and not kind.is_power and axis != ENTRIES
    }
    if not met:
        return
    poorest = min(met, key=lambda axis: met[axis])
    yield Check(
        name="hidden sizes tell",
        passed=met[poorest] >= LEAST_MET,
        figure=met[poorest],
        limit=LEAST_MET,
        detail=f"share of the remainders modulo {LANES} that {poorest} has on {len(telling)} short "
        f"shapes of {len(drawn)}: where it is small, short ones are too many bytes; say in "
        "'lengths' how long axes may be, or make one that is a constant a number of the definition",
    )


def _shapes(problem: Problem, rng: np.random.Generator) -> list[Structure]:
    tiny = tiny_of(problem)
    drawn = itertools.islice(problem.variations(tiny, rng), DRAWN)
    small = (s for s in drawn if problem.bytes_moved(s.axes) <= 4 * MOST_ELEMENTS)
    return [tiny, *itertools.islice(small, SHAPES)]


def _longest(problem: Problem, rng: np.random.Generator) -> list[Structure]:
    """Of the hidden shapes that evaluations draw, those that ask most: of each axis the longest,
    the one of the most bytes, and some with two long axes."""
    tiny = tiny_of(problem)
    drawn = list(itertools.islice(problem.variations(tiny, rng), DRAWN))
    asking: list[Callable[[Axes], float]] = [problem.bytes_moved, *map(itemgetter, tiny.axes)]
    chosen = [max(drawn, key=lambda s: count(s.axes)) for count in asking]
    chosen += itertools.islice(problem.bulk(tiny, rng), BULKY)
    return list({tuple(s.axes.items()): s for s in chosen}.values())


def _check_hidden(problem: Problem, rng: np.random.Generator) -> Iterator[Check]:
    """Answers can be had where evaluations will ask for them."""
    longest = _longest(problem, rng)
    # What answers may be wrong by can be had as well, where to measure it takes longest.
    dearest = max(longest, key=lambda s: problem.flops(s.axes))
    for structure in longest:
        inputs = problem.values(structure, Family.NORMAL, rng)
        told = ", ".join(f"{axis}={size}" for axis, size in structure.axes.items())
        lost = _list_infinite(problem.answer(structure, inputs))
        if structure is dearest:
            problem.oracle(structure, inputs)
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


def _list_infinite(values: Arrays) -> list[str]:
    """The names of those that hold what is not finite."""
    return [name for name, value in values.items() if not np.isfinite(value).all()]


def _answers(problem: Problem, rng: np.random.Generator) -> Iterator[Check]:
    """Every family's answers: the same when asked again, finite, and of float64."""
    shapes, count, lost = _shapes(problem, rng), 0, ""
    for structure, family in itertools.product(shapes, problem.families):
        inputs = problem.values(structure, family, rng)
        count += 1
        bad = _list_infinite(problem.answer(structure, inputs))
        if bad and family is not Family.NONFINITE:
            lost = lost or f"{bad[0]} is not finite on {structure.axes}, inputs: {family}"
    yield Check(
        name="answers are finite",
        passed=not lost,
        detail=lost or f"{count} sets of inputs of {len(problem.families)} families",
    )
    item = make_item(problem, shapes[0], Family.NORMAL, rng)
    again = problem.answer(item.structure, item.inputs)
    differ = [
        name
        for name, first in item.expected.items()
        if not np.array_equal(first.value, again[name], equal_nan=True)
    ]
    yield Check(
        name="answers are the same when asked again",
        passed=not differ,
        detail=f"{', '.join(differ)} differ" if differ else "bit for bit",
    )
    # Of inputs that float32 does not hold: what copies or doubles them gives none that it holds.
    fine = {
        name: array
        if name in (*problem.codes, *problem.bound)
        else array.astype(np.float64)
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
    structure = next((s for s in _shapes(problem, rng) if s.axes["M"] > 1), tiny_of(problem))
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


ASPECTS: dict[str, Callable[[Problem, np.random.Generator], Iterator[Check]]] = {
    "sizes": _sizes,
    "answers": _answers,
    "hidden shapes": _check_hidden,
    "rows": _rows,
}
"""What is looked at, in this order. Each may raise UsageError where the user's file fails."""


def find_unsound(problem: Problem) -> Check | None:
    """The first check of any aspect that fails; None: all pass.

    Raises:
        UsageError: the user's file fails, with its line.
    """
    rng = np.random.default_rng(0)
    checks = (check for look in ASPECTS.values() for check in look(problem, rng))
    return next((check for check in checks if not check.passed), None)
