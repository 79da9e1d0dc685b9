# SPDX-License-Identifier: Apache-2.0
"""What sizes of a problem were tried so far, and what comes next where no axis leads the others.

Shapes that are short in every axis, middling in every axis, broad, whole, usual or thin, and the
edges of tiles, each in an order that one seed draws: whoever goes on where another ended tries last
what was tried.
"""

from __future__ import annotations

import itertools
import math
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .edges import BEHIND, OFFSETS, POWERS, Edge

RESIDUES = 64
MOST_OF_TWO = 1 << 17
"""Elements of any two axes: what is hidden stays small."""
SHORT = 135
"""The most of an axis that does not lead."""
LEAST_SHORT = 8
"""The least of their lengths: what is wrong along one axis shows in several places of another."""
LEAST_MIDDLING = 129
MOST_MIDDLING = 1 << 23
"""Of all of their axes together: a product takes milliseconds."""
MOST_BROAD, BROAD_LOGS, ALIKE = 1 << 18, (7.5, 10.5), 4
"""Of a broad shape two axes are long, as paths for a large matrix demand, and neither so long that
few such shapes could be tried. Elements of the two; the logarithm to the base 2 of the first; one
of so many is square."""
BESIDE = (8, 24)
"""Of a third axis: a product's truth takes as many steps as it has, and fewer hide by their zeros
what is left out."""
WHOLE = (range(8, 14), (*range(4, 8), *range(14, 17)))
"""Of a whole shape every axis is two to one of these, or shorter: kernels have a path for whole
tiles alone, and paths that are built for one such length. The first ones are in every plan: few
other shapes have them."""
USUAL = (
    (192, 384, 640, 768, 1000, 1536, 3072),
    (200, 224, 320, 500, 896, 1280, 2560, 5120, 10_000),
)
"""Of a usual shape every axis has a length that layers and data sets have, and that is no power of
two: kernels are built for one such length, too. The first ones are in every plan."""
OF_A_PLAN = 32
"""Shapes of either kind that a full plan has."""
USUAL_BESIDE = (24, 40, 48, 80, 96, 100, 112, 160)
"""And that the others have beside a long one."""
LEAST_KEPT = 4
"""Two to this is left to each axis beside the first ones."""
THIN_LOGS = (7.0, 13.9)
"""Of a thin shape one axis is 1 and another two to a power between these: a single row that is
shared out among threads, and a product with a vector, have paths of their own."""
MAGNITUDES = 8
"""Each of as many parts of that range has one of so many in a row."""

ODD = np.arange(3, 48, 2)
"""Moduli of which a power of two tells nothing."""
OPTIONS = 8
"""Lengths among which one is chosen by its remainders modulo those."""


class Odd:
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


class Tried:
    """What sizes of one problem were tried so far: those are tried last.

    It is one order of edges, remainders and leading axes, drawn from a seed, and how far it was
    gone: so that an evaluation can be drawn again, it is told with its seed (`text`).
    """

    def __init__(self, seed: int | None = None) -> None:
        self.seed = secrets.randbits(64) if seed is None else seed
        self._turns = self._short = self._middling = self._broad = 0
        self._whole = self._usual = self._thin = 0
        self._edges: Counter[str] = Counter()

    @property
    def text(self) -> str:
        """All of it."""
        edges = ",".join(f"{axis}={count}" for axis, count in sorted(self._edges.items()))
        counts = (self._turns, self._short, self._middling, self._broad)
        of_lengths = (self._whole, self._usual, self._thin)
        return " ".join((f"{self.seed:016x}", *map(str, (*counts, *of_lengths)), edges))

    @classmethod
    def from_text(cls, text: str) -> Tried:
        """As it was told. ValueError where it is nothing that `text` writes."""
        seed, *counts, edges = text.split(" ")
        found = cls(int(seed, 16))
        turns, short, middling, broad, whole, usual, thin = map(int, counts)
        found._turns, found._short, found._middling = turns, short, middling
        found._broad, found._whole, found._usual, found._thin = broad, whole, usual, thin
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
        self, most: Mapping[str, int], rng: np.random.Generator, odd: Odd, *, is_crowded: bool
    ) -> dict[str, int]:
        """Lengths from LEAST_SHORT on; RESIDUES of an axis that follow each other differ modulo it.

        Args:
            most: of each axis.
            odd: what was seen; it is told of these.
            is_crowded: of so many axes that there is only room for the shorter one of each length
                and that beyond it by RESIDUES.
        """
        block, number = divmod(self._short, RESIDUES)
        self._short += 1
        turns = {axis: self._make_rng(axis, 1 + block).permutation(RESIDUES) for axis in most}
        sizes: dict[str, int] = {}
        for axis, turn in turns.items():
            options = (
                LEAST_SHORT + int(turn[number]) + RESIDUES * rng.permutation(1 if is_crowded else 2)
            )
            is_short = most[axis] < SHORT
            sizes[axis] = (
                1 + int(turn[number]) % most[axis] if is_short else odd.choose(axis, options)
            )
            odd.see(axis, sizes[axis])
        return sizes

    def next_middling(
        self, most: Mapping[str, int], rng: np.random.Generator, odd: Odd
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
            first = LEAST_MIDDLING + self._take_in_turn(axis, number)
            room = left // (LEAST_MIDDLING + RESIDUES) ** (len(most) - place)
            options = np.arange(first, max(first, min(room, 4 * RESIDUES)) + 1, RESIDUES)
            sizes[axis] = min(odd.choose(axis, rng.permutation(options)), most[axis])
            odd.see(axis, sizes[axis])
            left //= sizes[axis]
        return sizes

    def next_broad(
        self, most: Mapping[str, int], rng: np.random.Generator, odd: Odd
    ) -> dict[str, int]:
        """Two axes that are long, each pair in turn; of a pair any eight that follow each other
        differ modulo 8 along both.

        Args:
            most: of each axis.
            odd: what was seen; it is told of these.
        """
        pairs = list(itertools.combinations(most, 2)) or [(next(iter(most)),) * 2]
        turn, at = divmod(self._broad + self.seed % len(pairs), len(pairs))
        self._broad += 1
        one, other = (str(axis) for axis in rng.permutation(np.array(pairs[at])))
        sizes = {axis: int(rng.integers(*BESIDE, endpoint=True)) for axis in most}
        long = int(2 ** rng.uniform(*BROAD_LOGS)) if turn % ALIKE else int(MOST_BROAD**0.5)
        for axis, length in ((one, long), (other, MOST_BROAD // long)):
            sizes[axis] = length // RESIDUES * RESIDUES + self._take_in_turn(axis, turn)
        if not turn % ALIKE:
            sizes[other] = sizes[one]
        for axis, length in sizes.items():
            sizes[axis] = min(length, most[axis])
            odd.see(axis, sizes[axis])
        return sizes

    def next_whole(
        self, most: Mapping[str, int], odd: Odd, steps: int | None = None
    ) -> dict[str, int]:
        """Powers of two. One axis after the other has those of WHOLE, see `_lead`; the others are
        as long as MOST_OF_TWO leaves room for, and mostly differ.

        Args:
            most: of each axis.
            odd: what was seen; it is told of these.
            steps: the most of all axes together; None: they are never multiplied.
        """
        self._whole += 1

        def choose(axis: str, turn: int, place: int, room: int) -> int:
            powers = [self._order(axis, (1 << 33) + at, tier) for at, tier in enumerate(WHOLE)]
            power = _lead(powers, turn + 4 * place, len(most))
            return 1 << min(power, room.bit_length() - 1)

        return self._lead_in_turn(self._whole - 1, most, odd, steps, choose)

    def next_usual(
        self, most: Mapping[str, int], odd: Odd, steps: int | None = None
    ) -> dict[str, int]:
        """Lengths that are usual. One axis after the other has those of USUAL, see `_lead`; the
        others have the first one of an order of theirs that there is room for.

        Args:
            most: of each axis.
            odd: what was seen; it is told of these.
            steps: the most of all axes together; None: they are never multiplied.
        """
        self._usual += 1

        def choose(axis: str, turn: int, place: int, room: int) -> int:
            lengths = [self._order(axis, (1 << 34) + at, tier) for at, tier in enumerate(USUAL)]
            if not place and (length := _lead(lengths, turn, len(most))) <= room:
                return length
            order = self._order(axis, (1 << 34) + len(USUAL), (*USUAL_BESIDE, *USUAL[0], *USUAL[1]))
            start = (turn + place) % len(order)
            turned = [*order[start:], *order[:start]]
            return next((length for length in turned if length <= room), room)

        return self._lead_in_turn(self._usual - 1, most, odd, steps, choose)

    def _lead_in_turn(
        self,
        number: int,
        most: Mapping[str, int],
        odd: Odd,
        steps: int | None,
        choose: Callable[[str, int, int, int], int],
    ) -> dict[str, int]:
        """The axes' lengths, of the one whose turn it is first.

        Args:
            number: of shapes of this kind before it.
            choose: a length of an axis in its so manieth turn, by its place and its room.
        """
        axes, sizes = list(most), dict[str, int]()
        turn, first = number // len(axes), (number + self.seed) % len(axes)
        for place in range(len(axes)):
            axis = axes[(first + place) % len(axes)]
            room = _find_room(sizes, most[axis], len(axes) - 1 - place, steps)
            sizes[axis] = choose(axis, turn, place, room)
            odd.see(axis, sizes[axis])
        return {axis: sizes[axis] for axis in axes}

    def next_thin(
        self, most: Mapping[str, int], rng: np.random.Generator, odd: Odd
    ) -> dict[str, int]:
        """One axis is 1 and another long, each pair in turn; of a pair any eight that follow each
        other differ modulo 8 along the long one, and eight in a row are of eight magnitudes.

        Args:
            most: of each axis.
            odd: what was seen; it is told of these.
        """
        pairs = list(itertools.permutations(most, 2)) or [(next(iter(most)),) * 2]
        turn, at = divmod(self._thin + self.seed % len(pairs), len(pairs))
        self._thin += 1
        thin, long = pairs[at]
        least, longest = THIN_LOGS
        longest = max(least, min(longest, math.log2(most[long])))
        block, place = divmod(turn, MAGNITUDES)
        order = self._order(f"{thin} {long}", (1 << 35) + block, range(MAGNITUDES))
        share = (order[place] + rng.random()) / MAGNITUDES
        length = int(2 ** (least + share * (longest - least))) // RESIDUES * RESIDUES
        length += self._take_in_turn(long, turn)
        beside = min(BESIDE[1], MOST_OF_TWO // length)
        sizes = {axis: int(rng.integers(BESIDE[0], beside, endpoint=True)) for axis in most}
        for axis, drawn in {**sizes, thin: 1, long: length}.items():
            sizes[axis] = min(drawn, most[axis])
            odd.see(axis, sizes[axis])
        return sizes

    def _take_in_turn(self, axis: str, number: int) -> int:
        """A remainder modulo RESIDUES; any 2**k of an axis that follow each other differ modulo
        that."""
        stride, start = self._make_rng(axis, 1 << 32).integers(RESIDUES, size=2)
        return int(number * (2 * stride + 1) + start) % RESIDUES

    def _order(self, axis: str, number: int, members: Sequence[int]) -> list[int]:
        return [int(one) for one in self._make_rng(axis, number).permutation(np.array(members))]

    def _make_rng(self, axis: str, number: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, number, *axis.encode()])


def _lead(tiers: Sequence[Sequence[int]], turn: int, axes: int) -> int:
    """What an axis has in its so manieth turn: all of the first tier, then as many of the second as
    a plan of so many axes has turns for, then the first again: all of it is in any OF_A_PLAN shapes
    that follow each other."""
    first, second = tiers
    others = min(len(second), max(1, OF_A_PLAN // axes - len(first)))
    period, at = divmod(turn, len(first) + others)
    if at < len(first):
        return first[at]
    return second[(period * others + at - len(first)) % len(second)]


def _find_room(sizes: Mapping[str, int], most: int, left: int, steps: int | None) -> int:
    """How long one axis more may be beside these.

    Args:
        most: of it alone.
        left: axes that are still to come: each has as many steps as one of 16, if it can.
        steps: of all axes together.
    """
    room = (steps or 1 << 62) // math.prod(sizes.values())
    if sizes:
        kept = room >> LEAST_KEPT * left
        room = max(kept, min(room, 1 << LEAST_KEPT))
    return max(1, min(most, room, *(MOST_OF_TWO // other for other in sizes.values())))
