"""Watches what interpreted programs do to memory, and in which order they run.

Triton's interpreter runs the programs of a grid one after the other and reads and writes through
plain pointers. Here its builder is given eyes: an access outside of every tensor, a write to an
input, and two programs of one launch that touch the same bytes without an order between them are
errors that name program and tensor; programs run in the order that is asked for; and there is an
end to patience.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

NOBODY, MANY = -1, -2
WORD = 4
"""Bytes that share a mark of who touched them last, but for smaller elements."""


class MemoryFault(Exception):
    """A kernel did with memory what no kernel may."""


class TooLongError(Exception):
    """The interpreter would take too long."""


@dataclass
class Region:
    """One tensor that kernels may reach."""

    name: str
    start: int
    bytes: int
    is_writable: bool
    writer: Any = None
    """For each word the program of this launch that wrote it."""
    reader: Any = None
    touched: bool = False

    @property
    def end(self) -> int:
        """The first byte behind it."""
        return self.start + self.bytes


@dataclass
class Order:
    """Who comes after whom by what atomics say: programs that a program has heard of."""

    heard: dict[int, set[int]] = field(default_factory=dict)
    told: dict[int, set[int]] = field(default_factory=dict)

    def meet(self, program: int, address: int) -> None:
        """One program passes by an address at which others have left word."""
        known = self.heard.setdefault(program, set())
        left = self.told.setdefault(address, set())
        known |= left
        left |= known | {program}


class Watch:
    """What is known of one call."""

    def __init__(self, schedules: Sequence[str], steps: int) -> None:
        self._schedules, self._limit = schedules, steps
        self._calls = 0
        self.schedule = schedules[0]
        self.regions: list[Region] = []
        self._starts = np.zeros(0, dtype=np.uint64)
        self.steps = 0
        self.kernel = ""
        self.program = 0
        self.place = (0, 0, 0)
        self._grid = (1, 1, 1)
        self._turns: list[int] | None = None
        self._order = Order()

    def next_schedule(self) -> str:
        """The schedule of the call that comes: they take turns."""
        self.schedule = self._schedules[self._calls % len(self._schedules)]
        self._calls += 1
        return self.schedule

    def begin(self, regions: list[Region]) -> None:
        """Starts a call on these tensors."""
        self.steps = 0
        self.regions = []
        for region in regions:
            self.add(region)

    def add(self, region: Region) -> None:
        """Lets kernels reach one more tensor."""
        if not region.bytes:
            return
        self.regions = [r for r in self.regions if r.end <= region.start or region.end <= r.start]
        self.regions = sorted([*self.regions, region], key=lambda r: r.start)
        self._starts = np.array([r.start for r in self.regions], dtype=np.uint64)

    def launch(self, grid: tuple[int, int, int]) -> None:
        """A grid begins: nobody has touched anything yet."""
        self._grid = grid
        count = grid[0] * grid[1] * grid[2]
        if count > self._limit:
            raise TooLongError(
                f"a grid of {count} programs is too large for the interpreter, which is given "
                f"{self._limit} steps a call: give each program more work, or try a smaller "
                "workload"
            )
        self._order = Order()
        for region in self.regions:
            if region.touched:
                region.writer = region.reader = None
                region.touched = False
        turns = list(range(count))
        if self.schedule == "reverse":
            turns.reverse()
        elif self.schedule.startswith("random:"):
            random.Random(self.schedule).shuffle(turns)
        self._turns = turns

    def turn(self, x: int, y: int, z: int) -> tuple[int, int, int]:
        """Which program runs now, where the interpreter would run (x, y, z)."""
        _, ny, nz = self._grid
        assert self._turns is not None
        self.program = self._turns[(x * ny + y) * nz + z]
        rest, z = divmod(self.program, nz)
        x, y = divmod(rest, ny)
        self.place = (x, y, z)
        return self.place

    def step(self) -> None:
        """One operation on memory or one product of matrices."""
        self.steps += 1
        if self.steps > self._limit:
            raise TooLongError(
                f"one call takes more than {self._limit} loads, stores and products in the "
                "interpreter: use larger tiles, or try a smaller workload"
            )

    def read(self, pointers: Any, mask: Any, size: int) -> None:
        """Checks a load before it is made."""
        self.step()
        for region, words in self._found(pointers, mask, size, "reads"):
            writers = _marks(region, "writer")[words]
            foreign = self._foreign(writers)
            if foreign is not None:
                self._race(region, "reads what", foreign, "writes")
            readers = _marks(region, "reader")
            old = readers[words]
            readers[words] = np.where((old == NOBODY) | (old == self.program), self.program, MANY)

    def write(
        self, pointers: Any, mask: Any, size: int, unchanged: Callable[[], Any] | None = None
    ) -> None:
        """Checks a store before it is made; `unchanged` tells which elements hold it already.

        Programs may overlap where they store the same: a last tile that is moved back does.
        """
        self.step()
        for region, words in self._found(pointers, mask, size, "writes"):
            if not region.is_writable:
                raise MemoryFault(f"{self._who()} writes to the input {region.name}")
            writers, readers = _marks(region, "writer"), _marks(region, "reader")
            for marks, doing, verb in (
                (writers, "writes where", "writes something else"),
                (readers, "writes what", "reads"),
            ):
                foreign = self._foreign(marks[words])
                if foreign is not None and unchanged is not None:
                    differing = np.broadcast_to(mask, pointers.shape) & ~unchanged()
                    for other, fewer in self._found(pointers, differing, size, "writes"):
                        foreign = self._foreign(marks[fewer]) if other is region else foreign
                    foreign = foreign if differing.any() else None
                if foreign is not None:
                    self._race(region, doing, foreign, verb)
            writers[words] = self.program

    def exchange(self, pointers: Any, mask: Any, size: int, *, orders: bool) -> None:
        """Checks an atomic operation before it is made.

        One on a single address orders the programs that meet there, unless it is relaxed. Those on
        whole tiles are sums, which nobody waits for.
        """
        self.step()
        addresses = np.asarray(pointers).reshape(-1)
        for region, words in self._found(pointers, mask, size, "writes"):
            if not region.is_writable:
                raise MemoryFault(f"{self._who()} writes to the input {region.name}")
            if orders and addresses.size == 1:
                self._order.meet(self.program, int(addresses[0]))
            foreign = self._foreign(_marks(region, "writer")[words])
            if foreign is not None:
                self._race(region, "updates atomically what", foreign, "writes plainly")

    def _found(self, pointers: Any, mask: Any, size: int, verb: str) -> list[tuple[Region, Any]]:
        """The regions that an access reaches, with the words in each."""
        pointers = np.asarray(pointers, dtype=np.uint64)
        mask = np.broadcast_to(np.asarray(mask, dtype=bool), pointers.shape)
        addresses = pointers[mask]
        if not addresses.size:
            return []
        places = np.searchsorted(self._starts, addresses, side="right").astype(np.int64) - 1
        found = []
        for place in np.unique(places):
            inside = addresses[places == place]
            region = self.regions[int(place)] if place >= 0 else None
            last = int(inside.max()) + size
            if region is None or last > region.end:
                self._outside(int(inside.max()) if region else int(inside.min()), size, verb)
            assert region is not None
            region.touched = True
            offsets = (inside - np.uint64(region.start)).astype(np.int64)
            words = offsets // WORD
            if size > WORD:
                words = np.concatenate([words + at for at in range(size // WORD)])
            elif size < WORD:
                # Neighbours share a word: not told apart, so not marked.
                words = words[:0]
            found.append((region, words))
        return found

    def _outside(self, address: int, size: int, verb: str) -> None:
        def distance(region: Region) -> int:
            return min(abs(address - region.start), abs(address - region.end))

        if not self.regions:
            raise MemoryFault(f"{self._who()} {verb} outside of every tensor")
        near = min(self.regions, key=distance)
        if address < near.start:
            where = f"{near.start - address} bytes before the start of {near.name}"
        else:
            element = (address - near.start) // size
            where = (
                f"{address - near.end} bytes past the end of {near.name}, at element {element} of "
                f"{near.bytes // size}"
            )
        raise MemoryFault(f"{self._who()} {verb} out of bounds: {where}")

    def _foreign(self, marks: Any) -> int | None:
        """Another program among these marks that this one has not heard of."""
        others = np.unique(marks[(marks != NOBODY) & (marks != self.program)])
        known = self._order.heard.get(self.program, set())
        for other in others.tolist():
            if other == MANY:
                # Which ones is not kept; where atomics order programs that must do.
                if not known:
                    return MANY
            elif other not in known:
                return int(other)
        return None

    def _race(self, region: Region, doing: str, other: int, verb: str) -> None:
        ny, nz = self._grid[1], self._grid[2]
        rest, z = divmod(max(other, 0), nz)
        x, y = divmod(rest, ny)
        whom = "another program" if other == MANY else f"program ({x}, {y}, {z})"
        raise MemoryFault(
            f"{self._who()} {doing} {whom} of the same launch {verb} ({region.name}), in no order: "
            "use atomics, or a second launch"
        )

    def _who(self) -> str:
        return f"program {self.place} of kernel {self.kernel}"


def _marks(region: Region, kind: str) -> Any:
    """Who touched each word of a region, made when it is first asked for."""
    marks = getattr(region, kind)
    if marks is None:
        marks = np.full(-(-region.bytes // WORD) + 1, NOBODY, dtype=np.int32)
        setattr(region, kind, marks)
    return marks
