# SPDX-License-Identifier: Apache-2.0
"""The offline Coder: searches the knobs of hand-written recipes.

All recipes of a problem are one space (`kernelbench/space.py`). Every family's default and a few of
its points at random come first; then the strategy `model` chooses, from all that was tried, the
point from which most is to be gained, and now and then a Judge's advice is followed. Everything is
drawn from the campaign's seed and what the Situation tells, so that the same history always gives
the same next candidate. It knows no compiler, no clock and no store.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...errors import UsageError
from ...kernelbench.recipe import Facts, Knob, Knobs, KnobValue, Recipe
from ...kernelbench.space import FAMILY, Space, space_of_recipes
from ...traces.records import KnobShare, candidate_id
from ..roles import Member, Observed, Proposal, Situation
from ..search.expected_gain import ONE_OF, ModelGuided
from ..search.importance import weigh_knobs
from ..search.told import Told
from ..stop import NothingToGain

SAMPLES_PER_FAMILY = 3
"""The default and two random ones: enough to rank families without spending the budget on them."""

TRIES = 24
"""Draws of advice before the search goes on by itself; duplicates use them up."""

INITIAL, PAST, ADVISED, GUIDED = "initial", "past", "advised", "guided"
LEAST_GAIN = 0.002
"""Of the time: where less is expected of every point that is left, the search ends. A race cannot
tell less apart either (workflows/race.py)."""
LEAST_TOLD = 80
"""Points that were tried before that: of fewer a model is surer than it may be. How far behind the
optimum the best one still is then, stands in docs/results/search-cpu.md."""
ADVISED_SHARE = 0.2
"""Of the candidates that follow the first ones."""


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
                "there is no recipe for this problem in this language, and no model was chosen",
                hint="begin from a kernel of your own: --from FILE (`kernelwright problems NAME "
                "--signature LANGUAGE` writes one to start with), or choose --model openai/NAME",
            )
        self._recipes = tuple(recipes)
        self._by_family = {recipe.family: recipe for recipe in recipes}
        self._sources: dict[tuple[str, tuple[tuple[str, KnobValue], ...]], tuple[str, str]] = {}
        self._spaces: dict[tuple[tuple[str, float], ...], Space] = {}

    def propose(self, situation: Situation) -> Proposal | None:
        """The next candidate, or None once every legal point has been proposed.

        Raises:
            NothingToGain: no point that is left is worth a try.
        """
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

    def weigh_knobs(self, situation: Situation) -> tuple[KnobShare, ...]:
        """See KnowsKnobs."""
        space = self._space(situation.facts)
        told = self._list_told(space, situation.tried)
        return weigh_knobs(space, told, situation.seed)

    def _ideas(self, situation: Situation, rng: random.Random) -> Iterator[Point]:
        """Points in the order they are to be tried; the last of them are the whole space."""
        families, past = len(self._recipes), self._list_past(situation)
        if situation.round < len(past):
            yield past[situation.round]
        turn = max(0, situation.round - len(past))
        recipe = self._recipes[turn % families]
        if turn < families and not situation.seen_before:
            note = f"the default of {recipe.family}"
            yield Point(recipe, recipe.first_knobs(), INITIAL, note=note)
        # Whoever knows what was fast does not have to find out which family is.
        if turn < families * (1 if past else SAMPLES_PER_FAMILY) and not situation.seen_before:
            yield from self._draw_promising(recipe, situation.facts, rng)
        elif rng.random() < ADVISED_SHARE:
            yield from self._advised_points(situation, rng)
        yield from self._guided_points(situation)

    def _draw_promising(self, recipe: Recipe, facts: Facts, rng: random.Random) -> Iterator[Point]:
        """Points at random; of ONE_OF the one that a model of the machine has for the fastest."""
        drawn = [_sample_point(recipe, rng) for _ in range(TRIES)]
        legal = [point for point in drawn if self._is_legal(point, facts)]
        for start in range(0, len(legal), ONE_OF):
            some = legal[start : start + ONE_OF]
            yield from sorted(some, key=lambda point: _model(point, facts))

    def _list_past(self, situation: Situation) -> list[Point]:
        """What was fast before, where it is legal here."""
        points = [
            Point(self._by_family[family], dict(knobs), PAST, note="fast in an earlier campaign")
            for family, knobs in situation.past
            if family in self._by_family
        ]
        return [point for point in points if self._is_legal(point, situation.facts)]

    def _advised_points(self, situation: Situation, rng: random.Random) -> Iterator[Point]:
        for _ in range(TRIES):
            point = self._follow_advice(situation, rng)
            if point is None:
                return
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

    def _guided_points(self, situation: Situation) -> Iterator[Point]:
        """What the search asks for, given all that was tried; in the end, the whole space."""
        space = self._space(situation.facts)
        told = self._list_told(space, situation.tried)
        least_gain = LEAST_GAIN if len(told) >= LEAST_TOLD else 0.0
        before = [self._list_told(space, seen) for seen in situation.seen_before]
        search = ModelGuided(
            space, situation.seed, at_random=0, least_gain=least_gain, before=before
        )
        search.tell(told)
        points = (space.find({FAMILY: each.family, **each.knobs}) for each in situation.waiting)
        search.await_points(number for number in points if number is not None)
        while asked := search.ask():
            knobs = space.at(asked[0])
            recipe = self._by_family[str(knobs.pop(FAMILY))]
            parent = _find_nearest(recipe, knobs, situation.parents)
            note = _change(parent.knobs, knobs) if parent else f"a point of {recipe.family}"
            parents = (parent.candidate,) if parent else ()
            yield Point(recipe, knobs, GUIDED, parents, note)
        if search.has_left:
            raise NothingToGain

    def _list_told(self, space: Space, seen: Iterable[Observed]) -> list[Told]:
        tried = ((space.find({FAMILY: t.family, **t.knobs}), t) for t in seen)
        return [Told(at, each.value, each.error) for at, each in tried if at is not None]

    def _space(self, facts: Facts) -> Space:
        key = tuple(sorted(facts.items()))
        if key not in self._spaces:
            self._spaces[key] = space_of_recipes(self._recipes, facts)
        return self._spaces[key]

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


def _sample_point(recipe: Recipe, rng: random.Random) -> Point:
    return Point(recipe, {knob.name: rng.choice(knob.values) for knob in recipe.knobs}, INITIAL)


def _model(point: Point, facts: Facts) -> float:
    """Modelled microseconds, infinite where nobody knows."""
    took = point.recipe.model(point.knobs, facts) if point.recipe.model else math.inf
    return math.inf if math.isnan(took) else took


def _find_nearest(recipe: Recipe, knobs: Knobs, parents: Sequence[Member]) -> Member | None:
    """The parent of this family from which the fewest knobs are moved."""
    family = [parent for parent in parents if parent.family == recipe.family]
    return min(
        family,
        key=lambda parent: sum(parent.knobs.get(k) != v for k, v in knobs.items()),
        default=None,
    )


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
