# SPDX-License-Identifier: Apache-2.0
"""The offline Coder: samples, mutates and crosses over hand-written recipes.

It knows the recipes of one problem and what the Situation tells. Every choice is drawn from the
campaign's seed and the round, so that the same history always gives the same next candidate. It
knows no compiler, no clock and no store.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...errors import UsageError
from ...kernelbench.recipe import Facts, Knob, Knobs, KnobValue, Recipe
from ...traces.records import candidate_id
from ..roles import Proposal, Situation

SAMPLES_PER_FAMILY = 3
"""The default and two random ones: enough to rank families without spending the budget on them."""

TRIES = 24
"""Draws of one operator before the next is tried; duplicates and illegal points use them up."""

ADVISED, MUTATE, CROSS, SAMPLE = "advised", "mutate", "cross over", "sample"
MIX: dict[str, float] = {ADVISED: 0.35, MUTATE: 0.4, CROSS: 0.15, SAMPLE: 0.1}
"""How often each operator is tried first."""


@dataclass(frozen=True)
class Point:
    """One combination of one recipe's knobs, and how it came about."""

    recipe: Recipe
    knobs: Knobs
    operator: str
    parents: tuple[str, ...] = ()
    note: str = ""


class RecipeCoder:
    """A Coder over the recipes of one problem in one language."""

    name = "recipe"

    def __init__(self, recipes: Sequence[Recipe]) -> None:
        if not recipes:
            raise UsageError(
                "the recipe Coder was given no recipes",
                hint="choose a problem and language that have some: kernelwright problems",
            )
        self._recipes = tuple(recipes)
        self._by_family = {recipe.family: recipe for recipe in recipes}
        self._sources: dict[tuple[str, tuple[tuple[str, KnobValue], ...]], tuple[str, str]] = {}

    def propose(self, situation: Situation) -> Proposal | None:
        """The next candidate, or None once every legal point has been proposed."""
        rng = random.Random(f"{situation.seed}:{situation.round}")
        for point in self._ideas(situation, rng):
            if not self._is_legal(point, situation.facts):
                continue
            source, candidate = self._render(point.recipe, point.knobs)
            if candidate in situation.seen:
                continue
            return Proposal(
                source=source,
                language=point.recipe.language,
                family=point.recipe.family,
                knobs=point.knobs,
                operator=point.operator,
                parents=point.parents,
                strategy=point.note,
            )
        return None

    def _ideas(self, situation: Situation, rng: random.Random) -> Iterator[Point]:
        """Points in the order they are to be tried; the last of them are the whole space."""
        families = len(self._recipes)
        if situation.round < families:
            recipe = self._recipes[situation.round]
            yield Point(
                recipe, recipe.first_knobs(), "initial", note=f"the default of {recipe.family}"
            )
        if situation.round < families * SAMPLES_PER_FAMILY or not situation.parents:
            recipe = self._recipes[situation.round % families]
            yield from (_sample_point(recipe, "initial", rng) for _ in range(TRIES))
        else:
            yield from self._evolve_points(situation, rng)
        yield from self._list_all_points(situation.facts, rng)

    def _evolve_points(self, situation: Situation, rng: random.Random) -> Iterator[Point]:
        draw: dict[str, Callable[[Situation, random.Random], Point | None]] = {
            ADVISED: self._follow_advice,
            MUTATE: self._mutate,
            CROSS: self._cross,
            SAMPLE: self._sample,
        }
        for operator in _shuffle_operators(MIX, rng):
            for _ in range(TRIES):
                point = draw[operator](situation, rng)
                if point is None:
                    break
                yield point

    def _follow_advice(self, situation: Situation, rng: random.Random) -> Point | None:
        """Does what the Judge said of a parent: the best one with usable hints comes first."""
        advised = [p for p in situation.parents if p.advice and p.advice.hints]
        if not advised:
            return None
        parent = advised[0] if rng.random() < 0.7 else rng.choice(advised)
        hints = dict(parent.advice.hints) if parent.advice else {}
        said = parent.advice.change if parent.advice else ""
        family = hints.pop("family", None)
        other = self._by_family.get(family) if isinstance(family, str) else None
        choices = _select_usable_hints(hints, self._by_family.get(parent.family))
        if other is not None and (not choices or rng.random() < 0.5):
            knobs = _carried_over(parent.knobs, other, rng)
            return Point(other, knobs, ADVISED, (parent.candidate,), said)
        if not choices:
            return None
        knob = rng.choice(sorted(choices))
        knobs = {**parent.knobs, knob: rng.choice(choices[knob])}
        return Point(self._by_family[parent.family], knobs, ADVISED, (parent.candidate,), said)

    def _mutate(self, situation: Situation, rng: random.Random) -> Point | None:
        """Moves one or two knobs of the first parent to neighbouring values."""
        parent = situation.parents[0]
        recipe = self._by_family.get(parent.family)
        movable = [knob for knob in recipe.knobs if len(knob.values) > 1] if recipe else []
        if recipe is None or not movable:
            return None
        knobs = dict(parent.knobs)
        for knob in rng.sample(movable, min(len(movable), rng.choice((1, 1, 2)))):
            knobs[knob.name] = _neighbour(knob, knobs.get(knob.name), rng)
        return Point(recipe, knobs, MUTATE, (parent.candidate,), _change(parent.knobs, knobs))

    def _cross(self, situation: Situation, rng: random.Random) -> Point | None:
        """Takes every knob from one of two parents of one family."""
        first = situation.parents[0]
        mates = [m for m in situation.parents[1:] if m.family == first.family]
        recipe = self._by_family.get(first.family)
        if not mates or recipe is None:
            return None
        mate = rng.choice(mates)
        knobs = {
            knob.name: rng.choice((first, mate)).knobs.get(knob.name, knob.values[0])
            for knob in recipe.knobs
        }
        note = _change(first.knobs, knobs)
        return Point(recipe, knobs, CROSS, (first.candidate, mate.candidate), note)

    def _sample(self, _situation: Situation, rng: random.Random) -> Point | None:
        return _sample_point(rng.choice(self._recipes), SAMPLE, rng)

    def _list_all_points(self, facts: Facts, rng: random.Random) -> Iterator[Point]:
        """Every legal point, families in turn, so that nothing is missed before giving up."""
        for recipe in rng.sample(self._recipes, len(self._recipes)):
            space = list(recipe.space(facts))
            rng.shuffle(space)
            yield from (Point(recipe, knobs, SAMPLE) for knobs in space)

    def _is_legal(self, point: Point, facts: Facts) -> bool:
        values = {knob.name: knob.values for knob in point.recipe.knobs}
        is_point = point.knobs.keys() == values.keys() and all(
            value in values[name] for name, value in point.knobs.items()
        )
        return is_point and point.recipe.is_legal(point.knobs, facts)

    def _render(self, recipe: Recipe, knobs: Knobs) -> tuple[str, str]:
        key = (recipe.family, tuple(sorted(knobs.items())))
        if key not in self._sources:
            source = recipe.render(dict(knobs))
            self._sources[key] = (source, candidate_id(source))
        return self._sources[key]


def _sample_point(recipe: Recipe, operator: str, rng: random.Random) -> Point:
    return Point(recipe, {knob.name: rng.choice(knob.values) for knob in recipe.knobs}, operator)


def _shuffle_operators(mix: dict[str, float], rng: random.Random) -> list[str]:
    """The operators in a random order, the likely ones likely first."""
    return sorted(mix, key=lambda operator: rng.random() ** (1 / mix[operator]), reverse=True)


def _neighbour(knob: Knob, value: KnobValue | None, rng: random.Random) -> KnobValue:
    if value not in knob.values:
        return rng.choice(knob.values)
    at = knob.values.index(value)
    near = [i for i in (at - 1, at + 1) if 0 <= i < len(knob.values)]
    return knob.values[rng.choice(near)] if near else value


def _select_usable_hints(
    hints: Mapping[str, object], recipe: Recipe | None
) -> dict[str, list[KnobValue]]:
    """The hints that name a knob of the recipe, each with those of its values that exist."""
    if recipe is None:
        return {}
    usable = {
        knob.name: [v for v in knob.values if v in hint]
        for knob in recipe.knobs
        if isinstance(hint := hints.get(knob.name), list | tuple)
    }
    return {name: values for name, values in usable.items() if values}


def _carried_over(knobs: Knobs, recipe: Recipe, rng: random.Random) -> Knobs:
    """The other recipe's default with the knobs both have taken over, and one of them moved.

    The move makes repeated draws differ, so that the advice is not lost once its first answer has
    been seen.
    """
    carried = recipe.first_knobs()
    shared = [k for k in recipe.knobs if knobs.get(k.name) in k.values]
    carried.update({k.name: knobs[k.name] for k in shared if rng.random() < 0.75})
    if rng.random() < 0.5 and recipe.knobs:
        knob = rng.choice(recipe.knobs)
        carried[knob.name] = _neighbour(knob, carried[knob.name], rng)
    return carried


def _change(before: Knobs, after: Knobs) -> str:
    moved = [f"{k} {before.get(k)} → {v}" for k, v in after.items() if before.get(k) != v]
    return ", ".join(moved)
