# SPDX-License-Identifier: Apache-2.0
"""What a launch plan comes to for one set of axes: concrete launches, as data.

`parse` reads the front matter, `resolve` evaluates it for one workload and holds it against the
limits of an architecture. What consumes launches (the emulator, the device's launcher) sees only
the table that `pack` makes: 64-bit little-endian words,

    launches,
    then for each: kernel, grid x y z, block x y z, shared bytes, cluster x y z, arguments,
                   then for each argument: kind, value, offset in bytes.

A kernel is an index into the names of `Launches.kernels`. ZERO_FILL stands for setting a buffer to
zero bytes: its arguments are the buffer and, as an INTEGER, how many bytes.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

Extent = tuple[int, int, int]

ZERO_FILL = -1
"""In place of a kernel: the launch sets bytes of a buffer to zero."""


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
    """numpy's name, or `bfloat16`."""
    shape: tuple[int, ...]
    """At least one element."""


@dataclass(frozen=True)
class Dtype:
    """A Triton constant that stands for a type: `tl.float16`."""

    name: str
    """`float16`."""


Constant = int | float | bool | str | Dtype


@dataclass(frozen=True)
class Specialisation:
    """What a Triton kernel is compiled for, as its launch declares it."""

    kernel: str
    """The function in the source."""
    constants: tuple[tuple[str, Constant], ...]
    """The tl.constexpr parameters that the plan gives, by name."""
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int = 0
    """Registers per thread at most; 0: as many as the compiler likes."""

    @property
    def label(self) -> str:
        """`softmax[BLOCK=1024, num_warps=8]`: different for what differs."""
        said = [f"{name}={getattr(value, 'name', repr(value))}" for name, value in self.constants]
        said += [f"num_warps={self.num_warps}", f"num_stages={self.num_stages}"]
        said += [f"num_ctas={self.num_ctas}"] if self.num_ctas > 1 else []
        said += [f"maxnreg={self.maxnreg}"] if self.maxnreg else []
        return f"{self.kernel}[{', '.join(said)}]"


@dataclass(frozen=True)
class Launches:
    """Everything that one call of a candidate does, in order."""

    kernels: tuple[str, ...]
    """Names in the source: of functions, or of template instances such as `reduce<float, 4>`. For
    CUDA all that the plan names, whatever a workload needs of them, so that one build serves all;
    for Triton the labels of `specialisations`."""
    launches: tuple[Launch, ...]
    scratch: tuple[Scratch, ...] = ()
    specialisations: tuple[Specialisation, ...] = ()
    """Beside `kernels` where the language is Triton, else empty."""

    def pack(self) -> bytes:
        """The table, see the head of this module."""
        words = [len(self.launches)]
        for launch in self.launches:
            words += [launch.kernel, *launch.grid, *launch.block, launch.shared_bytes]
            words += [*launch.cluster, len(launch.arguments)]
            for argument in launch.arguments:
                words += [argument.kind, argument.value, argument.offset]
        return struct.pack(f"<{len(words)}q", *words)
