# SPDX-License-Identifier: Apache-2.0
"""How the limits of a job are put into force: rlimits before it starts, and what a watcher checks.

It knows the figures; `job` acts on them.
"""

from __future__ import annotations

import math
import os
import resource
from dataclasses import dataclass, field

from .cgroup import Cgroup
from .model import End, Limits
from .tree import TreeUsage, own_tasks

FLOOD_FACTOR = 16
"""A job that writes this many times the kept output is ended."""

Rlimit = tuple[int, int, int]
"""Resource, soft, hard."""


def rlimits(limits: Limits, processes: int | None) -> list[Rlimit]:
    """The rlimits of one job; `processes` is the value for RLIMIT_NPROC, None leaves it alone.

    There is none for address space: CUDA and sanitizers reserve far more than they use.
    """
    cpu = math.ceil(limits.cpu_s)
    wanted = [
        (resource.RLIMIT_CPU, cpu, cpu + 1),
        (resource.RLIMIT_FSIZE, limits.file_bytes, limits.file_bytes),
        (resource.RLIMIT_NOFILE, limits.open_files, limits.open_files),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_SIGPENDING, 64, 64),
    ]
    if limits.locked_bytes is not None:
        wanted.append((resource.RLIMIT_MEMLOCK, limits.locked_bytes, limits.locked_bytes))
    if processes is not None:
        wanted.append((resource.RLIMIT_NPROC, processes, processes))
    return [_below_hard(*one) for one in wanted]


def _below_hard(which: int, soft: int, hard: int) -> Rlimit:
    """Never above what this process may set."""
    _, ceiling = resource.getrlimit(which)
    if ceiling == resource.RLIM_INFINITY:
        return which, soft, hard
    return which, min(soft, ceiling), min(hard, ceiling)


def shared_uid_processes(limits: Limits) -> int:
    """RLIMIT_NPROC for a job that runs as this user, all of whose threads the kernel counts."""
    return own_tasks() + limits.processes


def kernel_version() -> tuple[int, int]:
    """Major and minor number of the running kernel."""
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(c for c in minor if c.isdigit()) or 0)


@dataclass
class Stream:
    """What a job wrote to one stream: the first bytes are kept, the rest is counted."""

    keep: int
    kept: bytearray = field(default_factory=bytearray)
    total: int = 0

    def take(self, chunk: bytes) -> None:
        """Adds what was read."""
        self.total += len(chunk)
        self.kept += chunk[: max(0, self.keep - len(self.kept))]

    @property
    def is_flood(self) -> bool:
        """Whether the job wrote so much that it is to be ended."""
        return self.total > FLOOD_FACTOR * self.keep


def _mib(number: int) -> str:
    return f"{number / (1 << 20):.1f} MiB"


def find_exceeded(limits: Limits, used: TreeUsage, cgroup: Cgroup | None) -> tuple[End, str] | None:
    """The first limit that a sample of the tree is beyond, with its figures for people."""
    if cgroup is not None and cgroup.memory is not None:
        # Only the kernel's account counts here: resident pages of libraries belong to nobody.
        if cgroup.oom_kills():
            limit = _mib(limits.memory_bytes)
            return End.MEMORY, f"the memory limit of {limit} was reached (cgroup)"
    elif used.resident_bytes > limits.memory_bytes:
        held, limit = _mib(used.resident_bytes), _mib(limits.memory_bytes)
        return End.MEMORY, f"{held} resident, the limit is {limit}"
    if used.cpu_s > limits.cpu_s:
        return End.CPU, f"{used.cpu_s:.2f} s of CPU time, the limit is {limits.cpu_s:g} s"
    if used.temporary_bytes > limits.temporary_bytes:
        held, limit = _mib(used.temporary_bytes), _mib(limits.temporary_bytes)
        return End.TEMPORARY, f"{held} of temporary files, the limit is {limit}"
    if used.tasks > limits.processes + HOUSEKEEPING_TASKS:
        return End.PROCESSES, f"{used.tasks} tasks, the limit is {limits.processes}"
    return None


HOUSEKEEPING_TASKS = 3
"""The jail's own processes in the tree: bubblewrap and its init, or the supervisor."""
