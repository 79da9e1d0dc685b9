"""What the tests of the store share: events to write, and other processes."""

from __future__ import annotations

import os
import subprocess
import sys

from kernelwright.traces.events import CandidateProposed


def proposed(number: int, candidate: str = "") -> CandidateProposed:
    return CandidateProposed(
        candidate=candidate or f"{number:064x}",
        number=number,
        language="cpp",
        family="row",
        operator="initial",
        note="n" * 200,
    )


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process that imports the same package."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
