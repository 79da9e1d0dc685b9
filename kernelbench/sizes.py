# SPDX-License-Identifier: Apache-2.0
"""Draws the sizes of hidden shapes, so that few shapes reach many strata of every axis.

A kernel that is wrong for some sizes is wrong for a remainder (a tail of N % 8 = 5), near an edge
(the last block of 512 rows has one row) or at a scale (rows beyond 20,000). So each axis leads in
turn through all scales while the others stay short. Of some eight shapes two are short in every
axis and very short in none, and 64 of those have every remainder modulo 64 of every axis, each
where nothing hides it; one is beyond 128 in every axis, as blocked paths demand. A few are broad,
with hundreds of rows and of columns; some have a power of two along every axis or a length that
layers have, as 768, and some are 1 along one axis and long along another. A short one comes again
with two of its lengths exchanged: what a kernel keeps by a product of sizes is wrong there. Lengths
beside a leading one take remainders in an order in which any eight that follow each other differ
modulo 8; long lengths take each remainder modulo 8, since vectorised paths have tails of their own.
Edges of tiles come in an order of their own for each axis, none twice before all were tried. Of
several lengths that would do, one is taken that has remainders modulo odd numbers which were seen
least: no tile has these, a list of sizes has. What is fixed is the range; every number is drawn.

A campaign's evaluations share one memory of what was tried (`Tried`): each goes on where the one
before it ended, so that what was tried is tried last.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum

import numpy as np

from .edges import LAST_PIECE, MOST_AT_EDGES, POWERS, Edge, draw_edge
from .tried import (
    BESIDE,
    LEAST_MIDDLING,
    LEAST_SHORT,
    MOST_OF_TWO,
    OPTIONS,
    RESIDUES,
    SHORT,
    Odd,
    Tried,
)

BEYOND_16_BITS = (1 << 16) + 2048
HIDDEN_INPUTS, HIDDEN_OUTPUTS = 16 << 20, 8 << 20
"""Bytes of one call on a hidden shape at most, beside those that every shape has."""
HIDDEN_ELEMENTS = 5 << 19
"""Elements of its tensors, as far as shorter axes beside the longest can help: where an axis counts
blocks, short ones are many elements."""
HIDDEN_HELD = 16 << 20
"""The same of the elements between inputs and outputs that a problem declares."""
MOST_HALVED = 8
"""How often the elements of two long axes are halved to fit: of fewer than some 4,096 neither is
long."""
FEW_BESIDE = (1, 4)
"""Of each axis beside two long ones, where more are too many bytes."""
HALVED_BESIDE = 5
"""How often those of two long axes are halved before there are FEW_BESIDE."""
FEW_AXES = 3
"""Of a tensor that has a place for each: short ones in all of more are too many elements."""
MOST_OF_ALL = 1 << 22
"""Of all axes together, as the steps of a product."""


@dataclass(frozen=True)
class Range:
    """Which lengths an axis may have."""

    most: int = BEYOND_16_BITS + 4096
    choices: tuple[int, ...] = ()
    """The only values, where an axis is a choice and no length."""
    is_power: bool = False
    """Whether its lengths are powers of two: what is drawn is cut to the next below."""

    def cut(self, length: int) -> int:
        """The longest length of this kind that is no longer."""
        return 1 << length.bit_length() - 1 if self.is_power else length


ALONG_Y = Range(most=65_535)
"""Of an axis that kernels for GPUs deal out along a grid's y, which has no more blocks: right ones
do, since nobody has a dense factor of that width."""

POWER_OF_2 = Range(most=1 << 15, is_power=True)
"""Of rows that a butterfly goes through, which published kernels take up to this length."""


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


class Kind(Enum):
    """Of a shape in which no axis leads."""

    SHORT = "short in every axis, and very short in none"
    MIDDLING = "middling in every axis"
    BROAD = "two long axes"
    WHOLE = "a power of two along every axis"
    USUAL = "a length that layers have along every axis"
    THIN = "one axis is 1 beside a long one"
    TURNED = "the lengths of the one before it, two of them exchanged"


_BEGINNING = "SHORT USUAL MIDDLING WHOLE SHORT THIN SHORT WHOLE MIDDLING USUAL SHORT BROAD"
_REST = (
    "SHORT TURNED USUAL MIDDLING WHOLE THIN SHORT THIN SHORT TURNED WHOLE MIDDLING USUAL SHORT THIN"
)
OTHERS = tuple(Kind[name] for name in f"{_BEGINNING} {_REST}".split())
"""What follows a ROUND. A plan of few shapes ends with the beginning, and has seen each kind but
TURNED: that is for what a process keeps, and who asks for few has processes that keep nothing."""
ALL_OF_A_ROUND = len(ROUND) + len(OTHERS)
"""Shapes before an axis leads again."""

BULK = (1 << 20, 3 << 19)
"""Elements of two axes that are long at once: four to six MiB of float32."""
BROAD = (9.0, 11.0)
"""The logarithm to the base 2 of one of them; the other follows. With the second narrow or not."""
LANES = 8
ALL_LANES = frozenset(range(LANES))
BANDS = (1000, 33_000)
"""From these lengths on, each remainder modulo LANES comes before one comes again."""


class _Remainders:
    """Of one axis modulo 64: those that no length has had yet, then all again."""

    def __init__(self, axis: str, rng: np.random.Generator, odd: Odd) -> None:
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
    odd = Odd()
    leading = _draw_leading(ranges, own, rng, steps, tried, odd)
    while True:
        for drawn in itertools.chain(
            itertools.islice(leading, len(ROUND)), _draw_others(ranges, rng, steps, tried, odd)
        ):
            yield {
                name: kind.cut(drawn[name]) if name in drawn else int(rng.choice(kind.choices))
                for name, kind in ranges.items()
            }


def is_telling(ranges: Mapping[str, Range], sizes: Mapping[str, int]) -> bool:
    """Whether what is wrong along one axis shows in several places of each other one."""
    return _lie_between(ranges, sizes, LEAST_SHORT, SHORT)


def is_middling(ranges: Mapping[str, Range], sizes: Mapping[str, int]) -> bool:
    """Whether no axis is short, and none long."""
    return _lie_between(ranges, sizes, LEAST_MIDDLING, 4 * RESIDUES) and not _lie_between(
        ranges, sizes, 1, SHORT
    )


def _lie_between(
    ranges: Mapping[str, Range], sizes: Mapping[str, int], least: int, most: int
) -> bool:
    """Whether all lengths do; of an axis that is never long, a quarter of its most is enough."""
    return all(
        min(least, max(1, kind.most // 4)) <= sizes[name] <= most
        for name, kind in ranges.items()
        if not kind.choices
    )


def _draw_others(
    ranges: Mapping[str, Range],
    rng: np.random.Generator,
    steps: int | None,
    tried: Tried,
    odd: Odd,
) -> Iterator[dict[str, int]]:
    """What follows a ROUND: shapes in which no axis leads."""
    most = {name: kind.most for name, kind in ranges.items() if not kind.choices}
    is_crowded = steps is not None and len(most) > FEW_AXES
    drawn: dict[str, int] = {}
    draw: dict[Kind, Callable[[], dict[str, int]]] = {
        Kind.SHORT: lambda: tried.next_short(most, rng, odd, is_crowded=is_crowded),
        Kind.MIDDLING: lambda: tried.next_middling(most, rng, odd),
        Kind.BROAD: lambda: tried.next_broad(most, rng, odd),
        Kind.WHOLE: lambda: tried.next_whole(most, odd, steps),
        Kind.USUAL: lambda: tried.next_usual(most, odd, steps),
        Kind.THIN: lambda: tried.next_thin(most, rng, odd),
        Kind.TURNED: lambda: _exchange(ranges, drawn, rng),
    }
    for kind in OTHERS:
        drawn = draw[kind]()
        yield drawn


def _exchange(
    ranges: Mapping[str, Range], drawn: dict[str, int], rng: np.random.Generator
) -> dict[str, int]:
    """The same lengths, of one pair of axes each the other's; as they are where no pair differs and
    can have them."""
    can = [name for name in drawn if not ranges[name].is_power]
    pairs = [
        (one, other)
        for one, other in itertools.combinations(can, 2)
        if drawn[one] != drawn[other]
        and drawn[one] <= ranges[other].most
        and drawn[other] <= ranges[one].most
    ]
    if not pairs:
        return drawn
    one, other = pairs[int(rng.integers(len(pairs)))]
    return {**drawn, one: drawn[other], other: drawn[one]}


def _draw_leading(
    ranges: Mapping[str, Range],
    own: Mapping[str, int],
    rng: np.random.Generator,
    steps: int | None,
    tried: Tried,
    odd: Odd,
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
            sizes = {lead: _draw_edge_within(tried.next_edge(lead), ranges[lead].most, rng)}
        else:
            sizes = {lead: _leading(scale, ranges[lead], own[lead], remainders[lead], rng)}
        for name in rng.permutation(np.array([name for name in lengths if name != lead])):
            most = min(SHORT, ranges[name].most, _room(sizes, steps))
            sizes[str(name)] = remainders[name].take(1, most, rng)
        for name, length in sizes.items():
            remainders[name].see(length)
        yield sizes


def _draw_edge_within(edge: Edge, most: int, rng: np.random.Generator) -> int:
    """A length at an edge that an axis can have: of a narrower tile where it is short."""
    widest = max(POWERS[0], (most - LAST_PIECE).bit_length() - 1)
    edge = edge._replace(power=min(edge.power, widest))
    return min(draw_edge(edge, rng, min(most, MOST_AT_EDGES + LAST_PIECE)), most)


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


def _room(sizes: Mapping[str, int], steps: int | None) -> int:
    """The most that one axis more may have beside these."""
    room = MOST_OF_TWO // max(sizes.values())
    if steps is not None:
        room = min(room, steps // int(np.prod(list(sizes.values()), dtype=np.int64)))
    return max(1, room)


def draw_bulk(
    ranges: Mapping[str, Range],
    rng: np.random.Generator,
    fits: Callable[[Mapping[str, int]], bool] | None = None,
) -> Iterator[dict[str, int]]:
    """Sizes in which two axes are long at once, each pair of axes in turn, without end; none where
    even short ones are too many bytes.

    Of every two shapes of a pair one has whole vectors along both axes, as some paths demand.

    Args:
        fits: whether sizes are few enough bytes; those that are not are drawn shorter.
    """
    lengths = [name for name, kind in ranges.items() if not kind.choices]
    pairs = list(itertools.combinations(lengths, 2))
    # An axis that is never long makes no pair, where there is another.
    long = {name for name in lengths if ranges[name].most >= RESIDUES}
    pairs = [pair for pair in pairs if long.issuperset(pair)] or pairs
    first, last = int(rng.integers(len(pairs))), 0
    for number in itertools.count(first):
        pair, is_whole = pairs[number % len(pairs)], (number - first) % 2 == 0
        tries = [(BESIDE, shrunk) for shrunk in range(HALVED_BESIDE + 1)]
        tries += [(FEW_BESIDE, shrunk) for shrunk in range(MOST_HALVED + 1)]
        for beside, shrunk in tries:
            drawn = draw_pair(rng, is_whole=is_whole, shrunk=shrunk)
            sizes = _draw_beside(ranges, pair, drawn, beside, rng, is_whole=is_whole)
            if fits is None or fits(sizes):
                last = number
                yield sizes
                break
        if number - max(last, first) > 2 * len(pairs):
            return


def _draw_beside(
    ranges: Mapping[str, Range],
    pair: tuple[str, ...],
    long: tuple[int, int],
    beside: tuple[int, int],
    rng: np.random.Generator,
    *,
    is_whole: bool,
) -> dict[str, int]:
    """Two long lengths in either order, and a few of each other axis."""
    sizes = dict(zip((str(name) for name in rng.permutation(np.array(pair))), long, strict=True))
    for name in pair:
        most = ranges[name].most
        if is_whole and RESIDUES <= most < sizes[name]:
            sizes[name] = most // RESIDUES * RESIDUES
    return {
        name: int(rng.choice(kind.choices))
        if kind.choices
        else kind.cut(min(kind.most, sizes.get(name) or int(rng.integers(*beside, endpoint=True))))
        for name, kind in ranges.items()
    }


def draw_pair(rng: np.random.Generator, *, is_whole: bool, shrunk: int = 0) -> tuple[int, int]:
    """Two lengths with so many elements together as BULK says.

    Args:
        is_whole: both are multiples of RESIDUES, where they are as long.
        shrunk: how often their elements are halved.
    """
    one = int(2 ** (rng.uniform(*BROAD) - shrunk / 2))
    other = (int(rng.integers(*BULK)) >> shrunk) // one
    if not is_whole or min(one, other) < RESIDUES:
        return one, other
    return one // RESIDUES * RESIDUES, other // RESIDUES * RESIDUES
