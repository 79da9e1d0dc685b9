# SPDX-License-Identifier: Apache-2.0
"""How a space of knobs is searched: one interface to ask for points and to tell what they showed.

A strategy knows numbers of points, values (lower is better) and failures. It knows no source, no
compiler and no clock: the same seed and the same answers give the same questions, so that a
campaign can be resumed and a recorded space replayed. No point is asked for twice.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ...errors import UsageError
from ...kernelbench.space import Space
from .expected_gain import ModelGuided
from .kernel_tuner import PREFIX, KernelTuner
from .told import Told

POPULATION = 20
"""Of the genetic strategy."""
PICKED = 4
"""Of which it takes the best one as a parent (a tournament)."""
MUTATIONS = 1.5
"""Knobs of a child that are moved, on the average."""
TRIES = 50


class Strategy(Protocol):
    """A search."""

    def ask(self, count: int = 1) -> list[int]:
        """Points to evaluate next; fewer, or none, where nothing is left that is worth it."""

    def tell(self, told: Iterable[Told]) -> None:
        """Takes up what evaluations showed, of points that it asked for or of others."""

    def close(self) -> None:
        """Ends it."""


class InOrder:
    """Points in a fixed order: all of them, or all of them shuffled."""

    def __init__(self, order: Sequence[int], first: Sequence[int] = ()) -> None:
        self._left = list(dict.fromkeys((*first, *order)))[::-1]
        self._told: set[int] = set()

    def ask(self, count: int = 1) -> list[int]:
        """See Strategy."""
        found: list[int] = []
        while self._left and len(found) < count:
            if (point := self._left.pop()) not in self._told:
                found.append(point)
        return found

    def tell(self, told: Iterable[Told]) -> None:
        """See Strategy."""
        self._told.update(each.point for each in told)

    def close(self) -> None:
        """See Strategy."""


class Genetic:
    """Tournaments, uniform crossover and few mutations, within the space."""

    def __init__(self, space: Space, seed: int, first: Sequence[int] = ()) -> None:
        self._space, self._rng = space, random.Random(seed)
        self._waiting = list(dict.fromkeys(first))
        self._asked: set[int] = set()
        self._living: dict[int, float] = {}

    def ask(self, count: int = 1) -> list[int]:
        """See Strategy."""
        found: list[int] = []
        while len(found) < count and len(self._asked) < len(self._space):
            point = self._waiting.pop(0) if self._waiting else self._next()
            if point not in self._asked:
                self._asked.add(point)
                found.append(point)
        return found

    def tell(self, told: Iterable[Told]) -> None:
        """See Strategy."""
        for each in told:
            self._asked.add(each.point)
            if each.value is not None:
                self._living[each.point] = each.value
        best = sorted(self._living, key=lambda point: (self._living[point], point))[:POPULATION]
        self._living = {point: self._living[point] for point in best}

    def close(self) -> None:
        """See Strategy."""

    def _next(self) -> int:
        if len(self._asked) >= POPULATION and len(self._living) > 1:
            for _ in range(TRIES):
                child = self._make_child()
                if child is not None and child not in self._asked:
                    return child
        for _ in range(TRIES):
            if (point := self._rng.randrange(len(self._space))) not in self._asked:
                return point
        return self._rng.choice([p for p in range(len(self._space)) if p not in self._asked])

    def _make_child(self) -> int | None:
        mother, father = (self._space.at(self._pick()) for _ in range(2))
        child = {**mother, **{k: v for k, v in father.items() if self._rng.random() < 0.5}}
        for knob in self._space.knobs:
            if self._rng.random() < MUTATIONS / len(self._space.knobs):
                child[knob.name] = self._rng.choice(knob.values)
        return self._space.find(child)

    def _pick(self) -> int:
        living = sorted(self._living)
        return min((self._rng.choice(living) for _ in range(PICKED)), key=lambda p: self._living[p])


def _exhaustive(space: Space, _seed: int, first: Sequence[int]) -> Strategy:
    return InOrder(range(len(space)), first)


def _random(space: Space, seed: int, first: Sequence[int]) -> Strategy:
    return InOrder(random.Random(seed).sample(range(len(space)), len(space)), first)


STRATEGIES: dict[str, Callable[[Space, int, Sequence[int]], Strategy]] = {
    "model": ModelGuided,
    "genetic": Genetic,
    "random": _random,
    "exhaustive": _exhaustive,
}
"""Ours, by name."""


def make_strategy(name: str, space: Space, seed: int, first: Sequence[int] = ()) -> Strategy:
    """A strategy of this name.

    Args:
        first: Points to begin with: defaults, the best of past campaigns.

    Raises:
        UsageError: there is none of this name.
    """
    if name.startswith(PREFIX):
        return KernelTuner(name.removeprefix(PREFIX), space, seed, first)
    if name not in STRATEGIES:
        raise UsageError(
            f"there is no strategy '{name}'",
            hint=f"choose one of {', '.join(STRATEGIES)}, or one of Kernel Tuner's as "
            f"{PREFIX}genetic_algorithm",
        )
    return STRATEGIES[name](space, seed, first)
