# SPDX-License-Identifier: Apache-2.0
"""Determinism under load: the same call twenty times while every CPU is busy with something else.

Threads then run one after the other and in other orders than on an idle machine, which is where
races show. Every answer must stay inside the gates; how far the answers are apart is told.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np

from ...errors import SandboxError
from ...kernelbench.problem import Expected, Family, Problem, Structure
from ...kernelbench.rows import is_large
from ...traces.records import Check
from ..clock.timed_sides import CandidateSide
from ..truth import gates
from ..truth.trials import Stage, make_item

NAME = "determinism under load"
REPEATS = 20
LEAST = 8
"""Repeats that are made however long they take."""
BUDGET_S = 5.0
"""For the repeats on one workload, beyond LEAST."""
PATIENCE = 6.0
"""A deadline is this many times as long while others use the CPUs."""
LOAD_S = 60.0
"""A process that makes load ends by itself after this long, or once its parent is gone."""

_SPIN = """\
import os, sys, time
os.sched_setaffinity(0, [int(sys.argv[1])])
parent, end = os.getppid(), time.monotonic() + float(sys.argv[2])
os.write(1, b"s")
while time.monotonic() < end and os.getppid() == parent:
    pass
"""


@contextmanager
def keep_busy(cpus: tuple[int, ...]) -> Iterator[list[int]]:
    """Keeps each of the CPUs busy with a process of ours; gives their pids."""
    with ExitStack() as stack:
        running = [stack.enter_context(_spin(cpu)) for cpu in cpus]
        for process in running:
            assert process.stdout is not None
            if process.stdout.read(1) != b"s":
                raise SandboxError(f"{sys.executable} cannot be started to keep a CPU busy")
        yield [process.pid for process in running]


@contextmanager
def _spin(cpu: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _SPIN, str(cpu), str(LOAD_S)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def under_load(
    side: CandidateSide, stage: Stage, cpus: tuple[int, ...], rng: np.random.Generator
) -> list[Check]:
    """One Check for the smallest workload, one for the workload asked for. Raises RunFault."""
    small = min(stage.others, key=lambda s: stage.problem.bytes_moved(s[1].axes), default=None)
    workloads = [small] if small else []
    if not small or not is_large(stage.problem, stage.target.axes):
        workloads.append((stage.target_name, stage.target))
    checks: list[Check] = []
    with keep_busy(cpus):
        for name, structure in workloads:
            checks.append(_check_repeats(side, stage.problem, name, structure, len(cpus), rng))
            if not checks[-1].passed:
                break
    return checks


def _check_repeats(
    side: CandidateSide,
    problem: Problem,
    name: str,
    structure: Structure,
    cpus: int,
    rng: np.random.Generator,
) -> Check:
    family = Family.NORMAL if Family.NORMAL in problem.families else problem.families[0]
    item = make_item(problem, structure, family, rng)
    slot = side.place(structure, 1)[0]
    low: dict[str, np.ndarray] = {}
    high: dict[str, np.ndarray] = {}
    start, made = time.monotonic(), 0
    while made < REPEATS and (made < LEAST or time.monotonic() - start < BUDGET_S):
        failed = gates.first_failure(side.answer(item, slot, patience=PATIENCE))
        made += 1
        if failed:
            detail = f"repeat {made} with {cpus} CPUs busy: {failed.name}: {failed.detail}"
            return failed.model_copy(update={"name": NAME, "detail": detail, "workload": name})
        for output, array in slot.outputs.items():
            low[output] = np.minimum(low.get(output, array), array)
            high[output] = np.maximum(high.get(output, array), array)
    apart = max(
        _largest_difference(problem, item.expected[output], low[output], high[output])
        for output in low
    )
    return Check(
        name=NAME,
        passed=True,
        figure=apart,
        workload=name,
        detail=f"{made} of {REPEATS} repeats with {cpus} CPUs busy, all inside the gates: "
        + (
            f"they differ by up to {apart:.2g} of the error that gate G1 allows"
            if apart
            else "they agree bit for bit"
        ),
    )


def _largest_difference(
    problem: Problem, expected: Expected, low: np.ndarray, high: np.ndarray
) -> float:
    """The largest difference of two answers, as a share of the error that is allowed."""
    usable = np.isfinite(low) & np.isfinite(high)
    allowed = np.broadcast_to(gates.allowed_error(expected, problem.precision), low.shape)[usable]
    differ = high[usable].astype(np.float64) - low[usable]
    is_apart = differ > 0
    if not is_apart.any():
        return 0.0
    return float(
        np.max(differ[is_apart] / np.maximum(allowed[is_apart], problem.precision.underflow))
    )
