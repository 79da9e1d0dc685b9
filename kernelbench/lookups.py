# SPDX-License-Identifier: Apache-2.0
"""What the problems share that read between the points of a grid.

A place is a float32 product or sum whose floor decides what is read, so that kernels and oracle
must agree in its rounding; its fraction may be made of what was not rounded, by a fused
multiply-add. What that moves, one rounding of the place, is as wrong as its neighbours differ:
each factor of a weight is wrong by u times the place.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from .dense import ROUNDINGS
from .families import noise
from .problem import Pair

NEAR, FEW = 1 / 64, 16


def list_corners(places: np.ndarray) -> Iterator[Pair]:
    """Of each corner of the cells that float32 places lie in: its coordinates, and the factors of
    its weight, one for each axis, float64."""
    cells = np.floor(places)
    fractions = (places - cells).astype(np.float64)
    for step in itertools.product((0, 1), repeat=places.shape[-1]):
        yield cells.astype(np.int64) + step, np.abs(fractions + step - 1)


def weigh(places: np.ndarray, factors: np.ndarray, roundings: int = 1) -> Pair:
    """The product of a corner's factors, and its scale where n is ROUNDINGS.

    Args:
        roundings: that a place takes.
    """
    weight = factors.prod(-1)
    scale = weight.copy()
    for axis in range(places.shape[-1]):
        others = np.delete(factors, axis, -1).prod(-1)
        scale += (np.abs(places[..., axis]) + 1) * (roundings / ROUNDINGS) * others
    return weight, scale


def draw_maps(size: int, levels: int, rng: np.random.Generator) -> np.ndarray:
    """Rows and columns of maps, each of about a quarter of the elements of the one before, and all
    together of `size` in most draws, of fewer in others: int32. Half of them are about square, and
    none is far from it: a place on a long row would be rounded far more."""
    share = 0.25 ** np.arange(levels)
    room = np.maximum(1, (size * share / share.sum() + 1e-9).astype(np.int64))
    room[0] = size - room[1:].sum()
    aspect = np.where(rng.random(levels) < 0.5, 1.0, 2.0 ** rng.uniform(-0.5, 0.5, levels))
    rows = np.clip(np.floor(np.sqrt(room) * aspect), 1, room).astype(np.int64)
    if rng.random() < 0.75:
        for level, most in enumerate(rows):
            whole = np.gcd(np.arange(1, most + 1), room[level]).max()
            rows[level] = whole if 2 * whole > most else most
    return np.stack((rows, room // rows), 1).astype(np.int32)


def list_maps(shapes: Any) -> Iterator[tuple[int, tuple[int, int]]]:
    """Of each level the number of its first element, and its rows and columns."""
    first = 0
    for rows, columns in shapes:
        yield first, (int(rows), int(columns))
        first += int(rows) * int(columns)


def weigh_samples(shapes: np.ndarray, loc: np.ndarray, weight: np.ndarray) -> tuple[Any, Any]:
    """What queries' heads read of maps, as CSR matrices in float64: a row of each query and head,
    a column of each element and head. The second has scales where n is ROUNDINGS, of places that
    are rounded up to three times."""
    from scipy.sparse import csr_array

    queries, heads, _, points, _ = loc.shape
    row, head = np.arange(queries * heads).reshape(queries, heads, 1), np.arange(heads)[:, None]
    found = []
    for level, (first, (rows, columns)) in enumerate(list_maps(shapes)):
        places = loc[:, :, level].astype(np.float64) * (columns, rows) - 0.5
        for at, factors in list_corners(places):
            is_there = ((at >= 0) & (at < (columns, rows))).all(-1)
            element = (first + at[..., 1] * columns + at[..., 0]) * heads + head
            share, law = (weight[:, :, level] * each for each in weigh(places, factors, 3))
            all_rows = np.broadcast_to(row, (queries, heads, points))
            found.append([each[is_there] for each in (share, law, all_rows, element)])
    shares, laws, in_row, in_column = (np.concatenate(each) for each in zip(*found, strict=True))
    size, place = (queries * heads, int(np.prod(shapes, axis=1).sum()) * heads), (in_row, in_column)
    return csr_array((shares, place), size), csr_array((laws, place), size)


def place_near(
    shapes: np.ndarray, shape: tuple[int, int, int, int], rng: np.random.Generator
) -> np.ndarray:
    """Places on maps for queries, heads, levels and points: across and down, float32.

    Most lie some elements around their query's point; one in FEW is anywhere, or outside, and one
    at a corner. None is so near an element that rounding decides between which ones it lies.
    """
    size = shapes[None, None, :, None, ::-1].astype(np.float64)
    centre = rng.random((shape[0], 1, 1, 1, 2))
    place = centre * size - 0.5 + 2.5 * noise((*shape, 2), rng)
    chance = rng.random((*shape, 1))
    place = np.where(chance < 1 / FEW, (rng.random((*shape, 2)) * 1.5 - 0.25) * size, place)
    corner = rng.integers(0, 2, (*shape, 2)) * (size - 1) + 0.4 * noise((*shape, 2), rng)
    place = np.where(chance > 1 - 1 / FEW, corner, place)
    cell = np.floor(place)
    place = cell + np.clip(place - cell, NEAR, 1 - NEAR)
    found: np.ndarray = ((place + 0.5) / size).astype(np.float32)
    return found
