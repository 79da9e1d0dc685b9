# SPDX-License-Identifier: Apache-2.0
"""Watches what interpreted programs do to memory, and in which order they run.

Triton's interpreter runs the programs of a grid one after the other and reads and writes through
plain pointers. Here its builder is given eyes: an access outside of every tensor, a write to an
input, and two programs of one launch that touch the same bytes without an order between them are
errors that name program and tensor; and programs run in the order that is asked for. Of a grid that
takes too long a sample runs, and it is known which memory the others would have decided.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .footprints import Footprints
from .patience import CallCoverage, Patience
from .regions import MANY, NOBODY, OutsideError, Region, Regions, marks_of
from .story import Story

HEAD = 64
"""Programs of a grid that runs whole and in plain order while there is patience for such grids."""
ALONE = 4
"""A program that takes so many times what a call has may be given up."""
LEAST = 8
"""Programs of each grid that run in any case."""
TILE = 4096
"""Elements of a tile for which a step counts once more."""
LATE_S = 4.0
"""CPU time of a call after which no program begins: it changes what is judged, never a verdict."""


class MemoryFault(Exception):
    """A kernel did with memory what no kernel may."""


class TooLongError(Exception):
    """The interpreter would take too long."""


class EnoughError(Exception):
    """The rest of a grid's programs is left out."""


class SpoiledError(Exception):
    """What programs that were left out would have written is needed: all of them must run."""


@dataclass
class HappensBefore:
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

    def __init__(self, schedules: Sequence[str], patience: Patience) -> None:
        self._schedules, self._patience = schedules, patience
        self._limit = patience.steps
        self._calls = 0
        self.schedule = schedules[0]
        self._memory = Regions()
        self.story = Story()
        self.given: list[int] = []
        """Addresses that the launch was given."""
        self.steps = 0
        self.kernel = ""
        self.program = 0
        self.place = (0, 0, 0)
        self.coverage = CallCoverage()
        self.needs_all = False
        """Whether the programs of some launch need each other, by what a call has shown."""
        self._budget = patience.steps
        self._began = time.process_time()
        self._grid = (1, 1, 1)
        self._ends: set[int] = set()
        """Programs that run even where the rest is left out."""
        self._prints = Footprints()
        self._is_end = False
        self._alone = self._small = 0
        self._turns: list[int] | None = None
        self._done = 0
        self._before = 0
        self._costs: dict[str, float] = {}
        self._has_met = False
        self._order = HappensBefore()

    @property
    def regions(self) -> list[Region]:
        """The tensors that kernels may reach."""
        return self._memory.all

    def next_schedule(self) -> str:
        """The schedule of the call that comes: they take turns."""
        self.schedule = self._schedules[self._calls % len(self._schedules)]
        self._calls += 1
        return self.schedule

    def begin(self, regions: list[Region]) -> None:
        """Starts a call on these tensors."""
        self._spend()
        self.steps, self._small, self.coverage = 0, 0, CallCoverage()
        self._began = time.process_time()
        patience = self._patience
        self._limit = patience.whole_share() if self.needs_all else patience.most_steps()
        self._budget = self._limit if self.needs_all else patience.share()
        self._memory = Regions()
        for region in regions:
            self.add(region)

    def add(self, region: Region) -> None:
        """Lets kernels reach one more tensor."""
        self._memory.add(region)

    def at(self, address: int) -> Region | None:
        """The region that holds an address."""
        return self._memory.at(address)

    def mark_written(self, address: int, size: int) -> None:
        """Host code has set this memory."""
        region = self.at(address)
        if region is not None and region.fresh is not None:
            offset = address - region.start
            while (offset | size) % region.word:
                region.divide(region.word // 2)
            first = offset // region.word
            region.fresh[first : first + size // region.word] = False

    def launch(self, grid: tuple[int, int, int]) -> None:
        """A grid begins: nobody has touched anything yet."""
        self._grid = grid
        count = grid[0] * grid[1] * grid[2]
        self._order = HappensBefore()
        self._done, self._has_met, self._before = 0, False, self.steps
        for region in self.regions:
            if region.touched:
                region.writer = region.reader = None
                region.touched = False
        patience = self._patience
        if not self.needs_all:
            self._budget = patience.share()
            if count <= HEAD:
                self._budget = max(self._budget, self.steps + patience.small_share())
        self._prints, self._ends = Footprints(grid), {0, count - 1}
        self._turns = self._order_programs(count)

    def _order_programs(self, count: int) -> list[int]:
        """The programs of a grid in their turns.

        Of a large grid the ends come first, and the rest at random where some may be left out.
        """
        lots = random.Random(f"{self.schedule} {self._calls}")
        turns = (
            list(range(count))
            if count <= self._limit
            else sorted({0, count - 1, *(lots.randrange(count) for _ in range(self._limit))})
        )
        if self.schedule == "reverse":
            turns.reverse()
        elif self.schedule.startswith("random:"):
            random.Random(self.schedule).shuffle(turns)
        is_long = self._costs.get(self.kernel, 2.0) * count > self._budget
        if count <= (LEAST if is_long else HEAD):
            return turns
        rest = [turn for turn in turns if turn not in self._ends]
        if is_long:
            lots.shuffle(rest)
        return [*sorted(self._ends, reverse=self.schedule == "reverse"), *rest]

    def leave(self) -> None:
        """A grid has ended; where programs were left out, marks what they may have written."""
        ny, nz = self._grid[1:]
        count = self._grid[0] * ny * nz
        self.coverage.programs += count
        self._costs[self.kernel] = (self.steps - self._before) / max(1, self._done)
        self._small += self.steps - self._before if count <= HEAD else 0
        if self._done >= count:
            return
        self.coverage.left_out += count - self._done
        given = {id(self.at(address)) for address in self.given}
        for region in self.regions:
            # What all have read and nobody wrote is no output; what nobody touched may be one.
            is_output = region.is_writable and id(region) in given and not region.touched
            if not is_output and (region.writer is None or (region.writer == NOBODY).all()):
                continue
            silent = marks_of(region, "writer") == NOBODY
            theirs = self._prints.left_out(region.start, silent.size, region.word)
            if region.touched and theirs is not None:
                # What is nobody's has not been written: it is judged as it is.
                silent &= theirs
            region.unknown = silent if region.unknown is None else region.unknown | silent

    def turn(self, x: int, y: int, z: int) -> tuple[int, int, int]:
        """Which program runs now, where the interpreter would run (x, y, z).

        Raises:
            EnoughError: the rest of them is left out.
            SpoiledError: so it must be, and those that ran cannot stand for themselves.
        """
        _, ny, nz = self._grid
        assert self._turns is not None
        number = (x * ny + y) * nz + z
        is_over = number >= LEAST and (self.steps >= self._budget or self._is_late())
        if number >= len(self._turns) or (is_over and not self._ends):
            self._cut()
        self.program = min(self._ends) if is_over else self._turns[number]
        self._is_end = self.program in self._ends
        self._ends.discard(self.program)
        self._prints.begin(self.program)
        self._done += 1
        self._alone = self.steps
        self.steps += 1
        rest, z = divmod(self.program, nz)
        x, y = divmod(rest, ny)
        self.place = (x, y, z)
        return self.place

    def step(self, work: int = 0) -> None:
        """One operation on memory or one product of matrices, on so many elements."""
        self.steps += 1 + work // TILE
        is_due = self._done <= LEAST or self._is_end
        limit = self._limit if is_due else min(self._limit, ALONE * self._budget)
        if self._done > 1 and self.steps > limit:
            self._give_up()
        most = self._limit if self.needs_all else self._patience.steps
        if self.steps - self._alone > most:
            raise TooLongError(
                f"one program takes more than {most} loads, stores and products in the "
                "interpreter: give the work to more programs, or use larger tiles"
            )

    def _is_late(self) -> bool:
        return time.process_time() - self._began > LATE_S

    def _give_up(self) -> None:
        """Leaves out the rest of a grid, with what the program that runs has written."""
        self._done -= 1
        self._prints.forget(self.program)
        for region in self.regions:
            for marks in (region.writer, region.reader) if region.touched else ():
                if marks is not None:
                    marks[marks == self.program] = NOBODY
            # What it alone has looked at, maybe to store to it later, is as nobody has touched it.
            region.touched = region.touched and not (region.is_writable and _is_untouched(region))
        self._cut()

    def _cut(self) -> None:
        if self._has_met:
            raise SpoiledError
        raise EnoughError

    def read(self, pointers: Any, mask: Any, size: int) -> None:
        """Checks a load before it is made."""
        self.step(np.size(pointers))
        for region, words in self._find_regions(pointers, mask, size, "reads"):
            if not words.size:
                continue
            if region.unknown is not None and region.unknown[words].any():
                raise SpoiledError
            self._note_read(region, words, "reads")
            writers = marks_of(region, "writer")[words]
            foreign = self._foreign(writers)
            if foreign is not None:
                self._race(region, "reads what", foreign, "writes")
            readers = marks_of(region, "reader")
            old = readers[words]
            readers[words] = np.where((old == NOBODY) | (old == self.program), self.program, MANY)

    def note_integers(self, pointers: Any, values: Any) -> None:
        """A load has given these integers, which may say where to store."""
        self._prints.note_integers(self.program, pointers, values)

    def write(
        self, pointers: Any, mask: Any, size: int, unchanged: Callable[[], Any] | None = None
    ) -> None:
        """Checks a store before it is made; `unchanged` tells which elements hold it already.

        Programs may overlap where they store the same: a last tile that is moved back does.
        """
        self.step(np.size(pointers))
        self._prints.note(self.program, pointers, size)
        for region, words in self._find_regions(pointers, mask, size, "writes"):
            if not region.is_writable:
                raise MemoryFault(f"{self._name_program()} writes to the input {region.name}")
            writers, readers = marks_of(region, "writer"), marks_of(region, "reader")
            for marks, doing, verb in (
                (writers, "writes where", "writes something else"),
                (readers, "writes what", "reads"),
            ):
                foreign = self._foreign(marks[words])
                if foreign is not None and unchanged is not None:
                    differing = np.broadcast_to(mask, pointers.shape) & ~unchanged()
                    for other, fewer in self._find_regions(pointers, differing, size, "writes"):
                        foreign = self._foreign(marks[fewer]) if other is region else foreign
                    foreign = foreign if differing.any() else None
                if foreign is not None:
                    self._race(region, doing, foreign, verb)
            writers[words] = self.program
            self._note_write(region, words)
            if region.unknown is not None:
                region.unknown[words] = False

    def exchange(self, pointers: Any, mask: Any, size: int, *, orders: bool) -> None:
        """Checks an atomic operation before it is made.

        One on a single address orders the programs that meet there, unless it is relaxed. Those on
        whole tiles are sums, which nobody waits for.
        """
        self.step(np.size(pointers))
        self._has_met = True
        addresses = np.asarray(pointers).reshape(-1)
        for region, words in self._find_regions(pointers, mask, size, "writes"):
            if not region.is_writable:
                raise MemoryFault(f"{self._name_program()} writes to the input {region.name}")
            if orders and addresses.size == 1:
                self._order.meet(self.program, int(addresses[0]))
            self._note_read(region, words, "adds to")
            self._note_write(region, words)
            foreign = self._foreign(marks_of(region, "writer")[words])
            if foreign is not None:
                self._race(region, "updates atomically what", foreign, "writes plainly")

    def _note_read(self, region: Region, words: Any, doing: str) -> None:
        if self.story.is_told and region.fresh is not None and region.fresh[words].any():
            self.story.reads_unwritten(self, region.name, doing)

    def _note_write(self, region: Region, words: Any) -> None:
        if not self.story.is_told:
            return
        if region.sites is None:
            region.sites = np.zeros(region.words, dtype=np.int32)
        region.sites[words] = self.story.site(self)
        if region.fresh is not None:
            region.fresh[words] = False

    def _foreign(self, marks: Any) -> int | None:
        """Another program among these marks that this one has not heard of."""
        others = marks[(marks != NOBODY) & (marks != self.program)]
        if not others.size:
            return None
        others = np.unique(others)
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
            f"{self._name_program()} {doing} {whom} of the same launch {verb} ({region.name}), "
            "in no order: use atomics, or a second launch"
        )

    def _spend(self) -> None:
        """Takes off what there is what the last call took beyond its due."""
        self._patience.spend(self.steps, self._small, is_whole=self.needs_all)

    def _find_regions(
        self, pointers: Any, mask: Any, size: int, verb: str
    ) -> list[tuple[Region, Any]]:
        try:
            return self._memory.find_regions(pointers, mask, size)
        except OutsideError as outside:
            raise MemoryFault(f"{self._name_program()} {verb} {outside}") from None

    def _name_program(self) -> str:
        return f"program {self.place} of kernel {self.kernel}"


def _is_untouched(region: Region) -> bool:
    """Whether nobody has read or written any of it, by its marks."""
    return all(
        marks is None or bool((marks == NOBODY).all()) for marks in (region.writer, region.reader)
    )
