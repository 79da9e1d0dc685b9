# SPDX-License-Identifier: Apache-2.0
"""How axis values follow from tensor shapes. Pure; it writes no code and no file."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .bundle import Bundle


class ExtentTerm(NamedTuple):
    """One extent of a shape: a sum of axes and a constant."""

    axes: tuple[str, ...]
    """As often as they count: 32*H has thirty-two."""
    constant: int


@dataclass(frozen=True)
class Derivation:
    """axis = (tensor.shape[dimension] − constant − other axes) // times."""

    axis: str
    tensor: str
    dimension: int
    constant: int
    others: tuple[str, ...] = ()
    times: int = 1


@dataclass(frozen=True)
class AxisPlan:
    """Which axes the shapes give, in an order that works, and which the caller must name."""

    derived: tuple[Derivation, ...]
    keywords: tuple[str, ...]


def parse_term(term: str) -> ExtentTerm:
    """`M+1` → Term(('M',), 1), and `2*H` → Term(('H', 'H'), 0)."""
    axes: list[str] = []
    constant = 0
    for part in term.split("+"):
        factors = [factor.strip() for factor in part.split("*")]
        times = math.prod(int(factor) for factor in factors if factor.isdigit())
        names = [factor for factor in factors if not factor.isdigit()]
        if names:
            axes += times * ["*".join(names)]
        else:
            constant += times
    return ExtentTerm(tuple(axes), constant)


def axis_values(
    plan: AxisPlan, shapes: Mapping[str, Sequence[int]], given: Mapping[str, int]
) -> dict[str, int]:
    """The value of every axis for concrete shapes; the keywords' values are `given`."""
    values = {axis: given[axis] for axis in plan.keywords}
    for step in plan.derived:
        rest = shapes[step.tensor][step.dimension] - step.constant
        values[step.axis] = (rest - sum(values[axis] for axis in step.others)) // step.times
    return values


def extents(shape: Sequence[str], values: Mapping[str, int]) -> tuple[int, ...]:
    """A shape for concrete axis values."""
    terms = map(parse_term, shape)
    return tuple(sum(values[axis] for axis in term.axes) + term.constant for term in terms)


def plan_axes(bundle: Bundle) -> AxisPlan:
    """Derives every axis that the inputs' shapes determine; the others become keywords."""
    terms = [
        (tensor.name, dimension, parse_term(term))
        for tensor in bundle.inputs
        for dimension, term in enumerate(tensor.shape)
    ]
    known: set[str] = set()
    derived: list[Derivation] = []
    is_progress = True
    while is_progress:
        is_progress = False
        for tensor, dimension, term in terms:
            counts = Counter(axis for axis in term.axes if axis not in known)
            if len(counts) != 1:
                continue
            [(axis, times)] = counts.items()
            others = tuple(a for a in term.axes if a in known)
            derived.append(Derivation(axis, tensor, dimension, term.constant, others, times))
            known.add(axis)
            is_progress = True
    return AxisPlan(tuple(derived), tuple(axis for axis in bundle.axes if axis not in known))
