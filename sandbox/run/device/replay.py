# SPDX-License-Identifier: Apache-2.0
"""A candidate's call as a program of its own, for what wants to start a program: ncu, a sanitizer.

It is our device runner in the mode `play`: it reads one placed call from a file, plays it a few
times and leaves; nothing is timed and nothing is told. Only the candidate's device code is not ours
there, since these tools need what a jail takes away.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ....kernelbench.problem import Problem
from ...builders.model import DeviceBuilt
from ...builders.workshop import Workshop
from ..binary import device_runner_binary
from .device_files import DeviceFiles
from .program import plan_files


@dataclass(frozen=True)
class PlacedCall:
    """One placed call: the memory that a runner would be given."""

    inputs: bytes
    """From the call table, whose first entry is played, to the last input."""
    output_bytes: int


def host_command(
    workshop: Workshop,
    folder: Path,
    built: DeviceBuilt,
    problem: Problem,
    call: PlacedCall,
    access: DeviceFiles,
    *,
    calls: int,
    is_separate: bool = False,
) -> list[str]:
    """Writes what the program reads into `folder` and gives its command line.

    Args:
        is_separate: Every tensor gets an allocation that ends where it ends.

    Raises:
        PrerequisiteError: there is no compiler for our runner.
    """
    for name, content in plan_files(built, problem, is_separate=is_separate).items():
        (folder / name).write_bytes(content)
    inputs = folder / "inputs"
    inputs.write_bytes(call.inputs)
    return [
        str(device_runner_binary(workshop)),
        "play",
        str(folder),
        str(access.library),
        str(access.ordinal),
        str(inputs),
        str(call.output_bytes),
        str(calls),
    ]
