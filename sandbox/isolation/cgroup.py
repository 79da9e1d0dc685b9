# SPDX-License-Identifier: Apache-2.0
"""A control group of one job: memory and number of tasks, where this process may make one.

Version 2 needs a delegated group with the controllers switched on, version 1 needs root. Where
neither can be had `make` returns None and the job's watcher polls instead; the canary reports that.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from .model import Limits

_STALE_S = 60.0
"""A group this old is joined already, also where its maker's pid is out of our sight."""


@dataclass(frozen=True)
class Cgroup:
    """The folders of one job's group; version 1 has one for each controller."""

    memory: Path | None
    pids: Path | None
    version: int

    @property
    def folders(self) -> tuple[Path, ...]:
        """The distinct folders."""
        return tuple(dict.fromkeys(folder for folder in (self.memory, self.pids) if folder))

    @property
    def doors(self) -> tuple[str, ...]:
        """The files to write a pid to, so that it and its later children belong to the group."""
        return tuple(str(folder / "cgroup.procs") for folder in self.folders)

    def oom_kills(self) -> int:
        """How many processes the kernel has killed for the group's memory limit."""
        if self.memory is None:
            return 0
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        for line in _read(self.memory / name).splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
        return 0

    def peak_bytes(self) -> int:
        """The most memory the group has held; 0 where the kernel does not say."""
        if self.memory is None:
            return 0
        name = "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"
        text = _read(self.memory / name).strip()
        return int(text) if text.isdigit() else 0

    def forbid_forks(self) -> None:
        """Lets nothing new start in the group, so that killing it comes to an end."""
        if self.pids is not None:
            with contextlib.suppress(OSError):
                (self.pids / "pids.max").write_text("0")

    def remove(self) -> None:
        """Removes the group once it is empty; a dying process may hold it for a moment."""
        for folder in self.folders:
            for _ in range(50):
                try:
                    folder.rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.01)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


def _own_paths() -> dict[str, str]:
    """This process's group by controller; the key of version 2 is empty."""
    paths = {}
    for line in _read(Path("/proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            paths[controller] = path
    return paths


def _mounts() -> dict[str, Path]:
    """Where each controller is mounted; the key of version 2 is empty."""
    found = {}
    for line in _read(Path("/proc/self/mounts")).splitlines():
        _, place, kind, options, *_ = line.split()
        if kind == "cgroup2":
            found[""] = Path(place)
        elif kind == "cgroup":
            for option in options.split(","):
                if option in ("memory", "pids"):
                    found[option] = Path(place)
    return found


def _make_v2(root: Path, own: str, name: str, limits: Limits) -> Cgroup | None:
    parent = root / own.lstrip("/")
    if not (parent / "cgroup.subtree_control").exists():
        parent = root
    enabled = _read(parent / "cgroup.subtree_control").split()
    if not {"memory", "pids"} <= set(enabled):
        try:
            (parent / "cgroup.subtree_control").write_text("+memory +pids")
        except OSError:
            return None
    folder = parent / name
    _remove_stale(parent)
    group = Cgroup(folder, folder, 2)
    try:
        folder.mkdir()
        (folder / "memory.max").write_text(str(limits.memory_bytes))
        (folder / "pids.max").write_text(str(limits.processes))
        for optional, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            if (folder / optional).exists():
                (folder / optional).write_text(value)
    except OSError:
        group.remove()
        return None
    return group


def _make_v1(root: Path, own: str, name: str, settings: dict[str, int]) -> Path | None:
    parent = root / own.lstrip("/")
    parent = parent if parent.is_dir() else root
    folder = parent / name
    _remove_stale(parent)
    try:
        folder.mkdir()
        for setting, value in settings.items():
            (folder / setting).write_text(str(value))
    except OSError:
        with contextlib.suppress(OSError):
            folder.rmdir()
        return None
    return folder


@cache
def _remove_stale(parent: Path) -> None:
    """Once for each place: removes what killed harnesses left behind, if it is empty."""
    for folder in parent.glob("kernelwright-*-*"):
        with contextlib.suppress(OSError):
            is_old = time.time() - folder.stat().st_mtime > _STALE_S
            if is_old and not Path("/proc", folder.name.split("-")[1]).exists():
                folder.rmdir()


def make(limits: Limits) -> Cgroup | None:
    """A fresh group with these limits, or None where this process may not make one."""
    mounts, own = _mounts(), _own_paths()
    # Random, since what a killed harness left behind may carry the pid of a later one.
    name = f"kernelwright-{os.getpid()}-{secrets.token_hex(4)}"
    if "" in mounts and (group := _make_v2(mounts[""], own.get("", "/"), name, limits)):
        return group
    memory = pids = None
    if "memory" in mounts:
        settings = {"memory.limit_in_bytes": limits.memory_bytes}
        memory = _make_v1(mounts["memory"], own.get("memory", "/"), name, settings)
    if "pids" in mounts:
        settings = {"pids.max": limits.processes}
        pids = _make_v1(mounts["pids"], own.get("pids", "/"), name, settings)
    return Cgroup(memory, pids, 1) if memory or pids else None
