# SPDX-License-Identifier: Apache-2.0
"""Lengths at the edges of tiles: a whole number of them, one more, one less, or a last piece."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

import numpy as np

POWERS, OFFSETS = (7, 8, 9, 10, 11, 12), (1, -1, 0, 2)
"""Around tile edges: a multiple of 2**power, one more, one less, and a last piece of two to eight.
Those of smaller tiles are remainders modulo 64."""
LAST_PIECE = 8
MOST_AT_EDGES = 3 << 12


class Behind(Enum):
    """How many tiles lie before an edge."""

    ONE = "one"
    ANY = "any"
    MANY = "many"
    """So many of the widest tile as have room, if not fewer: it is an edge of all narrower tiles,
    too, and what is wrong behind many whole tiles alone shows there."""
    MIXED = "mixed"
    """Behind the longest MIXED_WHOLE that has room: tiles of other widths end there, too."""


BEHIND = (
    Behind.MANY,
    Behind.MIXED,
    Behind.ANY,
    Behind.MANY,
    Behind.MIXED,
    Behind.MANY,
    Behind.ONE,
)
"""In turn: of any four that follow each other one is behind many tiles, and one behind others. Of
as many turns as there are powers each of these would always have the same one."""
MIXED_WHOLE = (45 << 8, 15 << 8, 15 << 7, 15 << 6, 15 << 5)
"""Each a whole number of tiles of 96, 120, 160, 240 and 480; the longer ones of 320, 192, 384, 640,
256, 768 and 144 too."""


class Edge(NamedTuple):
    """Of a tile."""

    power: int
    offset: int
    behind: Behind = Behind.ANY


def draw_edge(edge: Edge, rng: np.random.Generator, most: int = MOST_AT_EDGES + LAST_PIECE) -> int:
    """A length at an edge.

    Args:
        most: of it, where the first edge of this tile is not beyond that.
    """
    power, behind, offset = edge.power, edge.behind, draw_offset(edge, rng)
    whole = next((whole for whole in MIXED_WHOLE if whole + offset <= most), 0)
    if behind is Behind.MIXED and whole:
        return whole + offset
    if behind in (Behind.MANY, Behind.MIXED) and (most - offset) >> POWERS[-1] > 0:
        power = POWERS[-1]
    drawn = 1 + rng.integers(max(1, (most - offset) >> power), size=3)
    multiple = {Behind.ONE: 1, Behind.ANY: drawn[0]}.get(behind, drawn.max())
    return (int(multiple) << power) + offset


def draw_offset(edge: Edge, rng: np.random.Generator) -> int:
    """How far behind a multiple of its tile a length at an edge lies."""
    return int(rng.integers(edge.offset, LAST_PIECE + 1)) if edge.offset > 1 else edge.offset
