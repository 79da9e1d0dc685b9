"""What a page of results says of the machine that it was made on."""

from __future__ import annotations

import platform
from importlib.metadata import version

from kernelwright.kernelbench.machine import processor, usable_cpus


def machine() -> str:
    """Processor, CPUs, kernel, Python and torch."""
    name = processor().name or platform.machine()
    return (
        f"{name}, {len(usable_cpus())} CPUs, Linux {platform.release()}, "
        f"Python {platform.python_version()}, torch {version('torch')}"
    )
