# SPDX-License-Identifier: Apache-2.0
"""Facts of the machine and the versions at work: the one reader of what the system says of them.

It reads what the operating system and the installed packages say of themselves; it imports none of
the heavy ones and measures nothing.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from ..version import VERSION

PACKAGES = ("numpy", "scipy", "torch", "triton", "langgraph", "pydantic")
CPUINFO = Path("/proc/cpuinfo")
CACHES = Path("/sys/devices/system/cpu")
MEMINFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")
_FLAGS = ("flags", "Features")
"""How x86 and Arm name the line of instruction sets."""
_DECIDES_CODE = frozenset(
    (
        *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),
        *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),
    )
)
"""Lines of a processor that `-march=native` depends on; x86's, then Arm's."""
_SIZES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True)
class Processor:
    """What the system says of the processor; all are alike on the machines this runs on."""

    name: str = ""
    """Empty where it is not told."""
    flags: frozenset[str] = frozenset()
    """Instruction sets, in the system's words."""
    signature: str = ""
    """Hash of what native code depends on; empty where nothing is told."""

    @property
    def vector_bytes(self) -> int:
        """Of its widest vectors."""
        return 64 if "avx512f" in self.flags else 32 if "avx2" in self.flags else 16


@dataclass(frozen=True)
class Cache:
    """One cache that holds data."""

    level: int
    bytes: int
    shared: str
    """The CPUs that share it, as the system lists them: `0-3,8`."""

    @property
    def sharing(self) -> int:
        """How many CPUs share it."""
        edges = [part.partition("-") for part in self.shared.split(",")]
        return sum(int(last or first) - int(first) + 1 for first, _, last in edges)


def processor(place: Path = CPUINFO) -> Processor:
    """What is told of the first one; one that says nothing where the system tells nothing."""
    try:
        lines = place.read_text().splitlines()
    except OSError:
        return Processor()
    pairs = [(name.strip(), value.strip()) for name, _, value in (o.partition(":") for o in lines)]
    first = dict(reversed(pairs))
    flags = next((first[name] for name in _FLAGS if name in first), "")
    kept = sorted({f"{name}={value}" for name, value in pairs if name in _DECIDES_CODE})
    signature = hashlib.sha256("\n".join(kept).encode()).hexdigest() if kept else ""
    return Processor(first.get("model name", ""), frozenset(flags.split()), signature)


def caches(cpu: int = 0, root: Path = CACHES) -> Iterator[Cache]:
    """The caches that hold data of this CPU, nearest first; none where the system tells none."""
    for entry in sorted(root.glob(f"cpu{cpu}/cache/index*")):
        try:
            kind, level, size, shared = (
                (entry / name).read_text().strip()
                for name in ("type", "level", "size", "shared_cpu_list")
            )
            found = Cache(int(level), _bytes(size), shared)
            known = found.sharing > 0
        except (OSError, ValueError):
            continue
        if kind != "Instruction" and known:
            yield found


def usable_cpus() -> tuple[int, ...]:
    """The CPUs that this process may use, in order."""
    return tuple(sorted(os.sched_getaffinity(0)))


def available_bytes() -> int | None:
    """Memory that can be had here without swapping, a control group's limit included, if known."""
    try:
        told = re.search(r"^MemAvailable: +(\d+) kB$", MEMINFO.read_text("ascii"), re.M)
    except OSError:
        return None
    found = [int(told[1]) << 10] if told else []
    with suppress(OSError, ValueError):
        limit = int((GROUP / "memory.max").read_text("ascii"))
        found.append(limit - int((GROUP / "memory.current").read_text("ascii")))
    return min(found, default=None)


def machine_facts() -> dict[str, str]:
    """Who computed: system, processor and how many of its CPUs this process may use."""
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": processor().name or platform.processor() or "unknown",
        "cpus": str(len(usable_cpus())),
        "cpus_installed": str(os.cpu_count() or 1),
    }


def versions() -> dict[str, str]:
    """Of Kernelwright, Python and the packages that are installed."""
    found = {"kernelwright": VERSION, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _bytes(text: str) -> int:
    return int(text[:-1]) * _SIZES[text[-1]] if text[-1:] in _SIZES else int(text)
