# SPDX-License-Identifier: Apache-2.0
"""Draws the sizes of hidden shapes, so that few shapes reach many strata of every axis.

A kernel that is wrong for some sizes is wrong for a remainder (a tail of N % 8 = 5), near an edge
(the last block of 512 rows has one row) or at a scale (rows beyond 20,000). So each axis leads in
turn through all scales while the others stay short; of seven shapes two are short in every axis and
very short in none, and 64 of those have every remainder modulo 64 of every axis, each where nothing
hides it; one is beyond 128 in every axis, as blocked paths demand.
Lengths beside a leading one take remainders in an order in which any eight that
follow each other differ modulo 8; long lengths take each remainder modulo 8, since vectorised
paths have tails of their own. Edges of tiles come in an order of their own for each axis, none
twice before all were tried. What is fixed is the range; every number is drawn.

A campaign's evaluations share one memory of what was tried (`Tried`): each goes on where the one
before it ended, so that what was tried is tried last.
"""

from __future__ import annotations

import itertools
import secrets
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

RESIDUES = 64
BEYOND_16_BITS = (1 << 16) + 2048
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
    """Behind MIXED_WHOLE, where there is room: tiles of other widths end there, too."""


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
MIXED_WHOLE = 45 << 8
"""A whole number of tiles of 96, 120, 144, 160, 240, 320, 384, 640, 768, and of 256."""


class Edge(NamedTuple):
    """Of a tile."""

    power: int
    offset: int
    behind: Behind = Behind.ANY


MOST_OF_TWO = 1 << 17
"""Elements of any two axes: what is hidden stays small."""
MOST_OF_ALL = 1 << 22
"""Of all axes together, as the steps of a product."""
SHORT = 135
"""The most of an axis that does not lead."""


@dataclass(frozen=True)
class Range:
    """Which lengths an axis may have."""

    most: int = BEYOND_16_BITS + 4096
    choices: tuple[int, ...] = ()
    """The only values, where an axis is a choice and no length."""


ALONG_Y = Range(most=65_535)
"""Of an axis that kernels for GPUs deal out along a grid's y, which has no more blocks: right ones
do, since nobody has a dense factor of that width."""


class Scale(Enum):
    """Where the leading axis lies: the least and the most length."""

    WIDE = (BEYOND_16_BITS, BEYOND_16_BITS + 4096)
    EDGE = (127, MOST_AT_EDGES + LAST_PIECE)
    HUNDREDS = (65, 1023)
    LONG = (20_000, 32_767)
    LONGER = (33_000, BEYOND_16_BITS - 1)
    THOUSANDS = (1024, 8191)
    TINY = (2, 31)
    OWN = (2, 8192)
    """The workload's own length: the path that it will be timed on."""
    ONE = (1, 1)


ROUND = (
    Scale.WIDE,
    Scale.EDGE,
    Scale.HUNDREDS,
    Scale.EDGE,
    Scale.WIDE,
    Scale.TINY,
    Scale.EDGE,
    Scale.OWN,
    Scale.LONGER,
    Scale.EDGE,
    Scale.THOUSANDS,
    Scale.ONE,
    Scale.EDGE,
    Scale.LONGER,
    Scale.LONG,
    Scale.EDGE,
)
"""The scales in the order in which one axis after the other leads through them. A quarter is beyond
32,767, so that each of four axes is so with every remainder modulo 8 within eight rounds."""

SHORT_ONES = 8
"""After each ROUND so many shapes that are short in every axis."""
LEAST_SHORT = 8
"""The least of their lengths: what is wrong along one axis shows in several places of another."""
MIDDLING_ONES = 4
"""Among those so many shapes that are middling in every axis."""
LEAST_MIDDLING = 129
MOST_MIDDLING = 1 << 23
"""Of all of their axes together: a product takes milliseconds."""

BULK = (1 << 20, 3 << 19)
"""Elements of two axes that are long at once: four to six MiB of float32."""
BROAD = (9.0, 11.0)
"""The logarithm to the base 2 of one of them; the other follows. With the second narrow or not."""
BESIDE = (8, 24)
"""Of a third axis: a product's truth takes as many steps as it has, and fewer hide by their zeros
what is left out."""

LANES = 8
ALL_LANES = frozenset(range(LANES))
BANDS = (1000, 33_000)
"""From these lengths on, each remainder modulo LANES comes before one comes again."""


ODD = np.arange(3, 48, 2)
"""Moduli of which a power of two tells nothing."""
OPTIONS = 8
"""Lengths among which one is chosen by its remainders modulo those."""


class _Odd:
    """How often each remainder modulo each of ODD was seen on each axis."""

    def __init__(self) -> None:
        self._seen: dict[str, np.ndarray] = {}

    def choose(self, axis: str, options: np.ndarray) -> int:
        """The one of some lengths whose remainders are the rarest: the sum of 1 / (1 + 3 seen)."""
        seen = self._of(axis)
        rarity = 1.0 / (1.0 + 3.0 * seen[np.arange(len(ODD)), options[:, None] % ODD])
        return int(options[rarity.sum(1).argmax()])

    def see(self, axis: str, length: int) -> None:
        """Counts a length, however it came about."""
        self._of(axis)[np.arange(len(ODD)), length % ODD] += 1

    def _of(self, axis: str) -> np.ndarray:
        return self._seen.setdefault(axis, np.zeros((len(ODD), int(ODD.max())), np.int64))


class _Remainders:
    """Of one axis modulo 64: those that no length has had yet, then all again."""

    def __init__(self, axis: str, rng: np.random.Generator, odd: _Odd) -> None:
        self._axis, self._odd = axis, odd
        stride, start = 2 * int(rng.integers(RESIDUES // 2)) + 1, int(rng.integers(RESIDUES))
        self._all = [(number * stride + start) % RESIDUES for number in range(RESIDUES)]
        self._left = list(self._all)
        self._of_long = {band: set(range(LANES)) for band in BANDS}
        self.long = 0

    def take(self, least: int, most: int, rng: np.random.Generator) -> int:
        """A length in this range, whose remainder is the next one that the range has.

        In a range of long lengths it is one modulo 8 that none of them has had, where there is one.
        """
        wanted: AbstractSet[int] = next(iter(self._list_reached(least)), ALL_LANES)
        in_range = range(least, min(most, least + RESIDUES - 1) + 1)
        can = {length % RESIDUES for length in in_range if length % LANES in wanted}
        can = can or {length % RESIDUES for length in in_range}
        remainder = next((one for one in self._left if one in can), None)
        if remainder is None:
            remainder = int(rng.choice(sorted(can)))
        first = least + (remainder - least) % RESIDUES
        drawn = rng.integers((most - first) // RESIDUES + 1, size=OPTIONS)
        return self._odd.choose(self._axis, first + RESIDUES * drawn)

    def see(self, length: int) -> None:
        """Counts a length, however it came about."""
        if length % RESIDUES in self._left:
            self._left.remove(length % RESIDUES)
        self._left = self._left or list(self._all)
        self._odd.see(self._axis, length)
        self.long += length >= BANDS[-1]
        for left in self._list_reached(length):
            left.discard(length % LANES)
            if not left:
                left.update(range(LANES))

    def _list_reached(self, length: int) -> list[set[int]]:
        """Of the bands that a length lies in, the highest first: what they have not had."""
        return [self._of_long[band] for band in reversed(BANDS) if length >= band]


class Tried:
    """What sizes of one problem were tried so far: those are tried last.

    It is one order of edges, remainders and leading axes, drawn from a seed, and how far it was
    gone: so that an evaluation can be drawn again, it is told with its seed (`text`).
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed = secrets.randbits(64) if seed is None else seed
        self._turns = self._short = self._middling = 0
        self._edges: Counter[str] = Counter()

    @property
    def text(self) -> str:
        """All of it."""
        edges = ",".join(f"{axis}={count}" for axis, count in sorted(self._edges.items()))
        return f"{self.seed:016x} {self._turns} {self._short} {self._middling} {edges}"

    @classmethod
    def from_text(cls, text: str) -> Tried:
        """As it was told. ValueError where it is nothing that `text` writes."""
        seed, turns, short, middling, edges = text.split(" ")
        found = cls(int(seed, 16))
        found._turns, found._short, found._middling = int(turns), int(short), int(middling)
        for axis, _, count in (each.rpartition("=") for each in edges.split(",") if each):
            found._edges[axis] = int(count)
        return found

    def next_edge(self, axis: str) -> Edge:
        """The one that was not tried for longest: each offset in turn, at another power each."""
        rng = self._make_rng(axis, 0)
        powers, offsets = rng.permutation(POWERS), rng.permutation(OFFSETS)
        turn, place = divmod(self._edges[axis], len(OFFSETS))
        behind = BEHIND[(int(rng.integers(len(BEHIND))) + place + turn) % len(BEHIND)]
        self._edges[axis] += 1
        return Edge(int(powers[(turn + place) % len(POWERS)]), int(offsets[place]), behind)

    def find_fewest_edges(self, axes: Sequence[str]) -> str:
        """The first of the axes that had the fewest edges."""
        return min(axes, key=lambda axis: self._edges[axis])

    def next_turn(self) -> int:
        """The number of a ROUND: it says which axis leads first."""
        self._turns += 1
        return self.seed % RESIDUES + self._turns

    def next_short(
        self, most: Mapping[str, int], rng: np.random.Generator, odd: _Odd
    ) -> dict[str, int]:
        """Lengths from LEAST_SHORT on; RESIDUES of an axis that follow each other differ modulo it.

        Args:
            most: of each axis.
            odd: what was seen; it is told of these.
        """
        block, number = divmod(self._short, RESIDUES)
        self._short += 1
        turns = {axis: self._make_rng(axis, 1 + block).permutation(RESIDUES) for axis in most}
        sizes: dict[str, int] = {}
        for axis, turn in turns.items():
            options = LEAST_SHORT + int(turn[number]) + RESIDUES * rng.permutation(2)
            is_short = most[axis] < SHORT
            sizes[axis] = (
                1 + int(turn[number]) % most[axis] if is_short else odd.choose(axis, options)
            )
            odd.see(axis, sizes[axis])
        return sizes

    def next_middling(
        self, most: Mapping[str, int], rng: np.random.Generator, odd: _Odd
    ) -> dict[str, int]:
        """Lengths from LEAST_MIDDLING on; of an axis any eight that follow each other differ modulo
        8, any 32 modulo 32.

        Args:
            most: of each axis.
            odd: what was seen; it is told of these.
        """
        sizes, number, left = {}, self._middling, MOST_MIDDLING
        self._middling += 1
        for place, axis in enumerate(most, start=1):
            stride, start = self._make_rng(axis, 1 << 32).integers(RESIDUES, size=2)
            first = LEAST_MIDDLING + int(number * (2 * stride + 1) + start) % RESIDUES
            room = left // (LEAST_MIDDLING + RESIDUES) ** (len(most) - place)
            options = np.arange(first, max(first, min(room, 4 * RESIDUES)) + 1, RESIDUES)
            sizes[axis] = min(odd.choose(axis, rng.permutation(options)), most[axis])
            odd.see(axis, sizes[axis])
            left //= sizes[axis]
        return sizes

    def _make_rng(self, axis: str, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, number, *axis.encode()])


def draw_sizes(
    ranges: Mapping[str, Range],
    own: Mapping[str, int],
    rng: np.random.Generator,
    steps: int | None = MOST_OF_ALL,
    tried: Tried | None = None,
) -> Iterator[dict[str, int]]:
    """Sizes of one shape after the other, without end. The first has an axis beyond 16 bits.

    Args:
        ranges: of each axis, in the problem's order.
        own: the workload's.
        steps: the most of all axes together; None: they are never multiplied.
        tried: by the evaluations before; it is told what this one takes.
    """
    tried = tried or Tried(int(rng.integers(1 << 63)))
    odd = _Odd()
    leading = _draw_leading(ranges, own, rng, steps, tried, odd)
    most = {name: kind.most for name, kind in ranges.items() if not kind.choices}
    while True:
        for drawn in itertools.chain(
            itertools.islice(leading, len(ROUND)), _draw_others(most, rng, tried, odd)
        ):
            yield {
                name: drawn[name] if name in drawn else int(rng.choice(kind.choices))
                for name, kind in ranges.items()
            }


def is_telling(ranges: Mapping[str, Range], sizes: Mapping[str, int]) -> bool:
    """Whether what is wrong along one axis shows in several places of each other one."""
    lengths = [sizes[name] for name, kind in ranges.items() if not kind.choices]
    return min(lengths) >= LEAST_SHORT and max(lengths) <= SHORT


def is_middling(ranges: Mapping[str, Range], sizes: Mapping[str, int]) -> bool:
    """Whether no axis is short, and none long."""
    lengths = [sizes[name] for name, kind in ranges.items() if not kind.choices]
    return min(lengths) >= LEAST_MIDDLING and SHORT < max(lengths) <= 4 * RESIDUES


def _draw_others(
    most: Mapping[str, int], rng: np.random.Generator, tried: Tried, odd: _Odd
) -> Iterator[dict[str, int]]:
    """What follows a ROUND: shapes in which no axis leads."""
    for number in range(SHORT_ONES + MIDDLING_ONES):
        is_turn = number * MIDDLING_ONES % (SHORT_ONES + MIDDLING_ONES) < MIDDLING_ONES
        yield (tried.next_middling if is_turn else tried.next_short)(most, rng, odd)


def _draw_leading(
    ranges: Mapping[str, Range],
    own: Mapping[str, int],
    rng: np.random.Generator,
    steps: int | None,
    tried: Tried,
    odd: _Odd,
) -> Iterator[dict[str, int]]:
    """Lengths of which one leads through all scales."""
    lengths = [name for name, kind in ranges.items() if not kind.choices]
    wide = [name for name in lengths if ranges[name].most >= BEYOND_16_BITS]
    remainders = {name: _Remainders(name, rng, odd) for name in lengths}
    turn = 0
    for place in itertools.cycle(range(len(ROUND))):
        turn = turn if place else tried.next_turn()
        scale = ROUND[place]
        can = wide if wide and scale is Scale.WIDE else lengths
        turned = [can[(turn + place + one) % len(can)] for one in range(len(can))]
        lead = turned[0]
        if scale in (Scale.WIDE, Scale.LONGER):
            # Each is as often beyond what is short as another, also who cannot be wide.
            lead = min(turned, key=lambda name: remainders[name].long)
        if scale is Scale.EDGE:
            lead = tried.find_fewest_edges(turned)
            sizes = {lead: min(draw_edge(tried.next_edge(lead), rng), ranges[lead].most)}
        else:
            sizes = {lead: _leading(scale, ranges[lead], own[lead], remainders[lead], rng)}
        for name in rng.permutation(np.array([name for name in lengths if name != lead])):
            most = min(SHORT, ranges[name].most, _room(sizes, steps))
            sizes[str(name)] = remainders[name].take(1, most, rng)
        for name, length in sizes.items():
            remainders[name].see(length)
        yield sizes


def _leading(
    scale: Scale,
    kind: Range,
    own: int,
    remainders: _Remainders,
    rng: np.random.Generator,
) -> int:
    least, most = scale.value
    if scale is Scale.OWN:
        return int(np.clip(own, 1, min(most, kind.most)))
    most = min(most, kind.most)
    return remainders.take(least if least <= most else 1, most, rng)


def draw_edge(edge: Edge, rng: np.random.Generator, most: int = MOST_AT_EDGES + LAST_PIECE) -> int:
    """A length at an edge.

    Args:
        most: of it, where the first edge of this tile is not beyond that.
    """
    power, behind, offset = edge.power, edge.behind, draw_offset(edge, rng)
    if behind is Behind.MIXED and MIXED_WHOLE + offset <= most:
        return MIXED_WHOLE + offset
    if behind in (Behind.MANY, Behind.MIXED) and (most - offset) >> POWERS[-1] > 0:
        power = POWERS[-1]
    drawn = 1 + rng.integers(max(1, (most - offset) >> power), size=3)
    multiple = {Behind.ONE: 1, Behind.ANY: drawn[0]}.get(behind, drawn.max())
    return (int(multiple) << power) + offset


def draw_offset(edge: Edge, rng: np.random.Generator) -> int:
    """How far behind a multiple of its tile a length at an edge lies."""
    return int(rng.integers(edge.offset, LAST_PIECE + 1)) if edge.offset > 1 else edge.offset


def _room(sizes: Mapping[str, int], steps: int | None) -> int:
    """The most that one axis more may have beside these."""
    room = MOST_OF_TWO // max(sizes.values())
    if steps is not None:
        room = min(room, steps // int(np.prod(list(sizes.values()), dtype=np.int64)))
    return max(1, room)


def draw_bulk(ranges: Mapping[str, Range], rng: np.random.Generator) -> Iterator[dict[str, int]]:
    """Sizes in which two axes are long at once, each pair of axes in turn, without end.

    Of every two shapes of a pair one has whole vectors along both axes, as some paths demand.
    """
    lengths = [name for name, kind in ranges.items() if not kind.choices]
    pairs = list(itertools.combinations(lengths, 2))
    first = int(rng.integers(len(pairs)))
    for number in itertools.count(first):
        long = [str(name) for name in rng.permutation(np.array(pairs[number % len(pairs)]))]
        sizes = dict(zip(long, draw_pair(rng, is_whole=(number - first) % 2 == 0), strict=True))
        yield {
            name: sizes[name]
            if name in sizes
            else int(
                rng.choice(kind.choices) if kind.choices else rng.integers(*BESIDE, endpoint=True)
            )
            for name, kind in ranges.items()
        }


def draw_pair(rng: np.random.Generator, *, is_whole: bool) -> tuple[int, int]:
    """Two lengths with so many elements together as BULK says.

    Args:
        is_whole: both are multiples of RESIDUES.
    """
    one = int(2 ** rng.uniform(*BROAD))
    other = int(rng.integers(*BULK)) // one
    if not is_whole:
        return one, other
    return one // RESIDUES * RESIDUES, other // RESIDUES * RESIDUES
