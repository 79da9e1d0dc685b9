# SPDX-License-Identifier: Apache-2.0
"""Hardware counters of a process by `perf_event_open` (Linux man-pages, perf_event_open(2)).

Every thread of a process is counted from outside; what it starts later is counted as well. Virtual
machines often have no counters, and systems may forbid them (`kernel.perf_event_paranoid` above 2):
then a reason is given in their place. Page faults are counted by the kernel itself, everywhere.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ...traces.records import Level, Metric

_CALL = {"x86_64": 298, "aarch64": 241}
"""The number of perf_event_open."""
_ATTRIBUTES = struct.Struct("<IIQQQQQIIQ")
_DISABLED, _INHERIT, _NO_KERNEL, _NO_HYPERVISOR = 1 << 0, 1 << 1, 1 << 5, 1 << 6
_TIMES = 0b11
"""Read beside a count: how long it was enabled, and how long it ran."""
_READ = struct.Struct("<QQQ")
_ENABLE, _DISABLE = 0x2400, 0x2401
_LINE = 64
_HARDWARE, _SOFTWARE, _CACHE = 0, 1, 3


class _Event(NamedTuple):
    type: int
    config: int


EVENTS = {
    "task_clock": _Event(_SOFTWARE, 1),
    "page_faults": _Event(_SOFTWARE, 2),
    "cycles": _Event(_HARDWARE, 0),
    "instructions": _Event(_HARDWARE, 1),
    "cache_misses": _Event(_HARDWARE, 3),
    "branches": _Event(_HARDWARE, 4),
    "branch_misses": _Event(_HARDWARE, 5),
    "l1_reads": _Event(_CACHE, 0),
    "l1_misses": _Event(_CACHE, 1 << 16),
}
"""`task_clock` is in nanoseconds; the caches' are those of L1 for data, reads."""


@dataclass
class Counts:
    """What a process did while it was counted."""

    totals: dict[str, float] = field(default_factory=dict)
    """By the names of EVENTS; those that this machine has."""
    lack: str = ""
    """Why there are none of the hardware; empty: there are."""


@contextmanager
def count_process(pid: int) -> Iterator[Counts]:
    """Counts the threads of a process within the block; the totals are there behind it."""
    counts, opened = Counts(), list[tuple[str, int]]()
    try:
        for name, event in EVENTS.items():
            for thread in _threads(pid):
                fd = _open(event, thread)
                if fd >= 0:
                    opened.append((name, fd))
                elif event.type != _SOFTWARE:
                    counts.lack = counts.lack or _explain(-fd)
        for _, fd in opened:
            _control(fd, _ENABLE)
        yield counts
        for _, fd in opened:
            _control(fd, _DISABLE)
        for name, fd in opened:
            counts.totals[name] = counts.totals.get(name, 0.0) + _read(fd)
    finally:
        for _, fd in opened:
            os.close(fd)


def metrics_of(counts: Counts) -> list[Metric]:
    """Rates that need no number of calls; those of which the events were counted."""
    known = counts.totals
    found: list[Metric] = []

    def add(name: str, above: str, below: str, scale: float = 1.0, unit: str = "") -> None:
        if known.get(below) and above in known:
            value = known[above] / known[below] * scale
            found.append(Metric(name=name, value=value, unit=unit, level=Level.MEASURED))

    add("instructions_per_cycle", "instructions", "cycles")
    add("llc_miss_gbs", "cache_misses", "task_clock", _LINE, "GB/s of a thread")
    add("l1_miss_share", "l1_misses", "l1_reads")
    add("branch_miss_share", "branch_misses", "branches")
    add("page_faults_per_ms", "page_faults", "task_clock", 1e6, "of CPU time")
    return found


def _threads(pid: int) -> list[int]:
    try:
        return [int(each.name) for each in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return []


def _open(event: _Event, thread: int) -> int:
    """A descriptor, or the negative of what the system answered."""
    number = _CALL.get(platform.machine())
    if number is None:
        return -errno.ENOSYS
    flags = _DISABLED | _INHERIT | _NO_KERNEL | _NO_HYPERVISOR
    size = _ATTRIBUTES.size
    told = _ATTRIBUTES.pack(event.type, size, event.config, 0, 0, _TIMES, flags, 0, 0, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(number, told, thread, -1, -1, 8)  # 8: close on exec
    return int(fd) if fd >= 0 else -ctypes.get_errno()


def _control(fd: int, request: int) -> None:
    import fcntl

    with suppress(OSError):
        fcntl.ioctl(fd, request, 0)


def _read(fd: int) -> float:
    """The count; where counters took turns, as if it had run all the time."""
    value, enabled, ran = _READ.unpack(os.read(fd, _READ.size))
    return value * enabled / ran if ran else 0.0


def _explain(code: int) -> str:
    if code in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "this machine shows none (as most virtual machines)"
    if code in (errno.EACCES, errno.EPERM):
        return "the system forbids them: sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON"
    return os.strerror(code)
