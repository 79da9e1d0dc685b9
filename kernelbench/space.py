# SPDX-License-Identifier: Apache-2.0
"""A discrete, constrained space of knobs whose points are numbered.

What searches it speaks of numbers alone. A knob that a point does not have (another family's, or
one that another knob switches off) is ABSENT there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from ..errors import UsageError
from .recipe import Facts, Knob, Knobs, KnobValue, Recipe

ABSENT = -1
FAMILY = "family"
"""The knob that says which of several recipes a point is of."""


@dataclass(frozen=True, eq=False)
class Space:
    """The legal combinations of named knobs."""

    knobs: tuple[Knob, ...]
    points: np.ndarray = field(repr=False)
    """int16, points x knobs: which of a knob's values each has, or ABSENT."""
    modelled: np.ndarray | None = field(default=None, repr=False)
    """float64, one a point: the logarithm of modelled microseconds; None: nobody has a model."""

    def __post_init__(self) -> None:
        if not self.knobs or not len(self.points):
            raise UsageError(
                "a space of knobs without a point",
                hint="no combination of the knobs' values keeps all constraints",
            )

    def __len__(self) -> int:
        return len(self.points)

    def at(self, number: int) -> Knobs:
        """The knobs of a point, without those it does not have."""
        return {
            knob.name: knob.values[place]
            for knob, place in zip(self.knobs, self.points[number].tolist(), strict=True)
            if place != ABSENT
        }

    def find(self, knobs: Mapping[str, KnobValue]) -> int | None:
        """The number of a point, or None where it is not legal."""
        known = {knob.name for knob in self.knobs}
        if not known.issuperset(knobs):
            return None
        try:
            return self._numbers.get(bytes(self._place(knobs)))
        except ValueError:
            return None

    def list_neighbours(self, number: int) -> np.ndarray:
        """Numbers of the points that differ from this one in one knob."""
        differing = np.count_nonzero(self.points != self.points[number], axis=1)
        return np.flatnonzero(differing == 1)

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {row.tobytes(): number for number, row in enumerate(self.points)}

    def _place(self, knobs: Mapping[str, KnobValue]) -> np.ndarray:
        places = [
            knob.values.index(knobs[knob.name]) if knob.name in knobs else ABSENT
            for knob in self.knobs
        ]
        return np.array(places, np.int16)


def space_of_points(knobs: Sequence[Knob], points: Iterable[Mapping[str, KnobValue]]) -> Space:
    """The space that consists of these points.

    Raises:
        UsageError: one has a knob or a value that there is none of, or stands there twice.
    """
    places = {knob.name: {value: at for at, value in enumerate(knob.values)} for knob in knobs}
    rows, seen = [], set()
    for point in points:
        for name, value in point.items():
            if value not in places.get(name, {}):
                raise UsageError(
                    f"the point {dict(point)} has {name} = {value!r}",
                    hint=f"knobs and values are {places_of(knobs)}",
                )
        row = tuple(places[knob.name].get(point.get(knob.name, ""), ABSENT) for knob in knobs)
        if row in seen:
            raise UsageError(f"the point {dict(point)} stands twice in its space")
        seen.add(row)
        rows.append(row)
    return Space(tuple(knobs), np.array(rows, np.int16).reshape(len(rows), len(knobs)))


def places_of(knobs: Sequence[Knob]) -> str:
    """Knobs and their values, for a message."""
    return ", ".join(f"{knob.name} in {list(knob.values)}" for knob in knobs)


def space_of_recipes(recipes: Sequence[Recipe], facts: Facts) -> Space:
    """All legal points of several recipes: the knob FAMILY says which, others are conditional.

    Knobs of one name are one knob: its values are those of all, in the order in which they come.
    """
    values: dict[str, dict[KnobValue, None]] = {}
    meanings: dict[str, str] = {}
    for knob in itertools.chain.from_iterable(recipe.knobs for recipe in recipes):
        values.setdefault(knob.name, {}).update(dict.fromkeys(knob.values))
        meanings.setdefault(knob.name, knob.meaning)
    families = tuple(recipe.family for recipe in recipes)
    knobs = [Knob(FAMILY, families, "the recipe")]
    knobs += [Knob(name, _in_order(found), meanings[name]) for name, found in values.items()]
    points = [(recipe, point) for recipe in recipes for point in recipe.space(facts)]
    space = space_of_points(knobs, ({FAMILY: r.family, **point} for r, point in points))
    took = [math.nan if r.model is None else r.model(point, facts) for r, point in points]
    is_known = all(math.isfinite(us) and us > 0 for us in took)
    return replace(space, modelled=np.log(took)) if is_known else space


def _in_order(values: Iterable[KnobValue]) -> tuple[KnobValue, ...]:
    """Numbers by their size; words as they came."""
    found = tuple(values)
    return found if any(isinstance(value, str) for value in found) else tuple(sorted(found))
