# SPDX-License-Identifier: Apache-2.0
"""Triton candidates without a device: their kernels run in Triton's interpreter, in our jail.

Nothing is timed. The interpreter runs the programs of a grid one after the other; calls take
three schedules in turn. Every access is held against the tensors, and programs that touch the same
memory in no order are found (`triton_on_cpu/watch.py`). What the interpreter cannot do is
UNSUPPORTED: neither a pass nor a failure.

A candidate with a plan is given its launches as a table that stands, for each call, behind the
tensors in the read-only memory; host code runs as it is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...kernelbench.problem import Problem
from ...kernelbench.targets import Architecture
from ...traces.records import Status
from ..builders import triton
from ..builders.model import Built, KernelFacts
from ..builders.workshop import Workshop
from ..isolation.allow_list import PYTHON
from ..isolation.model import Limits
from ..plan.model import Launches
from ..triton_on_cpu.outside import readable_paths, start_command
from .host_code import EXITS, STATUSES, runner_files, signature
from .program import Descriptors, Program
from .starting import Waiting

LIMITED, FAULT = 91, 92
"""Exit statuses of `triton_on_cpu/interpreting.py`."""
STEPS = 40_000
"""Loads, stores, atomics and products of one program; a step takes 0.1 to 0.3 ms."""
LIMITS = Limits(
    # It may wait for hours; each call has a deadline of its own.
    wall_s=86_400.0,
    cpu_s=3_600.0,
    memory_bytes=6 << 30,
    processes=256,
    open_files=256,
)
SCHEDULES = ("order", "reverse", "random:0")
_EXITS = {
    **EXITS,
    LIMITED: "not supported without a device:",
    FAULT: "a kernel is wrong with memory:",
}


def interpreted_program(
    workshop: Workshop,
    built: Built,
    problem: Problem,
    architecture: Architecture,
    *,
    entry: str = "",
    kernels: Sequence[KernelFacts] = (),
    launches: Launches | None = None,
    schedules: Sequence[str] = SCHEDULES,
    steps: int = STEPS,
    sample: int = 0,
    waiting: Waiting | None = None,
) -> Program:
    """The program of a Triton source, whose bytes are the artefact.

    Args:
        entry: `run` or `ModelNew` of its host code; empty: it is given tables of launches.
        kernels, launches: Of its build for the target: host code may ask for their registers.
        schedules: Each `order`, `reverse`, or `random:` and a seed; calls take them in turn. In
            reverse, tensors begin where memory begins, else they end where it ends.
        steps: Loads, stores, atomics and products that one program may take at most.
        waiting: Where a process may wait that has imported all.
        sample: From how many on programs are left out; 0: as `triton_on_cpu/watch.py` has it.

    Raises:
        PrerequisiteError: torch is not where packages are installed, or there is no compiler.
    """
    plan = {
        **signature(problem, entry),
        "packages": [],
        "schedules": list(schedules),
        "patience": _patience(steps, sample),
        "facts": _figures(launches, kernels, architecture.warp),
        "properties": triton.properties(architecture),
    }

    def command(given: Descriptors, folder: Path) -> list[str]:
        return [*start_command("interpreting"), *given.gated_words, str(folder)]

    return Program(
        built,
        runner_files(workshop, built, plan),
        command,
        readable=readable_paths(),
        environment={"TRITON_INTERPRET": "1"},
        start_timeout_s=120.0,
        load_timeout_s=30.0,
        memory_bytes=2 << 30,
        processes=256,
        open_files=256,
        calls=PYTHON,
        exits=_EXITS,
        statuses={**STATUSES, LIMITED: Status.UNSUPPORTED},
        is_timed=False,
        may_leave_out=True,
        waiting=waiting,
    )


def prepare(
    workshop: Workshop, waiting: Waiting, problem: Problem, architecture: Architecture
) -> None:
    """Lets an interpreter import what it needs before there is a candidate for it.

    Raises:
        PrerequisiteError: torch is not where packages are installed.
        SandboxError: the jail failed.
    """
    waiting.prepare(interpreted_program(workshop, Built(b"", "", 0.0), problem, architecture))


def _patience(steps: int, sample: int) -> dict[str, int]:
    return {"steps": steps, **({"sample": sample, "sampled": 0, "small": 0} if sample else {})}


def _figures(
    launches: Launches | None, kernels: Sequence[KernelFacts], warp: int
) -> dict[str, dict[str, int]]:
    """What a compiled kernel says of itself, by name: of its first launch."""
    found: dict[str, dict[str, int]] = {}
    for launch in launches.launches if launches else ():
        if launch.kernel >= 0:
            kernel = kernels[launch.kernel]
            found.setdefault(
                kernel.symbol,
                {
                    "registers": kernel.registers,
                    "shared": kernel.shared_bytes + launch.shared_bytes,
                    "warps": math.prod(launch.block) // warp,
                },
            )
    return found


def table(launches: Launches) -> bytes:
    """A plan's launches as the interpreting runner reads them."""
    told: dict[str, Any] = {
        "calls": triton.calls(launches),
        "scratch": [[s.name, s.dtype, list(s.shape)] for s in launches.scratch],
    }
    return json.dumps(told).encode()


def programs(launches: Launches) -> int:
    """How many programs one call runs: what the interpreter's time goes with."""
    return sum(math.prod(launch.grid) for launch in launches.launches if launch.kernel >= 0)
