# SPDX-License-Identifier: Apache-2.0
"""Device candidates: cubins and launch tables that our compiled device runner plays.

What a call is given is what a native candidate gets (sandbox/run/arena.py), and behind it the
launch table as one more input, then the work buffers as outputs. This module writes down what the
runner must know besides: how many axes and tensors there are, and which kernel is in which cubin.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from ....kernelbench.problem import Problem
from ....traces.records import Status
from ...builders.model import Built, DeviceBuilt
from ...builders.workshop import Workshop
from ..binary import device_runner_binary
from ..program import Descriptors, Program
from .device_files import DeviceFiles

CODE_REFUSED, TOOK_TOO_LONG, KERNEL_FAILED, WROTE_INPUT, TOO_MUCH, BAD_PLAN, DEVICE_FAILED = range(
    88, 95
)
"""Exit statuses of the runner; `driver.hpp` holds the same numbers."""

_FILE_BYTES = 64 << 30
"""The driver's memory files are as large as what they stand for, and mostly holes."""

EXITS = {
    CODE_REFUSED: "the driver does not load what our compiler makes (see `kernelwright doctor`):",
    TOOK_TOO_LONG: "the driver ended a kernel that ran too long:",
    KERNEL_FAILED: "its kernels failed:",
    WROTE_INPUT: "a kernel wrote to an input:",
    TOO_MUCH: "it asks for more than the device has:",
    BAD_PLAN: "the launch plan does not fit its kernels:",
    DEVICE_FAILED: "the device failed:",
}
STATUSES = {
    CODE_REFUSED: Status.HARNESS_ERROR,
    TOOK_TOO_LONG: Status.TIMED_OUT,
    TOO_MUCH: Status.RESOURCE,
    BAD_PLAN: Status.BUILD_FAILED,
    DEVICE_FAILED: Status.HARNESS_ERROR,
}


def device_program(
    workshop: Workshop, built: DeviceBuilt, problem: Problem, access: DeviceFiles
) -> Program:
    """The program of built device code for one device.

    Raises:
        PrerequisiteError: there is no compiler for our runner.
    """
    runner = device_runner_binary(workshop)

    def command(given: Descriptors, folder: Path) -> list[str]:
        words = [str(runner), *given.words, str(folder)]
        return [*words, str(access.library), str(access.ordinal)]

    return Program(
        _join_cubins(built),
        plan_files(built, problem),
        command,
        readable=(runner, *access.readable),
        devices=access.nodes,
        has_own_memory=True,
        environment=access.environment,
        # Where no process keeps the driver loaded, it sets all devices up first.
        start_timeout_s=120.0,
        load_timeout_s=30.0,
        # A context and the driver's staging buffers, before any tensor.
        memory_bytes=2 << 30,
        open_files=1024,
        # Its memory files and pinned pages are its own affair; memory_bytes bounds what they hold.
        file_bytes=_FILE_BYTES,
        locked_bytes=None,
        exits=EXITS,
        statuses=STATUSES,
    )


def plan_files(
    built: DeviceBuilt, problem: Problem, *, is_separate: bool = False
) -> dict[str, bytes]:
    """The files of the folder that the runner reads: `device.plan` and the cubins.

    Args:
        is_separate: Every tensor gets an allocation of its own, so that a sanitizer sees where it
            ends.
    """
    lines = [f"axes {len(problem.axes)}", f"separate {int(is_separate)}"]
    lines += [f"tensor {tensor.name}" for tensor in problem.tensors]
    lines += [f"cubin {number}.cubin" for number in range(len(built.cubins))]
    lines += [f"kernel {k.cubin} {len(k.parameters)} {k.symbol}" for k in built.kernels]
    files = {f"{number}.cubin": cubin.artefact for number, cubin in enumerate(built.cubins)}
    return {"device.plan": ("\n".join(lines) + "\n").encode(), **files}


def _join_cubins(built: DeviceBuilt) -> Built:
    """All cubins as one artefact; the hash of one is its own."""
    hashes = [cubin.sha256 for cubin in built.cubins]
    one = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
    return Built(
        b"".join(cubin.artefact for cubin in built.cubins),
        one,
        sum(cubin.seconds for cubin in built.cubins),
        log="\n".join(cubin.log for cubin in built.cubins if cubin.log),
        compiler=built.cubins[0].compiler if built.cubins else "",
        is_cached=built.is_cached,
    )
