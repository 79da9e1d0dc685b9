# SPDX-License-Identifier: Apache-2.0
"""What /proc says of a process tree: who belongs to it, what it holds and what it has used.

It reads; it signals nobody. A process that ends while it is read counts as nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

_PAGE = os.sysconf("SC_PAGESIZE")
_TICKS = os.sysconf("SC_CLK_TCK")


class TreeUsage(NamedTuple):
    """Sums over a tree at one moment."""

    resident_bytes: int
    cpu_s: float
    """Of the living and of what they have waited for."""
    tasks: int
    """Processes and threads."""
    temporary_bytes: int = 0
    """In its folder for temporary files, where nothing else bounds that."""


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except (OSError, ValueError):
        return ""


def _stat_fields(pid: int) -> list[str]:
    """The fields after the name, which may itself hold spaces and brackets; [0] is the state."""
    return _read(f"/proc/{pid}/stat").rpartition(") ")[2].split()


def _numbers(folder: str) -> list[int]:
    try:
        return [int(name) for name in os.listdir(folder) if name.isdigit()]
    except OSError:
        return []


def _children_by_scan(pid: int) -> list[int]:
    found = []
    for other in _numbers("/proc"):
        fields = _stat_fields(other)
        if len(fields) > 1 and fields[1] == str(pid):
            found.append(other)
    return found


_HAS_CHILDREN_FILE = os.path.exists(f"/proc/self/task/{os.getpid()}/children")


def children(pid: int) -> list[int]:
    """The direct children of every thread of `pid`."""
    if not _HAS_CHILDREN_FILE:
        return _children_by_scan(pid)
    return [
        int(child)
        for task in _numbers(f"/proc/{pid}/task")
        for child in _read(f"/proc/{pid}/task/{task}/children").split()
    ]


def descendants(pid: int) -> Iterator[int]:
    """Everything below `pid`, parents before children; `pid` itself not."""
    pending = children(pid)
    seen: set[int] = set()
    while pending:
        current = pending.pop()
        if current in seen:
            continue
        seen.add(current)
        yield current
        pending.extend(children(current))


def usage(pids: Iterable[int]) -> TreeUsage:
    """What these processes hold now. Pages shared by several count for each of them."""
    resident, ticks, tasks = 0, 0, 0
    for pid in pids:
        fields = _stat_fields(pid)
        if len(fields) < 22:
            continue
        ticks += sum(int(field) for field in fields[11:15])
        tasks += int(fields[17])
        resident += int(fields[21])
    return TreeUsage(resident * _PAGE, ticks / _TICKS, tasks)


def is_stopped(pid: int) -> bool:
    """Whether a signal made it stand still (SIGSTOP), with all of its threads."""
    return _stat_fields(pid)[:1] == ["T"]


def start_time(pid: int) -> str:
    """When `pid` started, in ticks since boot; tells it from a later process of its number."""
    fields = _stat_fields(pid)
    return fields[19] if len(fields) > 19 else ""


def own_tasks() -> int:
    """How many threads this user runs on the machine, which RLIMIT_NPROC counts too."""
    uid, total = os.getuid(), 0
    for pid in _numbers("/proc"):
        try:
            if os.stat(f"/proc/{pid}").st_uid != uid:
                continue
        except OSError:
            continue
        fields = _stat_fields(pid)
        total += int(fields[17]) if len(fields) > 17 else 0
    return total
