"""What a launch plan comes to for one set of axes: concrete launches, as data.

`parse` reads the front matter, `resolve` evaluates it for one workload and holds it against the
limits of an architecture. What consumes launches (the emulator, the device's launcher) sees only
the table that `pack` makes: 64-bit little-endian words,

    launches,
    then for each: kernel, grid x y z, block x y z, shared bytes, cluster x y z, arguments,
                   then for each argument: kind, value, offset in bytes.

A kernel is an index into the names of `Launches.kernels`; ZERO_FILL stands for setting the buffer
in its only argument to zero bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

Extent = tuple[int, int, int]

ZERO_FILL = -1
"""In place of a kernel: the launch sets one buffer to zero bytes."""


class ArgumentKind(IntEnum):
    """How the value of a kernel's argument is to be read."""

    INTEGER = 0
    """A literal; the parameter takes its low 1, 2, 4 or 8 bytes."""
    FLOAT32 = 1
    """A literal: the 32 bits of the float."""
    FLOAT64 = 2
    """A literal: the 64 bits of the double."""
    TENSOR = 3
    """The address of an input or output: its place among the problem's tensors; plus the offset."""
    SCRATCH = 4
    """The address of a scratch buffer: its place among `Launches.scratch`; plus the offset."""


@dataclass(frozen=True)
class Argument:
    """One argument of one launch."""

    kind: ArgumentKind
    value: int
    offset: int = 0
    """Bytes from the start of the buffer; 0 for literals."""


@dataclass(frozen=True)
class Launch:
    """One launch with everything that it depends on evaluated."""

    kernel: int
    """Index into Launches.kernels, or ZERO_FILL."""
    grid: Extent = (1, 1, 1)
    block: Extent = (1, 1, 1)
    shared_bytes: int = 0
    """Dynamic shared memory."""
    cluster: Extent = (1, 1, 1)
    arguments: tuple[Argument, ...] = ()

    @property
    def threads(self) -> int:
        """Threads in a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def blocks(self) -> int:
        """Blocks in the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]


@dataclass(frozen=True)
class Scratch:
    """One work buffer, owned and poisoned by the runner."""

    name: str
    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Launches:
    """Everything that one call of a candidate does, in order."""

    kernels: tuple[str, ...]
    """Names in the source: of functions, or of template instances such as `reduce<float, 4>`."""
    launches: tuple[Launch, ...]
    scratch: tuple[Scratch, ...] = ()

    def pack(self) -> bytes:
        """The table, see the head of this module."""
        words = [len(self.launches)]
        for launch in self.launches:
            words += [launch.kernel, *launch.grid, *launch.block, launch.shared_bytes]
            words += [*launch.cluster, len(launch.arguments)]
            for argument in launch.arguments:
                words += [argument.kind, argument.value, argument.offset]
        return struct.pack(f"<{len(words)}q", *words)
