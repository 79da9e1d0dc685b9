# SPDX-License-Identifier: Apache-2.0
"""Draws float32 arrays from the families of input distributions.

It knows distributions and where a reduction lies in an array; which input of which operator gets
which family is said in `problems/`. Plain families get a random scale 10^U(-2,2) and a random
mean, so that no constant, statistic or habit of one range passes for an answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..errors import UsageError
from .masking import change_some
from .problem import Family, Pair

PROBE_NONZEROS = 3
"""Non-zeros of one reduction on the probe: one product and two sums stay within 4 u."""

LARGE_POWERS = (20, 40)
"""LARGE is normal times a power of two between these: far beyond float16, and the sum of a million
products of two of them is finite."""

LONG, KEPT, ENDS = 1 << 14, 1 << 12, 64
"""Sums of more than LONG terms have about KEPT that are not zero, but for NORMAL: a plain float32
sum of more terms of one sign drifts, which no law of square roots admits. ENDS at either end are
among them, so that a lost last piece is seen."""
LONG_LOGITS = 1 << 13
"""The same of exponentials, all of which have one sign: in every family a plain sum of 12,289 of
them is wrong by up to nine tenths of what the gates allow (`make headroom`)."""
_NEVER_THINNED = (Family.NORMAL, Family.DENORMAL, Family.PROBE)
"""Families whose factors (draw_factors) have no long sums of one sign as they are."""
LAST_OF_PROBE = 16
"""In half of the rows of a probe one of its non-zeros is among so many at the row's end."""

SUNK = -400.0
"""Below a row's maximum; exp(-104) is 0 in float32, and a row's other logits reach some way too."""

PEAKED = 0.5
"""Of the rows that have a peak; the others show what a sum lost."""
PEAKS = (800.0, 1000.0)
"""By how much a peak is lifted: exp(89) overflows float32, exp(710) float64."""
FAR_PEAKS = (7e4, 1e5)
"""Half of them: beyond float16, and so far that a maximum of eight bits is hundreds off. All other
answers of such a row are 0, so that a rounded product of so large a logit spoils none."""
AT_LAST, AT_FIRST = 0.4, 0.6
"""Up to the first share of the peaks are last in their rows, up to the second first, others at any
place."""

SPREAD_ELEMENTS, HELD_ELEMENTS = 1 << 21, 1 << 20
"""Arrays of more elements than the first are made of windows of about as many as the second."""

NOT_FINITE = (np.nan, np.inf, -np.inf)
MOST_BLEMISHES = 8
"""Few, so that most answers stay finite and are compared as ever."""
DENORMAL_SHARE = 64
"""One row in this many is denormal: a multiplication of a denormal takes a hundred times as long on
some processors, and more rows could turn a deadline into a check of them."""


def _random_mean(rng: np.random.Generator) -> float:
    return float(rng.uniform(-1.5, 1.5))


def _draw_normal(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


def _outliers(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    drawn = _draw_normal(shape, rng)
    count = max(1, drawn.size // 100) if drawn.size else 0
    drawn.reshape(-1)[rng.integers(0, max(drawn.size, 1), count)] *= 100.0
    return drawn


def _draw_alternating(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    drawn = rng.random(shape, dtype=np.float32) + np.float32(0.5)
    drawn.reshape(-1)[1::2] *= -1
    return drawn


def _laplace(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    drawn = rng.standard_exponential(shape, dtype=np.float32)
    drawn[rng.integers(0, 2, shape, dtype=np.int8) == 0] *= -1
    return drawn


def _signed_uniform(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    drawn: np.ndarray = 2 * rng.random(shape, dtype=np.float32) - 1
    return drawn


def _lognormal(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    drawn: np.ndarray = np.exp(_draw_normal(shape, rng))
    return drawn


def _exponential(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    return rng.standard_exponential(shape, dtype=np.float32)


_SHAPES: dict[Family, tuple[Callable[[tuple[int, ...], np.random.Generator], np.ndarray], bool]] = {
    Family.NORMAL: (_draw_normal, True),
    Family.UNIFORM: (_signed_uniform, True),
    Family.LAPLACE: (_laplace, True),
    Family.LOGNORMAL: (_lognormal, False),
    Family.EXPONENTIAL: (_exponential, False),
    Family.OUTLIERS: (_outliers, True),
    Family.ALTERNATING: (_draw_alternating, False),
    Family.SORTED: (_draw_normal, True),
}
"""Family → (its unit form, whether a random mean is added)."""


def spread(
    make: Callable[[tuple[int, ...], np.random.Generator], np.ndarray],
    shape: tuple[int, ...],
    rng: np.random.Generator,
) -> np.ndarray:
    """What `make` draws for this shape; of a large one windows, at random, of a smaller draw.

    Random values of a gigabyte take far longer than a call on them. Windows begin at even rows of
    the first axis, drawn anew for each: values come again, and nobody can tell where.
    """
    row = math.prod(shape[1:])
    held = max(2, HELD_ELEMENTS // max(1, row) // 2 * 2)
    if math.prod(shape) <= SPREAD_ELEMENTS or shape[0] <= 2 * held:
        return make(shape, rng)
    values, window = make((held, *shape[1:]), rng), max(2, held // 4 * 2)
    drawn = np.empty(shape, values.dtype)
    for start in range(0, shape[0], window):
        into = drawn[start : start + window]
        first = 2 * int(rng.integers((held - len(into)) // 2 + 1))
        into[...] = values[first : first + len(into)]
    return drawn


def draw(
    family: Family,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    *,
    varies: int | None = None,
    max_decades: float = 2.0,
) -> np.ndarray:
    """A C-contiguous float32 array of one plain family, of EXACT, DENORMAL, LARGE or NONFINITE.

    NONFINITE is drawn as NORMAL: the operator says where its blemishes may be.

    Args:
        varies: for CONSTANT, the axis along which the constant still differs (the one that is not
            reduced); without it an operator's output would be one constant too.
        max_decades: the random scale is 10^U(-max_decades, max_decades).

    Raises:
        UsageError: for PROBE, which only an operator itself can draw.
    """

    def make(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return _draw_whole(family, shape, rng, varies, max_decades)

    return spread(make, shape, rng)


def _draw_whole(
    family: Family,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    varies: int | None,
    max_decades: float,
) -> np.ndarray:
    if family is Family.EXACT:
        return rng.integers(-1, 2, shape, np.int8).astype(np.float32)
    if family is Family.DENORMAL:
        return (rng.integers(1, 1 << 22, shape) * 2.0**-149).astype(np.float32)
    if family is Family.LARGE:
        return _draw_normal(shape, rng) * np.float32(2.0 ** rng.integers(*LARGE_POWERS))
    if family is Family.NONFINITE:
        family = Family.NORMAL
    decades = rng.uniform(-max_decades, max_decades)
    if family is Family.CONSTANT:
        return _constant(shape, rng, varies) * np.float32(2.0 ** np.rint(decades / np.log10(2)))
    scale = np.float32(10.0**decades)
    if family not in _SHAPES:
        raise UsageError(
            f"the family '{family}' has no form of its own",
            hint="the operator must draw it in its `values`",
        )
    unit, has_mean = _SHAPES[family]
    drawn = unit(shape, rng)
    if has_mean:
        drawn += np.float32(_random_mean(rng))
    if family is Family.SORTED:
        drawn = np.sort(drawn, axis=-1)
    return np.ascontiguousarray(drawn * scale, dtype=np.float32)


def _constant(shape: tuple[int, ...], rng: np.random.Generator, varies: int | None) -> np.ndarray:
    kept = [1] * len(shape)
    if varies is not None:
        kept[varies] = shape[varies]
    # Equal addends round alike, so their errors add up and no square-root law holds. Integers of
    # three bits and a power of two keep every honest sum exact up to 300,000 terms.
    values = rng.integers(1, 8, kept).astype(np.float32) * np.float32(rng.choice((-1.0, 1.0)))
    return np.ascontiguousarray(np.broadcast_to(values, shape))


def thin_columns(family: Family, array: np.ndarray, rng: np.random.Generator) -> None:
    """Leaves few columns of a matrix at other values than 0 where its rows are LONG."""
    columns = array.shape[1]
    if family not in _NEVER_THINNED:
        array[:, is_thinned(np.arange(columns), columns, (columns,), rng)] = 0


def is_thinned(
    places: np.ndarray,
    lengths: np.ndarray | int,
    shape: tuple[int, ...],
    rng: np.random.Generator,
    long: int = LONG,
) -> np.ndarray:
    """Which elements do not count: most of a row of more than `long`, none of another.

    Args:
        places: the number of each within its row.
        lengths: of the row that each belongs to.
        shape: that both are broadcast to.
    """
    is_inner = (np.asarray(lengths) > long) & (places >= ENDS) & (places < lengths - ENDS)
    if not is_inner.any():
        return np.broadcast_to(is_inner, shape)
    thinned: np.ndarray = is_inner & (rng.random(shape) > KEPT / np.maximum(lengths, 1))
    return thinned


def sink(
    array: np.ndarray, places: np.ndarray, lengths: np.ndarray | int, rng: np.random.Generator
) -> None:
    """Lowers logits so far that their exponentials vanish, but for few of a row of LONG_LOGITS.

    Args:
        array: logits, that the others are broadcast to.
        places: the number of each within its row.
        lengths: of the row that each belongs to.
    """
    array[is_thinned(places, lengths, array.shape, rng, LONG_LOGITS)] += np.float32(SUNK)


def raise_peaks(logits: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> None:
    """Lifts one logit of many rows far above all others of its row.

    A maximum is no more than a shift: one that leaves out an element is seen where that element is
    so much larger that its exponential overflows. One row, at least, keeps no peak.

    Args:
        logits: one row behind the other along the first axis; each of the second has its own.
        lengths: of the rows.
    """
    live = np.flatnonzero(lengths > 1)
    if not len(live):
        return
    first, last = (np.cumsum(lengths) - lengths)[live], lengths[live] - 1
    shape = (len(live), logits.shape[1])
    is_raised = rng.random(shape) < PEAKED
    is_raised.reshape(-1)[rng.integers(is_raised.size)] = False
    row, column = np.nonzero(is_raised)
    where, place = rng.random(len(row)), rng.integers(0, last[row] + 1)
    place = np.where(where < AT_LAST, last[row], np.where(where < AT_FIRST, 0, place))
    height = np.where(
        rng.random(len(row)) < 0.5,
        rng.uniform(*PEAKS, len(row)),
        rng.uniform(*FAR_PEAKS, len(row)),
    )
    logits[first[row] + place, column] += height.astype(np.float32)


def blemish(
    family: Family,
    array: np.ndarray,
    rng: np.random.Generator,
    kinds: tuple[float, ...] = NOT_FINITE,
    places: np.ndarray | None = None,
) -> None:
    """Puts a few of `kinds` into an array of NONFINITE, each in a row of its own: one out of
    `places`, or any.

    Of two in a row one would show what a kernel makes of it where it loses the other. One row, at
    least, has none, if there are several.
    """
    if family is not Family.NONFINITE or not array.size or (places is not None and not len(places)):
        return
    rows = array.reshape(len(array), -1)
    count = int(np.clip(rows.size // 16, 1, MOST_BLEMISHES))
    at = np.unique(draw_few(len(rows) if places is None else places, rng)[:count])
    columns = draw_places(np.full(len(at), rows.shape[1]), rng)
    rows[at, columns] = rng.choice(np.array(kinds, np.float32), len(at))


def draw_few(rows: np.ndarray | int, rng: np.random.Generator) -> np.ndarray:
    """At most MOST_BLEMISHES of some rows, or of so many, and not all of them where there are two
    or more."""
    count = rows if isinstance(rows, int) else len(rows)
    return rng.choice(rows, min(MOST_BLEMISHES, max(1, count - 1)), replace=False)


def draw_places(lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A place in each of some rows of these lengths, in turn near its end, near its start and twice
    at any place.

    How near is drawn at each scale alike: what a kernel has left behind its last vector, its last
    tile or its last piece may have any length.
    """
    turn = (np.arange(len(lengths)) + rng.integers(4)) % 4
    near = (lengths ** rng.random(len(lengths))).astype(np.int64) - 1
    anywhere = rng.integers(0, lengths)
    return np.select((turn == 0, turn == 1), (lengths - 1 - near, near), anywhere)


def single_out(
    matrix: np.ndarray,
    rng: np.random.Generator,
    change: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> None:
    """Changes one element of each row, at a random place.

    Args:
        change: gives the new values of the old ones and of the numbers of their columns; all are
            columns of one value a row.
    """
    rows, columns = matrix.shape
    place = rng.integers(0, columns, (rows, 1))
    np.put_along_axis(matrix, place, change(np.take_along_axis(matrix, place, 1), place), 1)


def draw_factors(
    family: Family,
    left: tuple[int, int],
    right: tuple[int, int],
    rng: np.random.Generator,
    *,
    varies: tuple[int, int],
    live: np.ndarray | None = None,
) -> Pair:
    """Two dense matrices whose products are summed, along the second axis of the first one.

    PROBE has few non-zeros in each row of the first, DENORMAL denormals in some rows of it.
    NONFINITE has zeros all along some rows of either; `blemish` is told where its own may be. Of
    LARGE some rows are far smaller than others.

    Args:
        left, right: their shapes.
        varies: of each the axis that is not reduced.
        live: the rows of the first that answers are made of; None: all.
    """
    if family is Family.PROBE:
        return probe_rows(left, rng), full_mantissa(right, rng)
    if family is Family.DENORMAL:
        first = draw(Family.NORMAL, left, rng)
        make_denormal(first, denormal_rows(left[0], rng, live), rng)
        return first, below_one(right, rng)
    first = draw(family, left, rng, varies=varies[0])
    second = draw(family, right, rng, varies=varies[1])
    for array, axis in zip((first, second), varies, strict=True):
        change_some(family, np.moveaxis(array, axis, 0), rng)
    return first, second


def denormal_rows(
    count: int, rng: np.random.Generator, live: np.ndarray | None = None
) -> np.ndarray:
    """Which of `count` rows are denormal: a few, and at least one of those that are `live`."""
    chosen = np.zeros(count, bool)
    among = np.arange(count) if live is None else live
    if len(among):
        chosen[among[rng.integers(0, len(among), max(1, len(among) // DENORMAL_SHARE))]] = True
    return chosen


def make_denormal(array: np.ndarray, chosen: np.ndarray, rng: np.random.Generator) -> None:
    """Replaces the chosen rows of an array by denormals."""
    array[chosen] = draw(Family.DENORMAL, array[chosen].shape, rng)


def noise(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Float32 values of the standard normal distribution."""
    return spread(_draw_normal, shape, rng)


def below_one(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Signed factors from [1/2, 1): a denormal times one of them is off by its last place only."""
    return spread(_draw_below_one, shape, rng)


def _draw_below_one(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    drawn = (rng.random(shape, dtype=np.float32) + 1) / 2
    drawn[rng.integers(0, 2, shape, dtype=np.int8) == 0] *= -1
    return drawn


def full_mantissa(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Positive float32 values in [1, 2) whose 24-bit mantissas end in a one."""
    return spread(_draw_mantissas, shape, rng)


def _draw_mantissas(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    bits = rng.integers(0, 1 << 23, shape, dtype=np.uint32) | np.uint32(1)
    values: np.ndarray = (bits | np.uint32(0x3F800000)).view(np.float32)
    return values


def draw_turns(family: Family, shape: tuple[int, ...], rng: np.random.Generator) -> Pair:
    """Cosines and sines of any angles; of EXACT numbers of {-1, 0, 1}, drawn apart, which keep all
    sums exact."""
    if family is Family.EXACT:
        return draw(family, shape, rng), draw(family, shape, rng)
    angles = rng.uniform(-np.pi, np.pi, shape)
    return np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


def probe_segments(
    indptr: np.ndarray, rng: np.random.Generator, nonzeros: int = PROBE_NONZEROS
) -> np.ndarray:
    """Values for a CSR pattern: at most `nonzeros` per row, full mantissas, positive."""
    values = full_mantissa((int(indptr[-1]),), rng)
    lengths = np.diff(indptr)
    row = np.repeat(np.arange(len(lengths)), lengths)
    place = np.arange(len(values)) - indptr[row]
    # A stride and an offset per row scatter the kept ones over the row, not only at its start.
    stride = np.maximum(-(-lengths // nonzeros), 1)[row]
    anywhere = rng.integers(0, 1 << 30, len(lengths))
    at_end = np.maximum(lengths - 1 - rng.integers(0, LAST_OF_PROBE, len(lengths)), 0)
    kept = np.where(rng.random(len(lengths)) < 0.5, at_end, anywhere)[row]
    values[place % stride != kept % stride] = 0
    return values


def probe_rows(
    shape: tuple[int, int], rng: np.random.Generator, nonzeros: int = PROBE_NONZEROS
) -> np.ndarray:
    """A matrix with at most `nonzeros` non-zeros per row, full mantissas, positive."""
    rows, cols = shape
    place = rng.integers(0, cols, (rows, min(nonzeros, cols)))
    at_end = cols - 1 - rng.integers(0, min(LAST_OF_PROBE, cols), rows)
    place[:, 0] = np.where(rng.random(rows) < 0.5, at_end, place[:, 0])
    matrix = np.zeros(shape, np.float32)
    np.put_along_axis(matrix, place, full_mantissa(place.shape, rng), axis=1)
    return matrix
