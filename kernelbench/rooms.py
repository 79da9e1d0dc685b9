# SPDX-License-Identifier: Apache-2.0
"""What memory has room for where one entry of a sparse pattern is several elements, as a block.

Patterns are drawn as if an entry were one element of each tensor. Where it is more, hidden shapes
have fewer entries, and fewer rows and columns beside each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from .dense import cut_to, shorten
from .patterns import LONG, widen
from .problem import Axes, Structure, Tensor
from .sizes import HIDDEN_ELEMENTS, Range

ROWS, COLUMNS, ENTRIES = "M", "K", "nnz"
HELD = HIDDEN_ELEMENTS // 5
"""Elements that the entries of a hidden pattern have at most, and as many what is beside them."""
CROWD = (1 << 15) + 512
"""Entries, of which the last ones are beyond what a signed number of 16 bits counts."""
HELD_BY_LANES = 2 * HELD
"""The same of what is beside them where they are no blocks: rows and columns may be several lanes
of a dense axis, as heads."""


class Room:
    """Of a problem with blocks."""

    def __init__(self, tensors: tuple[Tensor, ...], ranges: Mapping[str, Range]) -> None:
        """
        Args:
            ranges: of every axis but the entries.
        """
        self._tensors, self._names = tensors, (*ranges, ENTRIES)
        self._choices = [name for name, kind in ranges.items() if kind.choices]
        self._cut, self._cut_lanes = (
            cut_to(most, lambda axes: self._count({**axes, ENTRIES: 0}), ranges)
            for most in (HELD, HELD_BY_LANES)
        )

    def _count(self, axes: Axes) -> int:
        return sum(math.prod(tensor.extent(axes)) for tensor in self._tensors)

    def _count_each(self, axis: str, sizes: Axes) -> int:
        """Elements of the tensor that grows most with this axis, all others being 1."""
        ones = {name: sizes[name] if name in self._choices else 1 for name in self._names}
        less, more = ({**ones, axis: length} for length in (1, 2))
        return max(math.prod(t.extent(more)) - math.prod(t.extent(less)) for t in self._tensors)

    def entries(self, sizes: Axes) -> int | None:
        """The most beside these sizes; None where an entry is one element of each tensor."""
        each = self._count_each(ENTRIES, sizes)
        return None if each <= 1 else max(2, HELD // each)

    def crowd(self, sizes: Axes) -> int | None:
        """So many entries that 16 bits do not count them, where blocks are small enough for it;
        None: they are not, or patterns have as many anyway."""
        each = self._count_each(ENTRIES, sizes)
        return CROWD if 1 < each <= HIDDEN_ELEMENTS // CROWD else None

    def longest(self, sizes: Axes, length: int) -> int:
        """The longest row: below what patterns make more room for than they have, and no longer
        than there are columns where there is no room for others."""
        if (most := self.entries(sizes)) is None:
            return length
        length = min(length, most, LONG - 1)
        wider = {**sizes, COLUMNS: widen(sizes[COLUMNS], length), ENTRIES: 0}
        return length if self._count(wider) <= 2 * HELD else min(length, sizes[COLUMNS])

    def rows(self, sizes: Axes, count: int) -> int:
        """So many rows, or fewer, that have about an entry each."""
        most = self.entries(sizes)
        return count if most is None else min(count, most)

    def lanes(self, sizes: Axes) -> int:
        """Elements that a column is, as one of each head, where entries are no blocks."""
        return max(1, self._count_each(COLUMNS, sizes)) if self.entries(sizes) is None else 1

    def halvings(self, sizes: Axes) -> int:
        """How often what is as large as BULK is to be halved, where a row is several."""
        return (self._count_each(ROWS, sizes) - 1).bit_length()

    def fit(self, sizes: Axes) -> Axes:
        """The sizes, shorter where what is beside the entries would be too much."""
        if self.entries(sizes) is None:
            return self._cut_lanes(Structure(dict(sizes))).axes
        most = {axis: max(1, HELD // self._count_each(axis, sizes)) for axis in (ROWS, COLUMNS)}
        bounded = {
            axis: shorten(size, most[axis]) if size > most.get(axis, size) else size
            for axis, size in sizes.items()
        }
        return {**bounded, **self._cut(Structure(bounded)).axes}


def room_of(
    tensors: tuple[Tensor, ...], names: tuple[str, ...], ranges: Mapping[str, Range]
) -> Room:
    """Of a problem's tensors and axes."""
    return Room(tensors, {name: ranges[name] for name in names if name != ENTRIES})
