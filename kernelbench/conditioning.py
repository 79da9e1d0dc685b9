# SPDX-License-Identifier: Apache-2.0
"""What an answer's error may be held against where a problem's file does not say: measured.

The error law (problem.Expected) takes the sum of |t_i| of the terms that an answer is made of, and
how many there are. To first order t_i = x_i dy/dx_i. An oracle that gives answers alone is run once
more on inputs that are off by u times a number of Cauchy's distribution each: an answer then moves
by u times such a number times the sum of |t_i| (cauchy.py). How many inputs an answer depends on
shows where few are changed at a time.

What is lost between inputs and answer, as in exp(x) - 1 near 0, shows in neither. The steps of a
PyTorch module are off as its inputs are (shaking.py), and of other oracles it is what they
themselves lose in float32: each is run once in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, MutableMapping
from functools import cache

import numpy as np

from .cauchy import Numbers
from .dtypes import FLOAT32, FLOAT64
from .problem import Arrays, Expected
from .shaking import shaken

Oracle = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
"""float64 answers by name, of float64 inputs by name."""

DRAWS = 8
"""Of so many moves the second largest is taken: it is below 0.3 of the sum of |t_i| once in 20,000
times and above 11 of it once in 13; 3 of it in the middle."""
AT_MOST = 8.0
"""So many times what was measured at a place: what is truly small beside large ones stays so."""
LEAST_AROUND = 64
"""Elements whose losses in float32 are looked at together, at least."""
FEWER = 4
"""Times as few inputs are changed, until half of the answers stay as they are."""


@np.errstate(all="ignore")
def measure_conditions(
    oracle: Oracle,
    inputs: Arrays,
    terms: Mapping[str, float],
    rounded: Mapping[str, np.ndarray],
    constants: Collection[str] = (),
) -> dict[str, Expected]:
    """The answers, with scales that were measured.

    Args:
        oracle: computes in the type of its inputs.
        inputs: float32 arrays by name.
        terms: by output, what `count_terms` gives.
        rounded: what the oracle gives for the inputs as they are, in float32.
        constants: inputs that are never moved: a comparison with 1 would be another one.
    """
    exact, values = _widen(inputs), answer_exactly(oracle, inputs)
    # From the first on: the same inputs have the same scales, whoever asks.
    numbers = Numbers()
    moves = {name: _TwoLargest(value.shape) for name, value in values.items()}
    for draw in range(DRAWS):
        with shaken(draw):
            found = _answers(oracle, _move(exact, numbers, constants))
        for name, value in found.items():
            value = np.subtract(value, values[name])
            moves[name].add(np.abs(value, out=value))
    return {
        name: Expected(
            value,
            _scale(moves[name].scale, value, rounded[name], terms[name]),
            terms[name],
        )
        for name, value in values.items()
    }


@np.errstate(all="ignore")
def answer_exactly(oracle: Oracle, inputs: Arrays) -> Arrays:
    """The answers in float64, without scales."""
    return _answers(oracle, _widen(inputs))


@np.errstate(all="ignore")
def count_terms(
    oracle: Oracle,
    inputs: Arrays,
    constants: Collection[str] = (),
    near: MutableMapping[str, int] | None = None,
) -> dict[str, float]:
    """Of how many elements of the inputs an element of each output is made: about, at least 1.

    Args:
        inputs: their shapes count, not what they hold, but for constants.
        constants: inputs that are never moved.
        near: by output, how often FEWER inputs were changed at last for other shapes of the same
            oracle: there it is looked first, and found in three calls. It is told of these.
    """
    near = {} if near is None else near
    rng = np.random.default_rng(0)
    # Where logarithms and roots are defined, and nothing is 0.
    drawn = {
        name: array.astype(np.float64) if name in constants else rng.uniform(0.5, 1.5, array.shape)
        for name, array in inputs.items()
    }
    before = _answers(oracle, drawn)
    largest = max(1, sum(array.size for array in inputs.values()))
    fewest = int(math.log(FEWER * largest, FEWER))

    @cache
    def stays(times: int) -> dict[str, float]:
        changed = _change(drawn, FEWER**-times, constants, np.random.default_rng(1 + times))
        return {
            name: float(np.mean(value == before[name])) if value.size else 1.0
            for name, value in _answers(oracle, changed).items()
        }

    found: dict[str, float] = {}
    for name in before:
        times = min(near.get(name, 0), fewest)
        while stays(times)[name] < 0.5 and times < fewest:
            times += 1
        while times > 0 and stays(times - 1)[name] >= 0.5:
            times -= 1
        near[name], stay, share = times, stays(times)[name], FEWER**-times
        # All n stay with a chance of (1 - share)^n; of a single answer no share is known.
        counted = -math.log(min(stay, 0.9)) / share if stay >= 0.5 else float(largest)
        found[name] = max(1.0, counted if times else 1.0)
    return found


def _change(
    drawn: Arrays, share: float, constants: Collection[str], rng: np.random.Generator
) -> Arrays:
    """The inputs with this share of their elements changed, by up to a hundredth."""
    changed = {}
    for name, array in drawn.items():
        changed[name] = array
        if name not in constants:
            # What a number is below the share is as random as a second one would be.
            lots = rng.random(array.shape)
            changed[name] = array * np.where(lots < share, 1.0 + lots * (0.01 / share), 1.0)
    return changed


class _TwoLargest:
    """Of arrays that come one by one the two largest of each place; what is not finite is 0."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._first, self._second = np.zeros(shape), np.zeros(shape)

    @property
    def scale(self) -> np.ndarray:
        """About the sum of |t_i|, times u: what was measured at each place; where both neighbours
        have more it is low by chance, and raised to the smaller one, AT_MOST times."""
        own, raised = self._second.reshape(-1), self._second.flatten()
        beside = np.minimum(own[2:], own[:-2])
        np.minimum(beside, AT_MOST * own[1:-1], out=beside)
        np.maximum(raised[1:-1], beside, out=raised[1:-1])
        return raised.reshape(self._second.shape)

    def add(self, found: np.ndarray) -> None:
        """Takes one in; it is changed."""
        is_finite = np.isfinite(found)
        if not is_finite.all():
            found[~is_finite] = 0.0
        np.maximum(self._second, np.minimum(self._first, found), out=self._second)
        np.maximum(self._first, found, out=self._first)


def _widen(inputs: Arrays) -> Arrays:
    return {name: array.astype(np.float64) for name, array in inputs.items()}


def _answers(oracle: Oracle, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, np.float64) for name, value in oracle(inputs).items()}


def _move(exact: Arrays, numbers: Numbers, constants: Collection[str]) -> Arrays:
    moved = {}
    for name, array in exact.items():
        if name in constants:
            moved[name] = array
            continue
        by = array * numbers.take(array.size).reshape(array.shape)
        by += array
        moved[name] = by
    return moved


def _scale(moved: np.ndarray, value: np.ndarray, rounded: np.ndarray, terms: float) -> np.ndarray:
    """The sum of |t_i|; what float32 lost by rows, since one element's loss may be small by chance.
    Where it lost nothing, float64 may have: to either, the gelu of far more than 1 is its argument.

    0 where an answer is not finite: there its place decides.
    """
    lost = np.maximum(np.abs(rounded - value), np.abs(value) * FLOAT64.roundoff)
    lost = np.nan_to_num(lost, nan=0.0, posinf=0.0)
    by_rows = _most_around(lost) / math.sqrt(terms)
    scale: np.ndarray = np.maximum(moved, by_rows) / FLOAT32.roundoff
    return scale


def _most_around(lost: np.ndarray) -> np.ndarray:
    """Of each element the most in its row, and in the rows beside it where these are short: a
    single element may lose nothing, as a gelu where float64 itself gives 0 for what is 1e-16."""
    if lost.ndim < 1 or not lost.size:
        return lost
    rows = lost.reshape(-1, lost.shape[-1]).max(axis=1)
    together = -(-LEAST_AROUND // lost.shape[-1])
    most = np.maximum.reduceat(rows, np.arange(0, len(rows), together))
    return np.repeat(most, together)[: len(rows)].reshape(*lost.shape[:-1], 1)
