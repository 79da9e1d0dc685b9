# SPDX-License-Identifier: Apache-2.0
"""How far points of a space lie apart: what a surrogate weighs, one column a way to differ.

Kernels are rugged: what a knob does depends on whether it is another value at all, on how large it
is (block sizes and tiles act by ratios), and on which powers of two divide it (warps, vectors,
cache lines). Each numeric knob has a column for each of these, and the surrogate learns which
count. One more column is what a model of the machine says of a point, where there is one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernelbench.recipe import Knob
from ...kernelbench.space import ABSENT, Space

MOST_HALVINGS = 3
"""Divisible by so many powers of two more than the least divisible value, or by yet more: alike."""
MODELLED_SPAN = 2.0
"""Of the logarithm of modelled times: what is slower than that is all alike."""
FEW = 4
"""A knob with fewer values than this has no column for powers of two: one value is enough."""


@dataclass(frozen=True, eq=False)
class Columns:
    """Coordinates of all points of a space."""

    values: np.ndarray
    """float32, columns x points; those that are measured lie between 0 and 1."""
    is_category: np.ndarray
    """bool, one a column: two values are equal or they are not."""

    def compute_distances(self, one: int | np.ndarray, others: np.ndarray | slice) -> np.ndarray:
        """Distances by column: columns x others, or columns x ones x others."""
        ones, compared = self.values[:, one], self.values[:, others]
        between = compared.reshape(len(compared), *(1,) * (ones.ndim - 1), -1)
        differences: np.ndarray = np.abs(ones[..., None] - between)
        differences[self.is_category] = differences[self.is_category] > 0
        return differences

    def repeat(self, tasks: int) -> Columns:
        """The same points once for each of so many tasks, and a column for which task it is.

        Those of the first task keep their numbers; those of the others follow, in turn.
        """
        count = self.values.shape[1]
        task = np.repeat(np.arange(tasks, dtype=np.float32), count)
        values = np.vstack([np.tile(self.values, tasks), task])
        return Columns(values, np.append(self.is_category, True))


def columns_of(space: Space) -> Columns:
    """The columns of a space; knobs with one value have none."""
    rows: list[np.ndarray] = []
    is_category: list[bool] = []
    for knob, places in zip(space.knobs, space.points.T, strict=True):
        if len(set(places.tolist())) < 2:
            continue
        rows.append(places.astype(np.float32))
        is_category.append(True)
        for measure in _measures(knob):
            rows.append(_scale_places(measure, places))
            is_category.append(False)
    if space.modelled is not None and np.ptp(space.modelled) > 0:
        apart = (space.modelled - space.modelled.min()) / MODELLED_SPAN
        rows.append(np.minimum(apart, 1.0).astype(np.float32))
        is_category.append(False)
    if not rows:
        rows, is_category = [np.zeros(len(space), np.float32)], [True]
    return Columns(np.stack(rows), np.array(is_category))


def _measures(knob: Knob) -> list[np.ndarray]:
    """Of each value of a numeric knob: its size, and how often it can be halved."""
    numbers = [value for value in knob.values if not isinstance(value, str)]
    if len(numbers) < max(3, len(knob.values)):
        return []
    values = np.array(numbers, np.float64)
    found = [np.log2(values) if values.min() > 0 else values.argsort().argsort().astype(float)]
    if len(values) > FEW and values.min() > 0 and all(float(v).is_integer() for v in numbers):
        halvings = np.array([_halvings(int(value)) for value in numbers])
        halvings = np.minimum(halvings - halvings.min(), MOST_HALVINGS)
        if len(set(halvings.tolist())) > 1:
            found.append(halvings / MOST_HALVINGS)
    return found


def _halvings(value: int) -> int:
    return (value & -value).bit_length() - 1


def _scale_places(measure: np.ndarray, places: np.ndarray) -> np.ndarray:
    """By point, from 0 to 1; in the middle where the knob is absent."""
    low, high = float(measure.min()), float(measure.max())
    scaled = (measure - low) / (high - low) if high > low else measure * 0
    return np.where(places == ABSENT, 0.5, scaled[places]).astype(np.float32)
