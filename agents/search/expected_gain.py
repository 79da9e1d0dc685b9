# SPDX-License-Identifier: Apache-2.0
"""The strategy `model`: asks for the point from which most is to be gained.

It begins with a few points at random, or rather those that a model of the machine has for fast.
From then on a surrogate says of every other point what is expected of it and how sure that is, and
the next one has the largest expected improvement over the best so far (Jones, Schonlau and Welch,
Efficient Global Optimization, 1998). Slow points are all alike to it, as are those that fail: what
has to be told apart is at the fast end.

What searches of the same space showed before, of another workload or on another machine, it is told
as tasks of their own: one more column of the surrogate, whose weight says how alike they are (a
product of covariances over points and tasks: Bonilla, Chai and Williams, Multi-task Gaussian
Process Prediction, 2007).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr
from threadpoolctl import ThreadpoolController

from ...kernelbench.space import Space
from .distances import columns_of
from .surrogate import Surrogate
from .told import Told

AT_RANDOM = 15
"""Points before the first that is chosen."""
ONE_OF = 4
"""Where a model of the machine says which of so many is fastest, that one is drawn."""
REFIT, REFIT_SHARE = 5, 0.05
"""Weights are learned anew after so many observations, or this share of those that it had."""
SLOW = 0.5
"""Of the observations this share is told apart, the fast one; and whatever is within
LEAST_SPAN of the best."""
LEAST_SPAN = 0.3
MOST_WATCHED = 1 << 13
"""Of a larger space so many points are looked at, other ones each time that weights are learned,
beside those that differ in one knob from ELITES."""
ELITES = 8
SEEDS = 1 << 63
"""Others, negative ones too, are taken modulo this number."""
DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


class ModelGuided:
    """See Strategy."""

    def __init__(
        self,
        space: Space,
        seed: int,
        first: Sequence[int] = (),
        *,
        at_random: int = AT_RANDOM,
        least_gain: float = 0.0,
        before: Sequence[Sequence[Told]] = (),
    ) -> None:
        """Args:
        first: points to begin with.
        at_random: how many follow that chance chooses.
        before: what earlier searches were told, each of another task.
        least_gain: nothing is asked for any more where less is expected of every point, as a
            difference of values: the share of the time, where values are logarithms of it.
        """
        self._space, self._rng = space, np.random.default_rng(seed % SEEDS)
        self._before = before
        columns = columns_of(space)
        self._surrogate = Surrogate(columns.repeat(1 + len(before)) if before else columns)
        self._least_gain = least_gain
        drawn = _draw_promising(space, at_random, self._rng)
        self._begin = list(dict.fromkeys((*first, *drawn)))
        self._is_free = np.ones(len(space), bool)
        self._values: dict[int, float | None] = {}
        self._errors: dict[int, float] = {}
        self._waiting: list[int] = []
        """Asked for, and not told yet: taken for what is expected of them."""
        self._remembered = sum(map(len, before))
        self._learned_at = self._taken = 0
        self._scale = _Scale(0.0, 0.0, 1.0)
        self.gain = math.inf
        """The largest expected improvement when it was asked last."""

    @property
    def has_left(self) -> bool:
        """Whether there are points that were neither asked for nor told."""
        return bool(self._is_free.any())

    @property
    def weights(self) -> np.ndarray:
        """Of each column of the space: how much it counts."""
        return self._surrogate.weights

    def ask(self, count: int = 1) -> list[int]:
        """See Strategy."""
        found: list[int] = []
        # Matrices of a few hundred rows: threads wait for each other longer than they work, and ten
        # times longer where something is built beside.
        with _libraries().limit(limits=1):
            while len(found) < count and self._is_free.any():
                point = self._next()
                if point is None:
                    break
                self.await_points([point])
                found.append(point)
        return found

    def await_points(self, points: Iterable[int]) -> None:
        """These are being tried, and will be told."""
        for point in points:
            self._is_free[point] = False
            self._waiting.append(point)

    def tell(self, told: Iterable[Told]) -> None:
        """See Strategy."""
        for point, value, error in told:
            self._is_free[point] = False
            if point in self._waiting:
                self._waiting.remove(point)
            self._values[point], self._errors[point] = value, error

    def expect_all(self) -> tuple[np.ndarray, np.ndarray]:
        """Points of the space, all of a small one, and what is expected of their values."""
        with _libraries().limit(limits=1):
            self._learn()
            mean, _ = self._surrogate.predict()
        return self._surrogate.watched, mean * self._scale.deviation + self._scale.middle

    def close(self) -> None:
        """See Strategy."""

    def _next(self) -> int | None:
        """A point of those to begin with, or the best of what is free."""
        while self._begin:
            point: int = self._begin.pop(0)
            if self._is_free[point]:
                return point
        if not any(value is not None for value in self._values.values()):
            return int(self._rng.choice(np.flatnonzero(self._is_free)))
        best = self._learn()
        for point in self._waiting:
            self._surrogate.observe(point, self._surrogate.expect(point), 0.0)
        watched = self._surrogate.watched
        mean, spread = self._surrogate.predict()
        if any(self._errors.values()):
            # The best of noisy values was lucky: what is expected of those that were seen counts.
            best = float(mean[np.isin(watched, list(self._values))].min())
        gains = _expected_improvement(best, mean, spread)
        gains[~self._is_free[watched]] = 0.0
        at = int(gains.argmax())
        self.gain = float(gains[at]) * self._scale.deviation
        if not gains[at]:  # everything that is watched was asked for
            return int(self._rng.choice(np.flatnonzero(self._is_free)))
        return int(watched[at]) if self.gain >= self._least_gain else None

    def _learn(self) -> float:
        """Tells the surrogate what is new, or all if it is time to weigh anew: the best value."""
        known, told = len(self._surrogate), len(self._values)
        learned = self._learned_at
        if not learned or told >= learned + max(REFIT, int(REFIT_SHARE * learned)):
            every = self._list_all()
            values = np.array([np.nan if t.value is None else t.value for t in every], float)
            self._scale = _scale_of(values)
            scaled = np.array([self._scale(each.value) for each in every])
            errors = np.array([each.error for each in every]) / self._scale.deviation
            seen = np.array([each.point for each in every], np.intp)
            self._surrogate.learn(seen, scaled, errors, self._watch())
            self._learned_at = told
        else:
            # What was only expected is forgotten; what was told since follows.
            self._surrogate.forget(min(known, self._taken))
            for point in list(self._values)[len(self._surrogate) - self._remembered :]:
                error = self._errors[point] / self._scale.deviation
                self._surrogate.observe(point, self._scale(self._values[point]), error)
        self._taken = self._remembered + told
        return min(self._scale(value) for value in self._values.values())

    def _list_all(self) -> list[Told]:
        """What was told of earlier tasks, by the numbers that their points have, and of this one.

        Each of those is moved so far that points which were tried here as well agree in the median,
        or the best ones where there are none.
        """
        now = [Told(point, value, self._errors[point]) for point, value in self._values.items()]
        right = {each.point: each.value for each in now if each.value is not None}
        found = []
        for task, told in enumerate(self._before, start=1):
            values = {each.point: each.value for each in told if each.value is not None}
            apart = [right[point] - value for point, value in values.items() if point in right]
            if not apart:
                apart = [min(right.values(), default=0.0) - min(values.values(), default=0.0)]
            moved = float(np.median(apart))
            found += [
                Told(
                    task * len(self._space) + point, None if value is None else value + moved, error
                )
                for point, value, error in told
            ]
        return found + now

    def _watch(self) -> np.ndarray:
        count = len(self._space)
        if count <= MOST_WATCHED:
            return np.arange(count)
        right = {point: value for point, value in self._values.items() if value is not None}
        elites = sorted(right, key=lambda point: (right[point], point))[:ELITES]
        near = [self._space.list_neighbours(point) for point in elites]
        seen = np.array(list(self._values), np.intp)
        return np.unique(np.concatenate([self._rng.choice(count, MOST_WATCHED), seen, *near]))


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS that numpy and scipy brought along."""
    return ThreadpoolController()


class _Scale(NamedTuple):
    """How values are told to the surrogate."""

    slow: float
    """This one and all above it are alike, and so is a failure."""
    middle: float
    deviation: float

    def __call__(self, value: float | None) -> float:
        held = self.slow if value is None else min(value, self.slow)
        return (held - self.middle) / self.deviation


def _scale_of(values: np.ndarray) -> _Scale:
    """Of values of which some are NaN."""
    fastest = float(np.nanmin(values))
    slow = max(float(np.nanquantile(values, SLOW)), fastest + LEAST_SPAN)
    held = np.where(np.isnan(values), slow, np.minimum(values, slow))
    return _Scale(slow, float(held.mean()), float(held.std()) or 1.0)


def _draw_promising(space: Space, count: int, rng: np.random.Generator) -> list[int]:
    """Points at random; where times are modelled, of ONE_OF as many the fastest."""
    order = rng.permutation(len(space))
    if space.modelled is not None:
        order = order[: ONE_OF * count]
        order = order[np.sort(space.modelled[order].argsort(kind="stable")[:count])]
    return [int(point) for point in order[:count]]


def _expected_improvement(best: float, mean: np.ndarray, spread: np.ndarray) -> np.ndarray:
    ahead = (best - mean) / spread
    gains: np.ndarray = spread * (ahead * ndtr(ahead) + DENSITY * np.exp(-0.5 * ahead**2))
    return gains
