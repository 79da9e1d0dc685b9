# SPDX-License-Identifier: Apache-2.0
"""What the dense problems share: structures that are axis values only, hidden variations, rows that
are drawn, and blocks of rows and products for an oracle."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ..errors import UsageError
from .families import LONG, PROBE_NONZEROS, draw, probe_rows, thin_columns
from .problem import Axes, Expected, Family, Pair, Structure, Variations, Workload
from .sizes import Range, draw_bulk, draw_sizes, is_middling, is_telling
from .tried import LEAST_SHORT, RESIDUES, Tried

BLOCK_ELEMENTS = 1 << 15
"""Of a block of an oracle: its float64 temporaries fit in a second-level cache."""

ROUNDINGS = 16.0
"""Of each element, for what an honest kernel takes for a few functions and products; as terms."""

KEPT = (RESIDUES, 32, 16, 8)
"""Of a length that is cut, the remainder modulo the first of these that can be kept."""

USUAL_SIZES = {
    "1024x4096": "1024 tokens, 4096 wide",
    "8192x768": "many short rows",
    "4096x1024": "attention scores of 4096 queries over 1024 keys",
    "512x16384": "long rows, as over a vocabulary",
    "4099x33": "short rows with an odd tail",
    "3x16381": "fewer rows than most machines have cores",
    "3x16383": "fewer rows than most machines have cores",
    "1x100003": "one row of prime length",
}
"""Sizes M x N that several problems on rows are timed at, and why: a workload that is named by its
sizes alone has this note."""


def blocks_of_rows(shape: tuple[int, ...]) -> Iterator[slice]:
    """The rows of a matrix, so many at a time as stay in the cache."""
    rows, columns = shape
    block = max(1, BLOCK_ELEMENTS // columns)
    return (slice(start, min(start + block, rows)) for start in range(0, rows, block))


def expect_by_rows(answer: Callable[..., Pair], terms: float, *arrays: np.ndarray) -> Expected:
    """The right answer of a problem on the rows of matrices, worked out some rows at a time.

    Args:
        answer: value and scale, of the same rows of each matrix, which it may change, and of each
            vector as a whole, all in float64.
        terms: of the reduction.
        arrays: matrices of one shape, which is the answer's too, and then vectors.
    """
    shape = arrays[0].shape
    matrices = [array for array in arrays if array.ndim > 1]
    vectors = [array.astype(np.float64) for array in arrays if array.ndim == 1]
    value, scale = np.empty(shape), np.empty(shape)
    for part in blocks_of_rows(shape):
        rows = (matrix[part].astype(np.float64) for matrix in matrices)
        value[part], scale[part] = answer(*rows, *vectors)
    return Expected(value, scale, terms)


def sum_rows(rows: np.ndarray) -> np.ndarray:
    """The sum of each row, as a column."""
    sums: np.ndarray = rows.sum(1, keepdims=True)
    return sums


def sum_products(rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The sum of the products of each row with another one, as a column."""
    sums: np.ndarray = np.einsum("ij,ij->i", rows, others)[:, None]
    return sums


def multiply(left: np.ndarray, right: np.ndarray) -> Pair:
    """The product of two matrices, float64, and that of the magnitudes, summed in float32, whose
    rounding is harmless in a scale."""
    value = left.astype(np.float64) @ right.astype(np.float64)
    return value, (np.abs(left) @ np.abs(right)).astype(np.float64)


def draw_rows(
    family: Family,
    shape: tuple[int, int],
    rng: np.random.Generator,
    nonzeros: int = PROBE_NONZEROS,
) -> np.ndarray:
    """Rows that are summed: of PROBE with few non-zeros each, of CONSTANT with a value of each."""
    if family is Family.PROBE:
        return probe_rows(shape, rng, nonzeros)
    return draw(family, shape, rng, varies=0)


def gains(count: int, rng: np.random.Generator) -> np.ndarray:
    """Signed gains away from zero, float32."""
    drawn = rng.random(count, dtype=np.float32) + np.float32(0.5)
    return np.where(rng.random(count) < 0.25, -drawn, drawn)


def thin_mirrored(family: Family, array: np.ndarray, rng: np.random.Generator) -> None:
    """Thins the columns of LONG rows and gives half of those that are left the opposite of the
    other half: the mean is 0.

    The squares of all that are 0 would else be thousands of equal terms that round alike, and a
    plain float32 sum of them drifts beyond any law of square roots.
    """
    thin_columns(family, array, rng)
    if array.shape[1] <= LONG or family is Family.NORMAL:
        return
    left = rng.permutation(np.flatnonzero(array.any(0)))
    half = len(left) // 2
    array[:, left[half : 2 * half]] = -array[:, left[:half]]
    array[:, left[2 * half :]] = 0


def structure_maker(ranges: Mapping[str, Range]) -> Callable[[Workload], Structure]:
    """The `structure` function of a dense problem whose axes have these ranges."""

    def make(workload: Workload) -> Structure:
        for name, kind in ranges.items():
            if workload.axes.get(name, 0) < 1:
                raise UsageError(
                    f"workload '{workload.name}' gives {workload.axes.get(name)} for axis {name}",
                    hint="every axis needs a value of at least 1",
                )
            if kind.cut(length := workload.axes[name]) != length:
                raise UsageError(
                    f"workload '{workload.name}' gives {length} for axis {name}",
                    hint=f"it is a power of two, as {kind.cut(length)} or {2 * kind.cut(length)}",
                )
        return Structure({name: workload.axes[name] for name in ranges})

    return make


def variations_of(ranges: Mapping[str, Range]) -> Variations:
    """The `variations` of a dense problem whose axes have these ranges."""

    def vary(
        structure: Structure, rng: np.random.Generator, tried: Tried | None = None
    ) -> Iterator[Structure]:
        while all(kind.choices for kind in ranges.values()):
            yield Structure({axis: int(rng.choice(of.choices)) for axis, of in ranges.items()})
        for axes in draw_sizes(ranges, structure.axes, rng, tried=tried):
            yield Structure(
                axes, is_telling=is_telling(ranges, axes), is_middling=is_middling(ranges, axes)
            )

    return vary


def cut_to(
    most: float, count: Callable[[Axes], float], ranges: Mapping[str, Range]
) -> Callable[[Structure], Structure]:
    """Makes hidden shapes that have more elements shorter along every axis but the longest, until
    they have no more or are 1 there: at first none shorter than is still telling.

    Args:
        count: the elements of a shape, or whatever else grows with its axes.
    """

    def cut(structure: Structure) -> Structure:
        axes = dict(structure.axes)
        free = sorted((a for a, kind in ranges.items() if not kind.choices), key=lambda a: axes[a])
        for least, axis in itertools.product((LEAST_SHORT, 1), reversed(free[:-1])):
            beyond = count(axes) / most
            if beyond > 1 and axes[axis] > least:
                shorter = shorten(axes[axis], max(least, int(axes[axis] / beyond)))
                axes[axis] = ranges[axis].cut(shorter)
        if axes == structure.axes:
            return structure
        return Structure(
            axes, is_telling=is_telling(ranges, axes), is_middling=is_middling(ranges, axes)
        )

    return cut


def shorten(length: int, most: int) -> int:
    """No longer than `most`, and with the remainder modulo a power of two that it had: of the
    largest that leaves it telling, where there is one."""
    for modulus in KEPT:
        shorter = most - (most - length) % modulus
        if shorter >= LEAST_SHORT:
            return shorter
    return most


def lift_to(
    least: Mapping[str, int], ranges: Mapping[str, Range]
) -> Callable[[Structure], Structure]:
    """Makes hidden shapes as long along each axis as the problem asks for at least."""

    def lift(structure: Structure) -> Structure:
        axes = {axis: max(length, least.get(axis, 1)) for axis, length in structure.axes.items()}
        if axes == structure.axes:
            return structure
        return Structure(
            axes, is_telling=is_telling(ranges, axes), is_middling=is_middling(ranges, axes)
        )

    return lift


def bulk_of(
    ranges: Mapping[str, Range],
    fits: Callable[[Mapping[str, int]], bool],
    lift: Callable[[Structure], Structure],
) -> Callable[[Structure, np.random.Generator], Iterator[Structure]]:
    """The `bulk` of a dense problem whose axes have these ranges.

    Args:
        fits: whether sizes are few enough bytes.
        lift: makes a shape as long as it must be.
    """

    def draw(_structure: Structure, rng: np.random.Generator) -> Iterator[Structure]:
        def fit(sizes: Mapping[str, int]) -> bool:
            return fits(lift(Structure(dict(sizes))).axes)

        return map(lift, map(Structure, draw_bulk(ranges, rng, fit)))

    return draw
