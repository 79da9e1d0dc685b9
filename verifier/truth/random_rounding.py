# SPDX-License-Identifier: Apache-2.0
"""Is an output that is rounded at random rounded as it must be?

Stochastic rounding (Croci et al., Stochastic rounding: implementation, error analysis and
applications, Royal Society Open Science 9, 2022) gives one of the two neighbours of a number, the
farther one of which as likely as the number is near. So one element says whether it is a neighbour,
and many together whether the probabilities are right and the elements independent. Each statistic
is a sum of terms that are zero in the mean and at most 1; Freedman's inequality (On tail
probabilities for martingales, 1975) bounds it whatever their number. An honest kernel exceeds one
of the bounds in less than one of 10^12 calls.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ...kernelbench.codecs import neighbours
from ...kernelbench.dtypes import DType
from .teller import Finding

NEIGHBOUR, SHARES = "one of two neighbours", "rounded up as often as it must"
INDEPENDENT, REPEATED = "independent of other elements", "the same of the same random bits"
CHECKS = (NEIGHBOUR, SHARES, INDEPENDENT, REPEATED)
RISK = 1e-12
"""Of one call, that an honest kernel is refused."""
MOST_COUNTED, MOST_COMPARED = 1 << 20, 1 << 18
"""Elements whose shares are looked at, and which are held against each other: of large answers rows
that nobody knows."""
EDGES = (
    *(2.0**-power for power in range(14, 3, -2)),
    *np.arange(1, 8) / 8,
    *(1 - 2.0**-power for power in range(4, 15, 2)),
)
"""Between shares of the way to the upper neighbour that are counted together."""
LAGS = (1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 1024)


class _Sample(NamedTuple):
    """Some rows with a stream of bits each."""

    share: np.ndarray
    """Of the way to the upper neighbour; 0 and 1 of what is not rounded or not finite."""
    deviation: np.ndarray
    """1 less the share where the upper neighbour is the answer, else its negative."""

    @property
    def variance(self) -> np.ndarray:
        """Of each deviation."""
        found: np.ndarray = self.share * (1 - self.share)
        return found


def examine(
    got: np.ndarray, value: np.ndarray, streams: np.ndarray, dtype: DType
) -> Iterator[Finding]:
    """What is to be said of an output of `dtype`.

    Args:
        got: what the candidate wrote, [M, …]; value: what is rounded, float64, of its shape.
        streams: [M], rows with equal ones have the same random bits.
    """
    shape = got.shape
    rows = shape[0]
    y, r = (array.reshape(rows, -1) for array in (got.astype(np.float64), value))
    low, high = neighbours(r, dtype)
    # NaN and infinity are another gate's; beyond the largest number infinity is a neighbour.
    wrong = ~np.isnan(y) & ~np.isnan(r) & (y != low) & (y != high)
    first = tuple(int(i) for i in np.unravel_index(int(wrong.argmax()), shape))
    yield Finding(NEIGHBOUR, float(wrong.sum()), 0.0, first)
    _, leaders, belongs = np.unique(streams, return_index=True, return_inverse=True)
    yield _hold_repeated(y, r, leaders[belongs.reshape(-1)], shape)
    is_rounded = np.isfinite(y) & np.isfinite(low) & np.isfinite(high) & (high > low)
    share = np.where(is_rounded, (r - low) / (high - low), 0.0)
    is_up = (y == high) & (share > 0)
    deviation = np.where(share > 0, is_up - share, 0.0)
    leaders = np.sort(leaders)
    many, few = (_draw_rows(leaders, y.shape[1], most) for most in (MOST_COUNTED, MOST_COMPARED))
    yield _hold_shares(_Sample(share[many], deviation[many]), r[many])
    alone = _Sample(share[few], deviation[few])
    yield max(_hold_independent(alone), key=lambda found: found.figure)


def _draw_rows(leaders: np.ndarray, length: int, elements: int) -> np.ndarray:
    """Rows that follow each other, from one that nobody knows on."""
    most = max(2, elements // max(1, length))
    if len(leaders) <= most:
        return leaders
    first = int(np.random.default_rng().integers(len(leaders) - most + 1))
    return leaders[first : first + most]


def _hold_repeated(
    y: np.ndarray, r: np.ndarray, leader: np.ndarray, shape: tuple[int, ...]
) -> Finding:
    """Rows of the same numbers and the same bits are the same."""
    followers = np.flatnonzero(leader != np.arange(len(leader)))
    is_same = np.array([np.array_equal(r[i], r[leader[i]], equal_nan=True) for i in followers])
    followers = followers[is_same] if len(followers) else followers
    apart = [i for i in followers if not np.array_equal(y[i], y[leader[i]], equal_nan=True)]
    if not apart:
        return Finding(REPEATED, 0.0, 0.0)
    place = (int(apart[0]), *[0] * (len(shape) - 1))
    words = f"row {apart[0]} has the bits and the numbers of row {leader[apart[0]]}"
    return Finding(REPEATED, float(len(apart)), 0.0, place, words)


def _hold_shares(sample: _Sample, r: np.ndarray) -> Finding:
    """Numbers whose shares of the way from zero are alike, together, of both signs and of each."""
    is_negative = r < 0
    share = np.where(is_negative, 1 - sample.share, sample.share)
    away = np.where(is_negative, -sample.deviation, sample.deviation)
    alike = np.digitize(share, EDGES)
    groups = len(EDGES) + 1
    found = []
    for chosen, words in ((slice(None), "numbers"), (is_negative, "negative numbers")):
        sums, variances = (
            np.bincount(alike[chosen].reshape(-1), each[chosen].reshape(-1), minlength=groups)
            for each in (away, sample.variance)
        )
        ratio, at = _worst(sums, variances)
        lower = (0.0, *EDGES)[at]
        told = f"{words} from {lower:.4g} of the way: {sums[at]:+.0f} that go away from zero"
        found.append(Finding(SHARES, ratio, 1.0, (), told))
    return max(found, key=lambda one: one.figure)


def _hold_independent(sample: _Sample) -> Iterator[Finding]:
    """Rows, columns, and pairs of elements that are so far apart."""
    deviation, variance = sample.deviation, sample.variance
    yield Finding(INDEPENDENT, 0.0, 1.0)
    for axis, what in ((1, "row"), (0, "column")):
        if deviation.shape[axis] and deviation.shape[1 - axis]:
            ratio, at = _worst(deviation.sum(axis), variance.sum(axis))
            yield Finding(INDEPENDENT, ratio, 1.0, (), f"of those looked at {what} {at}")
    for axis, what in ((1, "elements"), (0, "rows")):
        for lag in (lag for lag in LAGS if lag < deviation.shape[axis]):
            ahead, behind = (
                np.s_[:, :-lag] if axis else np.s_[:-lag],
                np.s_[:, lag:] if axis else np.s_[lag:],
            )
            total = float(np.vdot(deviation[ahead], deviation[behind]))
            spread = float(np.vdot(variance[ahead], variance[behind]))
            ratio, _ = _worst(np.array([total]), np.array([spread]))
            yield Finding(INDEPENDENT, ratio, 1.0, (), f"elements that are {lag} {what} apart")


def _worst(sums: np.ndarray, variances: np.ndarray) -> tuple[float, int]:
    """The largest sum over what its variance allows, and which it is."""
    statistics = 4 + len(LAGS) * 2
    surprise = math.log(2 * statistics * len(sums) / RISK)
    allowed = surprise / 3 + np.sqrt((surprise / 3) ** 2 + 2 * surprise * variances)
    ratios = np.abs(sums) / allowed
    at = int(ratios.argmax())
    return float(ratios[at]), at
