# SPDX-License-Identifier: Apache-2.0
"""What the access build's ledger tells: races, and which thread wrote each element last.

The runtime in the candidate's process keeps it (sandbox/cuda_on_cpu/ledger.h), so it is a claim.
What it says of a block is the linear number in the grid; here it becomes the index that CUDA has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..plan.model import ZERO_FILL, Extent, Launch, Launches

_WORD = 4
"""Bytes of which the ledger keeps one writer."""
_WRITER = np.dtype(
    [
        ("code", "<u8"),
        ("line", "<i4"),
        ("launch", "<u4"),
        ("block", "<u4"),
        ("rank", "<u4"),
    ]
)
"""`Writer` in ledger.h."""
_MOST_CODES = 512
_MOST = 1 << 48
"""No honest place in a library is as far from its start."""
LineOf = Callable[[Mapping[str, Any]], int]
"""The line of a place: its `line`, or that of its `code`; 0 where it is none of the candidate."""


@dataclass(frozen=True)
class Race:
    """Two accesses to one word of memory that nothing orders; one of them writes."""

    first_line: int
    first_operation: str
    second_line: int
    second_operation: str
    threads: tuple[int, int]
    """An example: ranks in their blocks."""
    count: int
    buffer: str = ""
    """A tensor or a scratch buffer; empty for shared memory."""
    blocks: tuple[Extent, Extent] = ((0, 0, 0), (0, 0, 0))
    is_weak: bool = False
    """A plain read of what others change by atomics, which may be meant."""
    is_flight: bool = False
    """One is an asynchronous copy into shared memory that no wait has brought to its end."""

    @property
    def lines(self) -> tuple[int, int]:
        """Of both accesses."""
        return self.first_line, self.second_line

    @property
    def sentence(self) -> str:
        """For a person or a Coder."""
        return self.word_race(self.buffer or "shared memory")

    def word_race(self, what: str) -> str:
        """The sentence, with a name for the memory."""
        one, other = self.threads
        first = f"{self.first_operation} at line {self.first_line}"
        second = f"{self.second_operation} at line {self.second_line}"
        if self.blocks[0] != self.blocks[1]:
            return (
                f"race on {what}: {first} by block {self.blocks[0]} and {second} by block "
                f"{self.blocks[1]} of one launch, and no atomic orders them"
            )
        if self.is_flight:
            return (
                f"race on {what}: {first} and {second}, by threads {one} and {other} of one block: "
                "an asynchronous copy writes there, and nothing has waited for it"
            )
        return (
            f"race on {what}: {first} and {second}, by threads {one} and {other} of one block, "
            "with no barrier between them"
        )


@dataclass(frozen=True)
class MissingLane:
    """A shuffle that takes the value of a lane which does not take part: undefined in CUDA."""

    line: int
    thread: int
    """An example: rank in its block."""
    lane: int
    """The lane that was not there."""
    count: int

    @property
    def sentence(self) -> str:
        """For a person or a Coder."""
        return (
            f"the shuffle at line {self.line} takes the value of lane {self.lane}, which takes no "
            f"part (thread {self.thread} of its block asks)"
        )


@dataclass(frozen=True)
class Unset:
    """A read, or an atomic, of an output or a scratch buffer that nothing had written."""

    line: int
    operation: str
    buffer: str
    count: int

    @property
    def sentence(self) -> str:
        """For a person or a Coder."""
        what = "reads" if self.operation == "read" else "adds to"
        return f"line {self.line} {what} {self.buffer}, which nothing has written before"


@dataclass(frozen=True)
class Writer:
    """The thread that wrote an element last."""

    line: int
    kernel: str
    block: Extent
    thread: Extent


class Writers:
    """Of each element of each output."""

    def __init__(
        self,
        tables: Mapping[str, np.ndarray],
        launches: Launches,
        line_of: LineOf,
    ) -> None:
        """`tables` has the writers of each output, one for every word of it."""
        self._tables = tables
        self._kernels = launches.kernels
        self._launches = [one for one in launches.launches if one.kernel != ZERO_FILL]
        self._line_of = line_of

    def find_writer(self, name: str, word: int) -> Writer | None:
        """Who wrote this word of the output; None: no thread."""
        row = self._tables[name][word]
        number = int(row["launch"])
        if not 0 < number <= len(self._launches):
            return None
        launch = self._launches[number - 1]
        return Writer(
            line=self._line_of({"code": int(row["code"]), "line": int(row["line"])}),
            kernel=self._kernels[launch.kernel],
            block=_index(int(row["block"]), launch.grid),
            thread=_index(int(row["rank"]), launch.block),
        )

    def find_nearest(self, name: str, word: int) -> int | None:
        """The word nearest to this one that any thread wrote."""
        written = np.flatnonzero(self._tables[name]["launch"])
        if not written.size:
            return None
        return int(written[np.abs(written - word).argmin()])


def words_of(size: int) -> int:
    """Words that the ledger keeps of a buffer of so many bytes."""
    return -(-size // _WORD)


def table_bytes(sizes: Iterable[int]) -> int:
    """Of the table for outputs of these sizes."""
    return sum(words_of(size) for size in sizes) * _WRITER.itemsize


def tables(raw: bytes, sizes: Mapping[str, int]) -> dict[str, np.ndarray]:
    """The table of writers of each output, as the runtime left them."""
    rows, found, start = np.frombuffer(raw, _WRITER), {}, 0
    for name, size in sizes.items():
        found[name] = rows[start : start + words_of(size)]
        start += words_of(size)
    return found


def codes(made: Mapping[str, np.ndarray]) -> set[int]:
    """The places in the code that wrote anything."""
    found = {int(code) for table in made.values() for code in np.unique(table["code"]) if code}
    return {code for code in sorted(found)[:_MOST_CODES] if code < _MOST}


def races(
    told: Iterable[Mapping[str, Any]],
    line_of: LineOf,
    buffers: Sequence[str],
    launches: Sequence[Launch],
) -> tuple[Race, ...]:
    """One for each pair of lines and each buffer."""
    sums: dict[tuple[Any, ...], Race] = {}
    for one in told:
        if one["what"] != "race" or one["buffer"] > len(buffers) or one["launch"] >= len(launches):
            continue
        grid = launches[one["launch"]].grid
        sides = zip((one["first"], one["second"]), one["threads"], one["blocks"], strict=True)
        # Which of the two came first depends on the schedule, and says nothing.
        (first, thread, block), (second, other, at) = sorted(
            ((line_of(place), str(place["kind"])), int(rank), _index(int(number), grid))
            for place, rank, number in sides
        )
        buffer = buffers[one["buffer"] - 1] if one["buffer"] else ""
        key = (*first, *second, buffer, bool(one["is_weak"]), bool(one["is_flight"]))
        before = sums.get(key)
        count = int(one["count"]) + (before.count if before else 0)
        threads = before.threads if before else (thread, other)
        blocks = before.blocks if before else (block, at)
        sums[key] = Race(
            *first,
            *second,
            threads=threads,
            count=count,
            buffer=buffer,
            blocks=blocks,
            is_weak=bool(one["is_weak"]),
            is_flight=bool(one["is_flight"]),
        )
    return tuple(sums[key] for key in sorted(sums))


def parse_missing(told: Iterable[Mapping[str, Any]]) -> tuple[MissingLane, ...]:
    """Shuffles from lanes that were not there."""
    return tuple(
        MissingLane(one["line"], one["thread"], one["lane"], one["count"])
        for one in told
        if one["what"] == "missing"
    )


def parse_unset(
    told: Iterable[Mapping[str, Any]], line_of: LineOf, buffers: Sequence[str]
) -> tuple[Unset, ...]:
    """One for each line, operation and buffer."""
    sums: dict[tuple[int, str, str], int] = {}
    for one in told:
        if one["what"] == "unset" and 0 < one["buffer"] <= len(buffers):
            key = line_of(one), str(one["kind"]), buffers[one["buffer"] - 1]
            sums[key] = sums.get(key, 0) + int(one["count"])
    return tuple(Unset(*key, count) for key, count in sorted(sums.items()))


def _index(number: int, extent: Extent) -> Extent:
    x, y, z = extent
    number %= max(1, math.prod(extent))
    return number % x, number // x % y, number // x // y % max(1, z)
