# SPDX-License-Identifier: Apache-2.0
"""What the problems share whose answers are exponentials over their row's sum.

How far an honest float32 kernel may be off: exp(x - max) takes the rounding of its argument,
u |x - max|, and a few units of its own; where the exponential is one to the base 2, as in most
published kernels and in a GPU's own instruction, x log2(e) and its difference to max log2(e) are
rounded too, another u |x| and u |x - max|. The row's sum adds the weighted mean of the same and a
random walk of N roundings (rescaling online adds as much again). So the scale of an element is
value * (2 + (8 + d + E(d) + L/2u) / sqrt(N)) with N terms and d = |x - max| + |x|, E being the
mean weighted by the answer and L what the sum may lose of terms near its last place. Below the
smallest normal float32 a kernel may flush to zero.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .dense import sum_products, sum_rows
from .families import noise, raise_peaks, sink
from .problem import Family, Pair

EXP_ULPS = 8.0
"""Relative error allowed to one exponential, in u: about four units in the last place."""
TINY = 4 * 2.0**-126
"""Answers below the normal range may be flushed; exponentials clamped there end just above it."""
OFFSETS = np.array((100, 150, 200, -120), np.float32)
"""What a row of LARGE logits is shifted by: exp(89) overflows."""
VANISHED = 350.0
"""exp(-350) is 1e-152: below anything that is compared, and its square is a normal float64."""
FARTHEST = 1e4
"""A logit that is further below its row's maximum, -inf too, has the answer 0 and no scale."""


def drift(value: np.ndarray) -> np.ndarray:
    """How much of each term a plain sum may lose, always to the same side.

    A term of less than a few units of the sum's last place is rounded away, or up, like the
    thousands that are as small; these errors add up instead of walking at random.
    """
    lost: np.ndarray = np.minimum(value, 2.0**-24)
    lost *= value < 2.0**-20  # a tenth of the time of np.where
    return lost


def exp_below(distance: np.ndarray) -> np.ndarray:
    """exp(-distance), 0 from VANISHED on: denormals, and exponents that are no number's, take some
    processors twenty times as long."""
    value: np.ndarray = np.exp(-np.minimum(distance, VANISHED))
    value *= distance < VANISHED
    return value


def softmax_scale(
    value: np.ndarray,
    reached: np.ndarray,
    terms: np.ndarray | float,
    of_rows: np.ndarray,
) -> np.ndarray:
    """The scale from the answer, `reach`, N, and what `widen_rows` says."""
    root = np.sqrt(terms)
    scale: np.ndarray = reached + of_rows
    scale /= root
    scale += 2.0
    scale *= value
    scale += TINY * 2.0**23 / root
    return scale


def widen_rows(mean: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """What all of a row may be off by, from the weighted mean of `reach` and the sum of `drift`."""
    widened: np.ndarray = mean + EXP_ULPS + lost * 2.0**23
    return widened


def softmax_of(
    distance: np.ndarray,
    x: np.ndarray,
    terms: np.ndarray | float,
    total: Callable[[np.ndarray], np.ndarray],
    weighted: Callable[[np.ndarray, np.ndarray], np.ndarray],
    widen: Callable[[np.ndarray], np.ndarray] = lambda rows: rows,
) -> Pair:
    """The answer and its scale, float64.

    Args:
        distance: of each logit below its row's maximum, float64; it is written over.
        x: the logits.
        terms: how many a row has.
        total: the sums of rows.
        weighted: the same of the products of two arrays.
        widen: gives each logit what its row has, where that is not broadcast.
    """
    np.minimum(distance, FARTHEST, out=distance)
    value = exp_below(distance)
    value /= widen(total(value))
    reached = reach(distance, x)
    of_rows = widen(widen_rows(weighted(value, reached), total(drift(value))))
    return value, softmax_scale(value, reached, terms, of_rows)


def reach(distance: np.ndarray, x: np.ndarray) -> np.ndarray:
    """|x - max| + |x|, in the first array: what the roundings of an exponent are shares of."""
    size = np.abs(x, dtype=distance.dtype)
    distance += np.minimum(size, FARTHEST, out=size)
    return distance


def softmax_and_log_sum(x: np.ndarray) -> tuple[Pair, Pair]:
    """Of dense rows the softmax, and the logarithm of each one's sum of exponentials as a column,
    both with their scales.

    The logarithm is off by what the sum is off by, relative to it, and by a share of the maximum.
    """
    top, terms = x.max(1, keepdims=True), float(x.shape[1])
    value = exp_below(distance := top - x)
    reached = reach(distance, x)
    value /= (total := sum_rows(value))
    law = terms, widen_rows(sum_products(value, reached), sum_rows(drift(value)))
    found, scale = np.log(total) + top, np.log(total) + np.abs(top)
    scale += softmax_scale(np.ones_like(top), np.zeros_like(top), *law)
    return (value, softmax_scale(value, reached, *law)), (found, scale)


def draw_overflowing(
    shape: tuple[int, ...],
    shift: np.ndarray,
    places: np.ndarray,
    lengths: np.ndarray | int,
    of_rows: np.ndarray,
    rng: np.random.Generator,
    *,
    lanes: int = 1,
) -> np.ndarray:
    """LARGE logits, float32: some overflow exp without the subtraction of the maximum, and in half
    of the rows one overflows it unless the maximum is that one.

    Of a long row most are too low to count: a plain sum of so many exponentials drifts beyond any
    limit that tells a downcast.

    Args:
        shift: of each row, out of OFFSETS, as it is broadcast to the logits.
        places: of each logit, its number in its row; broadcast, too.
        lengths: of each logit's row.
        of_rows: the same, once a row.
        lanes: rows that lie side by side, as those of heads.
    """
    logits = noise(shape, rng)
    logits += shift
    sink(logits, places, lengths, rng)
    raise_peaks(logits.reshape(-1, lanes), of_rows, rng)
    return logits


def add_noise(x: np.ndarray, family: Family, rng: np.random.Generator) -> np.ndarray:
    """Logits with normal noise on top, except where a family is defined by having none.

    Thousands of nearly equal exponentials beside one that dominates round alike, and a plain
    float32 sum of them drifts in proportion to N; no error law in sqrt(N) could then admit it.
    """
    if family in (Family.CONSTANT, Family.DENORMAL, Family.SORTED):
        return x
    x += noise(x.shape, rng)
    return x
