# SPDX-License-Identifier: Apache-2.0
"""What a Recipe is: a parametrised, hand-written kernel family with named knobs and constraints.

The offline Coder instantiates recipes. A recipe renders source text and nothing else; it knows no
compiler and no clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

KnobValue = int | float | str
Knobs = dict[str, KnobValue]
Facts = Mapping[str, float]
"""What a recipe may ask about the workload and the machine: the axes by name, `avg_row`,
`max_row`, `cv_row` for sparse problems, `cpus`, `vector_bytes`, and what the machine can do at
most: `memory_gbs`, `llc_gbs`, `l2_gbs`, `fma_gflops`."""


@dataclass(frozen=True)
class Knob:
    """One named choice."""

    name: str
    values: tuple[KnobValue, ...]
    """In a natural order: neighbours are small mutations."""
    meaning: str


@dataclass(frozen=True)
class Constraint:
    """Which combinations of knobs make sense, with the reason in words."""

    reason: str
    holds: Callable[[Knobs, Facts], bool]


@dataclass(frozen=True)
class Recipe:
    """A kernel family for one Problem in one language; its family is a niche of the archive."""

    problem: str
    family: str
    """e.g. `row-balanced`, `nnz-balanced`."""
    language: str
    summary: str
    knobs: tuple[Knob, ...]
    render: Callable[[Knobs], str]
    """The whole candidate file for these knobs."""
    constraints: tuple[Constraint, ...] = ()
    default: Knobs | None = None
    """A sensible first try; None: the first value of each knob."""
    model: Callable[[Knobs, Facts], float] | None = None
    """Modelled microseconds of a call, NaN where a fact is not known: which point to try before
    which, until something was measured. None: there is no model."""

    def is_legal(self, knobs: Knobs, facts: Facts) -> bool:
        """Whether the combination is in the space."""
        return all(constraint.holds(knobs, facts) for constraint in self.constraints)

    def space(self, facts: Facts) -> Iterator[Knobs]:
        """Every legal combination, in the order of the knobs."""
        names = [knob.name for knob in self.knobs]
        for values in itertools.product(*(knob.values for knob in self.knobs)):
            knobs = dict(zip(names, values, strict=True))
            if self.is_legal(knobs, facts):
                yield knobs

    def size(self, facts: Facts) -> int:
        """How many combinations are legal."""
        return sum(1 for _ in self.space(facts))

    def first_knobs(self) -> Knobs:
        """The combination to try first."""
        return dict(self.default) if self.default else {k.name: k.values[0] for k in self.knobs}
