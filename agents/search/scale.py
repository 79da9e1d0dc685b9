# SPDX-License-Identifier: Apache-2.0
"""One scale of speed for all candidates of a campaign, joined from the pairs that were timed.

Two sides that took turns on one machine can be compared; figures that are minutes apart cannot,
because the machine has states. So whatever was timed side by side is a pair, with the logarithm of
its ratio and the standard error of that, and the scale is the least-squares solution of all pairs.
It is kept up to date pair by pair (recursive least squares: Plackett 1950, "Some theorems in least
squares"), which gives the same figures as solving all of them at once. Knows ids and figures only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...traces.records import CHAMPION, Measurement, Speedup
from ...verifier.clock.statistics import NORMAL_QUANTILE, wider

BASELINE = ""
"""The fastest library, which every first look is held against: zero of the scale."""
PROCESS_ERROR = 0.03
"""Standard deviation of the ratio's logarithm from one pair of processes of ours to the next,
beyond what the rounds of one show (benchmarks/noise.py)."""
BASELINE_ERROR = 0.06
"""The same beside a library, which has an allocator and threads of its own."""
PRIOR = 8
"""Pairs that the two figures above are worth, beside how far pairs turn out to disagree."""
FIRST_ROOM = 64


class Pair(NamedTuple):
    """Two sides that were timed in turns."""

    one: str
    other: str
    gain: float
    """ln(time of the other / time of the one)."""
    error: float
    """Standard error of the gain."""


class Estimate(NamedTuple):
    """What is known of a logarithm of a ratio."""

    mean: float
    error: float

    @property
    def chance(self) -> float:
        """That it is above zero."""
        if self.error <= 0.0:
            return float(self.mean > 0.0)
        return 0.5 * math.erfc(-self.mean / self.error / math.sqrt(2.0))

    @property
    def gain(self) -> float:
        """What is expected of it where it is above zero, and nothing is lost where it is not."""
        if self.error <= 0.0:
            return max(0.0, self.mean)
        at = self.mean / self.error
        density = math.exp(-0.5 * at * at) / math.sqrt(2.0 * math.pi)
        return self.error * (at * self.chance + density)


class Scale:
    """Where every candidate stands, ln(baseline's time / its own), and how sure that is."""

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        self._index: dict[str, int] = {}
        self._mean = np.zeros(FIRST_ROOM)
        self._cov = np.zeros((FIRST_ROOM, FIRST_ROOM))
        self._surprises, self._corrections = 0.0, 0
        for pair in pairs:
            self.add(pair)

    def __contains__(self, candidate: str) -> bool:
        return candidate in self._index

    def add(self, pair: Pair) -> None:
        """Takes in one more pair."""
        if not self._index:
            self._place(BASELINE if BASELINE in pair[:2] else pair.other)
        one, other = (self._index.get(each) for each in pair[:2])
        if one is None and other is None:
            # Nothing joins the two to the others yet: as good as the baseline, and nobody knows.
            other = self._place(pair.other)
            self._cov[other, other] = 1.0
        if other is None:
            self._join(pair.other, self._index[pair.one], -pair.gain, pair.error)
        elif one is None:
            self._join(pair.one, other, pair.gain, pair.error)
        else:
            self._correct(one, other, pair)

    @property
    def noise(self) -> float:
        """By what factor pairs disagree more, or less, than their errors say (Birge 1932, "The
        calculation of errors by the method of least squares"): all errors are told times it."""
        return math.sqrt((PRIOR + self._surprises) / (PRIOR + self._corrections))

    def speed_of(self, candidate: str) -> Estimate | None:
        """ln(baseline's time / its own); None: it was in no pair."""
        at = self._index.get(candidate)
        if at is None:
            return None
        return Estimate(float(self._mean[at]), self._error(self._cov[at, at]))

    def compare(self, one: str, other: str) -> Estimate | None:
        """ln(time of the other / time of the one); None: one of them was in no pair."""
        a, b = self._index.get(one), self._index.get(other)
        if a is None or b is None:
            return None
        variance = self._cov[a, a] + self._cov[b, b] - 2 * self._cov[a, b]
        return Estimate(float(self._mean[a] - self._mean[b]), self._error(variance))

    def draw(self, candidates: list[str], count: int, rng: np.random.Generator) -> np.ndarray:
        """Speeds of candidates that are on the scale, as they may be: `count` × candidates."""
        at = [self._index[candidate] for candidate in candidates]
        spread = self.noise**2 * self._cov[np.ix_(at, at)]
        return rng.multivariate_normal(self._mean[at], spread, count, method="eigh")

    def _error(self, variance: float) -> float:
        return self.noise * math.sqrt(max(0.0, float(variance)))

    def _place(self, name: str) -> int:
        at = len(self._index)
        if at == len(self._mean):
            self._mean = np.concatenate([self._mean, np.zeros(at)])
            self._cov = np.pad(self._cov, (0, at))
        self._index[name] = at
        return at

    def _join(self, name: str, to: int, gain: float, error: float) -> None:
        """One that was in no pair yet: as sure as the other, less the error of their pair."""
        at = self._place(name)
        self._mean[at] = self._mean[to] + gain
        self._cov[at, :at] = self._cov[:at, at] = self._cov[to, :at]
        self._cov[at, at] = self._cov[to, to] + error**2

    def _correct(self, one: int, other: int, pair: Pair) -> None:
        held = len(self._index)
        apart = self._cov[:held, one] - self._cov[:held, other]
        variance = float(apart[one] - apart[other]) + pair.error**2
        surprise = pair.gain - float(self._mean[one] - self._mean[other])
        self._surprises += surprise**2 / variance
        self._corrections += 1
        self._mean[:held] += apart * (surprise / variance)
        self._cov[:held, :held] -= np.outer(apart, apart) / variance


def pairs_of(candidate: str, beside: str | None, found: Measurement) -> list[Pair]:
    """The pairs that a measurement holds; the champion's is told apart by who it was."""
    pairs = []
    if headline := found.headline:
        pairs.append(_pair(candidate, BASELINE, headline, BASELINE_ERROR))
    rival = found.speedup.get(CHAMPION)
    if rival and beside and beside != candidate:
        pairs.append(_pair(candidate, beside, rival, PROCESS_ERROR))
    return pairs


def _pair(one: str, other: str, ratio: Speedup, process_error: float) -> Pair:
    """Its interval is of the rounds of one process, or of as many processes as there were: few of
    them are no good measure of how much processes differ."""
    blocks = ratio.blocks
    seen = math.log(ratio.high / ratio.low) / 2 / NORMAL_QUANTILE
    seen /= wider(blocks) if blocks > 1 else 1.0
    return Pair(one, other, math.log(ratio.median), math.hypot(seen, process_error / blocks**0.5))
