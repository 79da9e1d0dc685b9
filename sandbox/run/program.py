# SPDX-License-Identifier: Apache-2.0
"""What a runner process is made of: what differs between the languages of candidates, and no more.

`native` and `host_code` beside this file each make one; `process.Runner` starts it. A Program is
data: nothing runs before a Runner is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from ...traces.records import Status
from ..builders.model import Built
from ..isolation.allow_list import AllowList
from ..isolation.model import Limits
from .begun import Begun, Plane


class Descriptors(NamedTuple):
    """What a runner finds open, in the order of its command line."""

    control: int
    inputs: int
    input_bytes: int
    outputs: int
    output_bytes: int
    filter: int
    gate: int
    looks: int

    @property
    def words(self) -> tuple[str, ...]:
        """The numbers as arguments, but for the gate's, which not every runner has."""
        return tuple(map(str, self[:-2]))

    @property
    def gated_words(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(map(str, self))


class Starter(Protocol):
    """Where a process of such programs may have been started before; see `starting.Waiting`."""

    def take(self, program: Program, plane: Plane) -> Begun:
        """A process with this program's files and this memory."""


@dataclass(frozen=True)
class Program:
    """One candidate, ready to be run."""

    built: Built
    files: Mapping[str, bytes]
    """Put into a folder of the process's own, which it can read and not write."""
    command: Callable[[Descriptors, Path], list[str]]
    """The command line, given the descriptors and that folder."""
    readable: tuple[Path, ...] = ()
    """What else it may read, at the same paths."""
    devices: tuple[Path, ...] = ()
    """Device nodes that it may open."""
    has_own_memory: bool = False
    """Whether tensors are copied to a device for a call and their outputs back after it."""
    calls: AllowList | None = None
    """System calls that its process may make once it is ready for a candidate; None: all that are
    on no deny-list."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """In addition to the threads' settings."""
    start_timeout_s: float = 30.0
    """Until our own runner is up; none of the candidate's code has run by then."""
    load_timeout_s: float = 10.0
    """What loading the candidate may take."""
    memory_bytes: int = 0
    """Resident memory of the runner itself, beyond what candidates get."""
    processes: int = 64
    open_files: int = 64
    file_bytes: int = Limits.file_bytes
    """Of a file that it makes, in memory too."""
    locked_bytes: int | None = Limits.locked_bytes
    """See Limits."""
    exits: Mapping[int, str] = field(default_factory=dict)
    """Exit statuses that say more than their number; the last line on stderr says the rest."""
    statuses: Mapping[int, Status] = field(default_factory=dict)
    """What an exit status stands for, where that is not CRASHED."""
    is_timed: bool = True
    """Whether the time of its calls counts: then it is found out what the runner itself takes."""
    instances: int = 1
    """So many of its timed calls are made at a time, each by threads for its share of the CPUs."""
    waiting: Starter | None = None
    """Where a process of such programs may have been started before."""
    may_leave_out: bool = False
    """Whether a call may leave answers out and say so (`Gate.coverage`); emulation only."""
    overhead_us: float = 0.0
    """What this runner needs beyond a native one: CPU time ahead of a call, time to answer."""

    def limits(self, *, wall_s: float, cpu_s: float, memory_bytes: int) -> Limits:
        """Those of its process; `memory_bytes` is for what it is given and for the candidate."""
        return Limits(
            wall_s=wall_s,
            cpu_s=cpu_s,
            memory_bytes=memory_bytes + self.memory_bytes,
            processes=self.processes,
            open_files=self.open_files,
            file_bytes=self.file_bytes,
            locked_bytes=self.locked_bytes,
        )
