# SPDX-License-Identifier: Apache-2.0
"""Small recorded inputs with their float64 answers: what an exported package tests itself on.

They come from the problem alone: its tiny workload and two of its hidden shapes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from ..kernelbench import registry
from ..kernelbench.precision import Precision
from ..kernelbench.problem import Expected, Family, Problem, Structure
from ..sandbox.definitions.process import open_problem
from ..traces.export import Case

SHAPES = 3
MAX_BYTES = 4 << 20
"""A case is carried in the package; larger shapes are passed over."""

DRAWN = 40
"""Hidden shapes that are looked at, of which most are large where an axis counts blocks."""


def recorded_cases(problem: str, seed: int = 0) -> tuple[Case, ...]:
    """At most SHAPES cases of the problem, the same ones for the same seed."""
    rng = np.random.default_rng(seed)
    with open_problem(registry.get(problem)) as found:
        small = (s for s in _structures(found, rng) if _bytes(found, s) <= MAX_BYTES)
        return tuple(
            _case(found, structure, f"case-{number}", rng)
            for number, structure in enumerate(itertools.islice(small, SHAPES), 1)
        )


def _structures(problem: Problem, rng: np.random.Generator) -> Iterator[Structure]:
    tiny = [workload for workload in problem.workloads if workload.kind == "tiny"]
    yield from map(problem.structure, tiny)
    yield from itertools.islice(problem.variations(tiny_or_default(problem), rng), DRAWN)


def tiny_or_default(problem: Problem) -> Structure:
    """The structure that hidden shapes are varied from."""
    tiny = next((w for w in problem.workloads if w.kind == "tiny"), problem.default_workload)
    return problem.structure(tiny)


def _bytes(problem: Problem, structure: Structure) -> int:
    shapes = [tensor.extent(structure.axes) for tensor in problem.tensors]
    # An answer is kept in float64, with its tolerances.
    return sum(16 * int(np.prod(shape)) for shape in shapes)


def _case(problem: Problem, structure: Structure, name: str, rng: np.random.Generator) -> Case:
    values = problem.values(structure, Family.NORMAL, rng)
    expected = problem.oracle(structure, values)
    return Case(
        name=name,
        inputs={**structure.arrays, **values},
        outputs={key: answer.value for key, answer in expected.items()},
        tolerances={key: tolerance(problem.precision_of(key), e) for key, e in expected.items()},
        axes=dict(structure.axes),
    )


def tolerance(precision: Precision, answer: Expected) -> np.ndarray:
    """What an answer may be wrong by: the gate of `Expected`, zero where it must be exact."""
    if answer.is_exact:
        return np.zeros_like(answer.value)
    terms = np.asarray(answer.terms, dtype=np.float64)
    precision = answer.hold(precision)
    limit = precision.limit(np.abs(answer.value), answer.scale, terms)
    limit = limit + precision.underflow * terms
    allowed = np.where(np.isfinite(answer.value), limit, 0.0)
    return np.broadcast_to(allowed, answer.value.shape)
