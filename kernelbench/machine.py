"""Facts of the machine and the versions at work, for a campaign's first event.

It reads what the operating system and the installed packages say of themselves; it imports none of
the heavy ones and measures nothing.
"""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

from .. import __version__

PACKAGES = ("numpy", "scipy", "torch", "triton", "langgraph", "pydantic")
CPUINFO = Path("/proc/cpuinfo")


def machine_facts() -> dict[str, str]:
    """Who computed: system, processor and how many of its CPUs this process may use."""
    return {
        "system": platform.system(),
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "cpu": _cpu_model(),
        "cpus": str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1),
        "cpus_installed": str(os.cpu_count() or 1),
    }


def versions() -> dict[str, str]:
    """Of Kernelwright, Python and the packages that are installed."""
    found = {"kernelwright": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _cpu_model() -> str:
    try:
        lines = CPUINFO.read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, "") or platform.processor() or "unknown"
