# SPDX-License-Identifier: Apache-2.0
"""What problems of mixtures of experts share: segments of rows, one of each expert."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from .problem import Family, Prepared

SPREAD, EMPTY = 1.0, 0.25
"""Of the logarithm of an expert's share of the rows; and how many experts have none."""
LEADS = (0.25, 16.0)
"""How many times the rows of all others one expert has besides its own. Timed calls have the least:
they all take the same. Others have anything between, and one expert may have nearly all rows."""
AT_END = 0.8
"""How often the last has a row for sure: one of thousands would have any hardly ever, and whoever
leaves it out would be right."""


def draw_segments(family: Family, rows: int, experts: int, rng: np.random.Generator) -> np.ndarray:
    """Where each expert's rows begin, and then their number: int32, of very different lengths, some
    empty. One expert has far more rows than the others."""
    bounds = np.zeros(experts + 1, np.int32)
    bounds[1:] = np.cumsum(rng.multinomial(rows, _draw_shares(family, experts, rng)))
    if rng.random() < AT_END:
        bounds[1:-1] = np.minimum(bounds[1:-1], rows - 1)
    return bounds


def draw_choices(
    family: Family, shape: tuple[int, int], experts: int, rng: np.random.Generator
) -> np.ndarray:
    """The experts of each token, int32, drawn apart: a token may have one twice."""
    chosen: np.ndarray = rng.choice(experts, shape, p=_draw_shares(family, experts, rng))
    if rng.random() < AT_END:
        chosen.flat[rng.integers(chosen.size)] = experts - 1
    return chosen.astype(np.int32)


def _draw_shares(family: Family, experts: int, rng: np.random.Generator) -> np.ndarray:
    """Of all rows, of each expert."""
    share = np.exp(SPREAD * rng.standard_normal(experts)) * (rng.random(experts) >= EMPTY)
    least, most = LEADS
    lead = least if family is Family.NORMAL else least * (most / least) ** rng.random()
    share[rng.integers(experts)] += 1 + lead * share.sum()
    shares: np.ndarray = share / share.sum()
    return shares


def list_segments(bounds: Any) -> Iterator[tuple[int, slice]]:
    """The experts that have rows, and which."""
    each = enumerate(pairwise(bounds.tolist()))
    return ((e, slice(int(a), int(b))) for e, (a, b) in each if a < b)


def call_for_each(bounds: Any, compute: Callable[[int, slice], object]) -> Prepared:
    """Calls it for each expert that has rows, by number, as the bounds are at that time."""

    def call() -> None:
        for expert, rows in list_segments(bounds):
            compute(expert, rows)

    return call
