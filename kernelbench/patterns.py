# SPDX-License-Identifier: Apache-2.0
"""Draws sparse patterns of drawn sizes: mixtures of row lengths that a kernel may be wrong for.

The laws are of the pattern's ordinary rows; one row, and some more where there is room, have the
length that was drawn for the longest. It knows index arrays and no values.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np

from .edges import MIXED_WHOLE, POWERS, Behind, Edge, draw_edge, draw_offset
from .graphs import Pattern
from .sizes import BEYOND_16_BITS
from .tried import RESIDUES, Tried

MOST_ENTRIES = 1 << 17
"""Of a pattern: what is hidden stays small."""
LONGEST_LIGHT = 200
LAST = 0.7
"""Of patterns whose last row came out empty, and not on purpose, so many have an entry there, and
so many have one in their last column: what leaves out either shows in these alone."""
LONG_ROWS = 14
"""The most rows of a pattern that are long."""
LONG, NEARLY_LONG, ROOM = 1000, 13, 7
"""Where the longest row has so many entries there is room for so many others, beside wide factors,
too, where there are up to so many times the entries that fit otherwise."""
ROOM_OF_LANES = 2
"""The same where each entry has as many answers as the factor is wide: those are bytes."""


def _poisson(rows: int, rng: np.random.Generator) -> np.ndarray:
    return rng.poisson(rng.uniform(0.5, 12), rows)


def _remainders(rows: int, rng: np.random.Generator) -> np.ndarray:
    """As many lengths modulo 64 as there are rows, in any order."""
    return rng.permutation((np.arange(rows) + int(rng.integers(RESIDUES))) % (2 * RESIDUES))


def _blocks(rows: int, rng: np.random.Generator) -> np.ndarray:
    """Equal neighbours."""
    sizes = rng.integers(1, 10, rows)
    return np.repeat(rng.integers(0, 40, rows), sizes)[:rows]


def _empty_ends(rows: int, rng: np.random.Generator) -> np.ndarray:
    lengths = rng.poisson(6, rows)
    first, last = np.sort(rng.integers(0, rows + 1, 2))
    lengths[:first], lengths[last:] = 0, 0
    return lengths


def _mostly_empty(rows: int, rng: np.random.Generator) -> np.ndarray:
    return np.where(rng.random(rows) < 0.9, 0, rng.integers(1, 40, rows))


def _equal(rows: int, rng: np.random.Generator) -> np.ndarray:
    return np.full(rows, int(rng.integers(1, 70)))


LAWS: tuple[Callable[[int, np.random.Generator], np.ndarray], ...] = (
    _poisson,
    _remainders,
    _blocks,
    _empty_ends,
    _mostly_empty,
    _equal,
)


def laws(rng: np.random.Generator) -> Iterator[Callable[[int, np.random.Generator], np.ndarray]]:
    """Each in turn, without end."""
    return (LAWS[number] for number in itertools.cycle(rng.permutation(len(LAWS))))


def list_edges(tried: Tried) -> Iterator[Edge]:
    """Where long rows end, beside the longest, without end."""
    return (tried.next_edge("long rows") for _ in itertools.count())


def list_ends(tried: Tried) -> Iterator[Edge | None]:
    """Where the entries of a pattern end: of two in three at an edge, without end."""
    return (tried.next_edge("entries") if one % 3 else None for one in itertools.count())


def widen(cols: int, longest: int) -> int:
    """Enough columns for the longest row, with the remainder that was drawn for them."""
    return cols + -(-max(0, longest - cols) // RESIDUES) * RESIDUES


def draw_pattern(
    rows: int,
    cols: int,
    longest: int,
    law: Callable[[int, np.random.Generator], np.ndarray],
    rng: np.random.Generator,
    entries: int = MOST_ENTRIES,
    room: int = ROOM,
    edges: Iterator[Edge] | None = None,
    end: Edge | None = None,
) -> Pattern:
    """A pattern of these sizes, in whose rows no column stands twice; never without an entry.

    Args:
        longest: of a row that is there; columns are added, 64 at a time, where it has more entries.
        entries: the most of all rows together.
        room: so many times as many, where there are long rows.
        edges: where other long rows end; at random without.
        end: where all entries together end, where there are enough; anywhere without.
    """
    edges = edges or list_edges(Tried(int(rng.integers(1 << 63))))
    cols = widen(cols, longest)
    lengths = law(rows, rng).clip(0, min(cols, max(longest, 2)))
    left = entries - longest
    _keep_within(lengths, left, rng)
    left -= int(lengths.sum())
    if longest >= LONG:
        # Beside a wide factor, too, there are some that are nearly as long as the longest.
        most = min(MOST_ENTRIES, room * entries)
        left = max(left, min(most, (1 + NEARLY_LONG) * longest) - longest)
    is_short = np.ones(rows, bool)
    for place, length in _long_rows(rows, cols, longest, left, rng, edges):
        lengths[place], is_short[place] = length, False
    if end:
        # Those that were made long come last, and the longest stays.
        is_short[lengths.argmax()] = False
        others = np.flatnonzero(~is_short & (np.arange(rows) != lengths.argmax()))
        order = [*rng.permutation(np.flatnonzero(is_short)), *rng.permutation(others)]
        _end_at(end, lengths, np.array(order, np.intp), rng)
    if not lengths[-1] and law is not _empty_ends and rng.random() < LAST:
        other = int(rng.choice(np.flatnonzero(lengths)))
        lengths[-1], lengths[other] = lengths[other], 0
    found = _fill_up(lengths, cols, rng, has_copies=law is _blocks)
    if law is not _blocks and rng.random() < LAST:
        last = rng.choice(found.indptr[1:][lengths > 0]) - 1
        found.indices[last] = found.cols - 1
    return found


def _keep_within(lengths: np.ndarray, entries: int, rng: np.random.Generator) -> None:
    """Empties rows, all in one stretch, so that the others have no more entries than these.

    It ends at the last row in some patterns and begins at the first in others: a kernel may be
    wrong where the last rows are empty, and where they are not.
    """
    first = int(rng.integers(len(lengths))) if rng.random() < 0.5 else int(rng.integers(2)) * -8
    turned = np.roll(lengths, -first)
    turned[np.cumsum(turned) > entries] = 0
    lengths[:] = np.roll(turned, first)


def _end_at(edge: Edge, lengths: np.ndarray, order: np.ndarray, rng: np.random.Generator) -> None:
    """Takes entries from rows, in this order, so that the number of all is at an edge.

    Of a wider tile than the edge's where there are enough for it. Rows that have too few get some,
    up to the length of the longest; where that is no room either, the tile is a narrower one, and
    in the end all stay.
    """
    total, offset = int(lengths.sum()), draw_offset(edge, rng)
    own, least = 1 << edge.power, 1 << POWERS[0]
    mixed = next((whole for whole in MIXED_WHOLE if total > 2 * whole), own)
    wider = {Behind.MANY: 1 << POWERS[-1], Behind.MIXED: mixed}.get(edge.behind, own)
    held = lengths[order]
    room = lengths.max() - held
    for tile in (*([wider] if total > 2 * wider else []), own, least):
        taken = (total - offset) % tile
        if not taken:
            return
        if taken < total and taken <= held.sum():
            lengths[order] = held - _spread(taken, held)
            return
        if total > tile and tile - taken <= room.sum():
            lengths[order] = held + _spread(tile - taken, room)
            return


def _spread(count: int, room: np.ndarray) -> np.ndarray:
    """So many in all, as many as have room at each place, from the first on."""
    before = np.cumsum(room) - room
    return np.asarray(np.clip(count - before, 0, room))


def _long_rows(
    rows: int,
    cols: int,
    longest: int,
    left: int,
    rng: np.random.Generator,
    edges: Iterator[Edge],
) -> Iterator[tuple[int, int]]:
    """Where they stand, and their lengths: others as far as entries are left, and the longest.

    Every other one is at an edge of a tile. Where the longest is LONG the rest are nearly as long
    as that, with remainders modulo 64 that lie nine apart, and so differ modulo 8, too: what is
    wrong for last pieces of long rows alone is wrong for some edges and remainders.
    """
    places, first = rng.permutation(rows), int(rng.integers(RESIDUES))
    for number, place in enumerate(places[1 : LONG_ROWS if longest > 2 * RESIDUES else 1]):
        if longest >= LONG and number % 2:
            length = longest // RESIDUES * RESIDUES - (first + 9 * number // 2) % RESIDUES
        else:
            length = min(draw_edge(next(edges), rng, max(longest, LONG)), cols)
        if length <= left:
            left -= length
            yield int(place), length
    yield int(places[0]), longest


def _fill_up(
    lengths: np.ndarray, cols: int, rng: np.random.Generator, *, has_copies: bool
) -> Pattern:
    """Each place in a row has a band of columns of its own: sorted and distinct without a sort.

    Args:
        has_copies: Neighbours of one length have the same columns.
    """
    is_new = np.ones(len(lengths), bool)
    if has_copies:
        is_new[1:] = lengths[1:] != lengths[:-1]
    original = np.cumsum(is_new) - 1
    own = lengths[is_new]
    place = _places(own)
    band = cols // np.maximum(own, 1)
    shift = rng.integers(0, cols - band * own + 1)
    drawn = rng.integers(0, np.repeat(band, own)) + np.repeat(shift, own)
    columns = drawn + np.repeat(band, own) * place
    first = np.concatenate(([0], np.cumsum(own)))[original]
    indices = columns[np.repeat(first, lengths) + _places(lengths)]
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    return Pattern(len(lengths), cols, indptr.astype(np.int32), indices.astype(np.int32))


def _places(lengths: np.ndarray) -> np.ndarray:
    """The number of each entry within its row."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    places: np.ndarray = np.arange(total) - np.repeat(ends - lengths, lengths)
    return places


def light_pattern(
    rows: int, cols: int, rng: np.random.Generator, longest: int = LONGEST_LIGHT
) -> Pattern:
    """About as many entries as rows: short rows, one longer, none empty at the end.

    For patterns whose sizes alone are what matters.

    Args:
        longest: the most of the longer row; all columns where these are no more.
    """
    lengths = rng.poisson(1.0, rows).clip(0, cols)
    drawn = cols if cols <= longest else int(rng.integers(1, longest + 1))
    lengths[int(rng.integers(rows))] = drawn
    lengths[-1] = max(lengths[-1], 1)
    return _fill_up(lengths, cols, rng, has_copies=False)


def crowded_pattern(rows: int, entries: int, rng: np.random.Generator) -> Pattern:
    """At least so many entries, and hardly more: the same in all rows but for a few, of columns
    that are twice as many as a row has."""
    each = -(-entries // rows)
    lengths = each + rng.integers(0, 3, rows)
    return _fill_up(lengths, 2 * each + int(rng.integers(4, RESIDUES)), rng, has_copies=False)


def wide_pattern(
    rows: int, cols: int, longest: int, rng: np.random.Generator, *, has_long_row: bool
) -> Pattern:
    """A pattern whose every size is beyond 16 bits, with entries in its last rows and columns.

    With a long row that one has nearly all of the entries; else all rows are short. A size that is
    not beyond 16 bits is drawn anew.
    """
    rows, cols, longest = (
        size if size >= BEYOND_16_BITS else BEYOND_16_BITS + int(rng.integers(4096))
        for size in (rows, cols, longest)
    )
    most = 1 if has_long_row else 3
    lengths = rng.integers(0, most + 1, rows)
    if has_long_row:
        lengths[rng.random(rows) < 0.9] = 0
        lengths[int(rng.integers(0, rows - 8))] = longest
    lengths[-8:] = most
    return _fill_up(lengths, widen(cols, longest), rng, has_copies=False)
