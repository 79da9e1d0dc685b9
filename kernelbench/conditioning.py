# SPDX-License-Identifier: Apache-2.0
"""What an answer's error may be held against where a problem's file does not say: measured.

The error law (problem.Expected) takes the sum of |t_i| of the terms that an answer is made of, and
how many there are. To first order t_i = x_i dy/dx_i. An oracle that gives answers alone is run once
more on inputs that are off by u times a number of Cauchy's distribution each: an answer then moves
by u times such a number times the sum of |t_i|, since that distribution is stable under sums
(Indyk, Stable Distributions, Pseudorandom Generators, Embeddings, and Data Stream Computation, J.
ACM 53, 2006). How many inputs an answer depends on shows where few are changed at a time.

What is lost between inputs and answer, as in exp(x) - 1 near 0, shows in neither: the oracle is run
once in float32, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping

import numpy as np

from .dtypes import FLOAT32
from .problem import Arrays, Expected

Oracle = Callable[[Mapping[str, np.ndarray]], Mapping[str, np.ndarray]]
"""float64 answers by name, of float64 inputs by name."""

DRAWS = 6
"""Of so many moves the second largest is taken: it is below 0.3 of the sum of |t_i| once in 900
times and above 11 of it once in 20; 2.3 of it in the middle."""
FARTHEST = 1e5
"""Of a drawn number: an input stays within 0.6 % of what it was."""
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
    exact = {name: array.astype(np.float64) for name, array in inputs.items()}
    values = _answers(oracle, exact)
    # Of their own: the same inputs have the same scales, whoever asks.
    rng = np.random.default_rng(0)
    moves = {name: _TwoLargest(value.shape) for name, value in values.items()}
    for _ in range(DRAWS):
        for name, value in _answers(oracle, _move(exact, rng, constants)).items():
            value = np.subtract(value, values[name])
            moves[name].add(np.abs(value, out=value))
    return {
        name: Expected(
            value,
            _scale(moves[name].second, np.abs(rounded[name] - value), terms[name]),
            terms[name],
        )
        for name, value in values.items()
    }


@np.errstate(all="ignore")
def count_terms(
    oracle: Oracle, inputs: Arrays, constants: Collection[str] = ()
) -> dict[str, float]:
    """Of how many elements of the inputs an element of each output is made: about, at least 1.

    Args:
        inputs: their shapes count, not what they hold, but for constants.
        constants: inputs that are never moved.
    """
    rng = np.random.default_rng(0)
    # Where logarithms and roots are defined, and nothing is 0.
    drawn = {
        name: array.astype(np.float64) if name in constants else rng.uniform(0.5, 1.5, array.shape)
        for name, array in inputs.items()
    }
    before = _answers(oracle, drawn)
    found: dict[str, float] = {}
    share = 1.0
    largest = sum(array.size for array in inputs.values())
    while len(found) < len(before) and share * largest >= 1 / FEWER:
        changed = {
            name: array
            if name in constants
            else array * (1.0 + 0.01 * rng.random(array.shape) * (rng.random(array.shape) < share))
            for name, array in drawn.items()
        }
        for name, value in _answers(oracle, changed).items():
            stay = float(np.mean(value == before[name])) if value.size else 1.0
            if name not in found and stay >= 0.5:
                # All n stay with a chance of (1 - share)^n; of a single answer no share is known.
                found[name] = max(1.0, -math.log(min(stay, 0.9)) / share if share < 1 else 1.0)
        share /= FEWER
    return {name: found.get(name, float(max(1, largest))) for name in before}


class _TwoLargest:
    """Of arrays that come one by one the second largest of each place; what is not finite is 0."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self._first, self.second = np.zeros(shape), np.zeros(shape)

    def add(self, found: np.ndarray) -> None:
        """Takes one in; it is changed."""
        found[~np.isfinite(found)] = 0.0
        np.maximum(self.second, np.minimum(self._first, found), out=self.second)
        np.maximum(self._first, found, out=self._first)


def _answers(oracle: Oracle, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, np.float64) for name, value in oracle(inputs).items()}


def _move(exact: Arrays, rng: np.random.Generator, constants: Collection[str]) -> Arrays:
    return {
        name: array if name in constants else array * _near_one(array.shape, rng)
        for name, array in exact.items()
    }


def _near_one(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """1 and u times a number of Cauchy's distribution: two normal ones, one over the other, which
    are drawn in float32 since that takes a third of the time."""
    drawn = rng.standard_normal(shape, np.float32)
    drawn /= rng.standard_normal(shape, np.float32)
    np.clip(drawn, -FARTHEST, FARTHEST, out=drawn)
    found = np.multiply(drawn, FLOAT32.roundoff, dtype=np.float64)
    found += 1.0
    return found


def _scale(moved: np.ndarray, lost: np.ndarray, terms: float) -> np.ndarray:
    """The sum of |t_i|; what float32 lost by rows, since one element's loss may be small by chance.

    0 where an answer is not finite: there its place decides.
    """
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
