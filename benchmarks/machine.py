"""What a page of results says of the machine that it was made on."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path


def cpu_model() -> str:
    """The processor's name."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def machine() -> str:
    """Processor, CPUs, kernel, Python and torch."""
    return (
        f"{cpu_model()}, {len(os.sched_getaffinity(0))} CPUs, Linux {platform.release()}, "
        f"Python {platform.python_version()}, torch {version('torch')}"
    )
