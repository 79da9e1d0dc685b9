# SPDX-License-Identifier: Apache-2.0
"""The user's own kernel as a family of the space that is searched without a model.

Its knobs are those it declares; where it declares none, the integer constants that have a name are
tried at half and twice their number. Which of these are free is not known here: one that is part of
the meaning gives a wrong candidate, and the referee says so.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from ...kernelbench.languages import language_of
from ...kernelbench.recipe import Constraint, Facts, Knob, Knobs, KnobValue, Recipe
from ...kernelbench.space import space_of_points
from ...sandbox.plan.source_knobs import NamedNumber, named_numbers
from .tunable import Tunable, find_tunable

OWN = "own"
"""The family of the kernel that a campaign began from, and how it came about."""
MOST_GUESSED = 4
"""Constants that are tried otherwise: with three numbers each, 81 points."""
MOST_NUMBER = 1 << 20
"""Larger numbers are no knobs."""


def find_own_knobs(source: str, language: str) -> Knobs:
    """The knobs that the source is, as a point of its recipe's space."""
    tunable = _find_space(source, language)
    return tunable.space.at(tunable.now) if tunable and tunable.now is not None else {}


def recipe_of_source(source: str, language: str, problem: str) -> Recipe:
    """The kernel as a recipe, whose default is the kernel as it stands."""
    tunable = _find_space(source, language)
    if tunable is None:
        return Recipe(problem, OWN, language, "your own kernel", (), lambda _: source)
    found = tunable

    def is_point(knobs: Knobs, _: Facts) -> bool:
        return found.space.find(knobs) is not None

    return Recipe(
        problem=problem,
        family=OWN,
        language=language,
        summary="your own kernel with other numbers",
        knobs=found.space.knobs,
        render=found.write,
        constraints=(Constraint("it is a point of the kernel's own space", is_point),),
        default=found.space.at(found.now or 0),
    )


def _find_space(source: str, language: str) -> Tunable | None:
    return find_tunable(source, language) or _guess(source, language)


def _guess(source: str, language: str) -> Tunable | None:
    """The space of its named constants at half and twice their numbers."""
    places: dict[str, list[NamedNumber]] = {}
    for each in named_numbers(source, language_of(language)):
        places.setdefault(each.name, []).append(each)
    free = {
        name: int(found[0].text)
        for name, found in places.items()
        if len({each.text for each in found}) == 1
        and not found[0].text.startswith("0")
        and 1 < int(found[0].text) <= MOST_NUMBER
    }
    if not free:
        return None
    now = dict(list(free.items())[:MOST_GUESSED])
    values = {n: sorted({v // 2, v, 2 * v} if v % 2 == 0 else {v, 2 * v}) for n, v in now.items()}
    knobs = [Knob(name, tuple(tried), "a named constant") for name, tried in values.items()]
    points = [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]
    space = space_of_points(knobs, points)

    def write(at: Mapping[str, KnobValue]) -> str:
        text = source
        stands = sorted((each for name in at for each in places[name]), key=lambda e: -e.start)
        for each in stands:
            text = each.replace(text, int(at[each.name]))
        return text

    return Tunable(space, space.find(now), write)
