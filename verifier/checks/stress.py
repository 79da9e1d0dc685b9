# SPDX-License-Identifier: Apache-2.0
"""The same call again: twenty times while every CPU is busy with something else, and very often.

Under load threads run one after the other and in other orders than on an idle machine, which is
where races show. What is kept from call to call and grows shows after many of them. Every answer
must stay inside the gates; how far the answers are apart is told.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np

from ...errors import SandboxError
from ...kernelbench.precision import Precision
from ...kernelbench.problem import Arrays, Expected, Family, Problem, Structure
from ...kernelbench.rows import is_large
from ...traces.records import Check, Depth
from ..clock.answers import Answer
from ..clock.timed_sides import CandidateSide
from ..truth import gates
from ..truth.trials import Stage, make_item

NAME = "determinism under load"
REPEATS = 20
LEAST = 8
"""Repeats that are made however long they take."""
BUDGET_S = 0.2
"""For the repeats on one workload, beyond LEAST."""
PATIENCE = 6.0
"""A deadline is this many times as long while others use the CPUs."""
IN_A_ROW = "many calls in a row"
IN_A_ROW_S = {Depth.FULL: 0.5, Depth.CONFIRM: 0.15, Depth.RECORD: 4.0}
"""For the calls of the smallest workload that are made one after the other."""
EXCHANGES = 8
"""In so many parts at least, whose last answers are looked at."""
SEEN = 0.4
"""The share of that time in which every answer is looked at: what is wrong now and then, as a rare
race, is in few of the last ones."""
LEAST_SEEN, LONGER = 100, 3
"""So many of them at least, unless that takes so many times as long: for slow kernels, and on a
machine that is busy with something else."""
MOST_KEPT = 64
"""Answers that are not as the first one; where there are so many, most are not."""
GROWTH = 8
"""A part has at most so many times the calls of the one before: how long one takes is not known."""
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
    workloads = [_find_smallest(stage.problem, stage.others)] if stage.others else []
    if not workloads or not is_large(stage.problem, stage.target.axes):
        workloads.append((stage.target_name, stage.target))
    made: list[_Repeats] = []
    with keep_busy(cpus):
        for name, structure in workloads:
            made.append(_Repeats(side, stage.problem, name, structure, rng))
            made[-1].make_under_load()
    # The truth is found once the CPUs are free again.
    words = f"with {len(cpus)} CPUs busy"
    return [repeats.judge(NAME, f"of {REPEATS} repeats {words}", words) for repeats in made]


def in_a_row(side: CandidateSide, stage: Stage, depth: Depth, rng: np.random.Generator) -> Check:
    """Calls of the smallest workload, as many as there is time for. Raises RunFault."""
    workloads = [*stage.others, (stage.target_name, stage.target)]
    name, structure = _find_smallest(stage.problem, workloads)
    repeats = _Repeats(side, stage.problem, name, structure, rng)
    repeats.make_in_a_row(IN_A_ROW_S[depth])
    return repeats.judge(IN_A_ROW, "calls one after the other", "in a row")


def _find_smallest(
    problem: Problem, workloads: Sequence[tuple[str, Structure]]
) -> tuple[str, Structure]:
    return min(workloads, key=lambda each: problem.bytes_moved(each[1].axes))


class _Repeats:
    """One call, made again and again; what of its answers is not as the first one is kept."""

    def __init__(
        self,
        side: CandidateSide,
        problem: Problem,
        name: str,
        structure: Structure,
        rng: np.random.Generator,
    ) -> None:
        family = Family.NORMAL if Family.NORMAL in problem.families else problem.families[0]
        self._side, self._problem, self._name = side, problem, name
        self._item = make_item(problem, structure, family, rng)
        self._slot = side.place(structure, 1)[0]
        self._made = 0
        self._first: Arrays = {}
        self._low: Arrays = {}
        self._high: Arrays = {}
        self._kept: list[tuple[int, Answer]] = []

    def make_under_load(self) -> None:
        """Calls one at a time. Raises RunFault."""
        start = time.monotonic()
        while self._made < LEAST or (self._made < REPEATS and time.monotonic() - start < BUDGET_S):
            self._make(1, PATIENCE)

    def make_in_a_row(self, budget_s: float) -> None:
        """As many calls as there is time for; few are looked at, then each. Raises RunFault."""
        start, times, unseen_s = time.monotonic(), 1, budget_s * (1 - SEEN)
        while (spent := time.monotonic() - start) < unseen_s:
            self._make(times)
            took = time.monotonic() - start - spent
            times = max(1, int(times * min(GROWTH, unseen_s / EXCHANGES / took)))
        enough = self._made + LEAST_SEEN
        while len(self._kept) < MOST_KEPT:
            spent = time.monotonic() - start
            if spent > budget_s and (self._made >= enough or spent > LONGER * budget_s):
                return
            self._make(1)

    def _make(self, times: int, patience: float = 1.0) -> None:
        answer = self._side.repeat(
            self._item, self._slot, self._first, patience=patience, times=times
        )
        self._made += times
        if answer:
            self._kept.append((self._made, answer))
            self._widen()

    def _widen(self) -> None:
        outputs = self._slot.outputs
        if not self._first:
            self._first = {name: array.copy() for name, array in outputs.items()}
            self._low = {name: array.copy() for name, array in outputs.items()}
            self._high = {name: array.copy() for name, array in outputs.items()}
            return
        for name, array in outputs.items():
            np.minimum(self._low[name], array, out=self._low[name])
            np.maximum(self._high[name], array, out=self._high[name])

    def judge(self, name: str, counted: str, how: str) -> Check:
        """Holds what was kept against the truth."""
        for number, answer in self._kept:
            if failed := answer.failure():
                detail = f"repeat {number} {how}: {failed.name}: {failed.detail}"
                return failed.model_copy(
                    update={"name": name, "detail": detail, "workload": self._name}
                )
        apart = self._share_apart()
        return Check(
            name=name,
            passed=True,
            figure=apart,
            workload=self._name,
            detail=f"{self._made} {counted}, all inside the gates: "
            + (
                f"they differ by up to {apart:.2g} of the error that gate G1 allows"
                if apart
                else "they agree bit for bit"
            ),
        )

    def _share_apart(self) -> float:
        """By how much answers differ, as a share of what is allowed."""
        if len(self._kept) < 2:
            return 0.0
        return max(
            _largest_difference(
                self._problem.precision_of(name),
                self._item.expected[name],
                self._low[name],
                self._high[name],
            )
            for name in self._low
        )


def _largest_difference(
    precision: Precision, expected: Expected, low: np.ndarray, high: np.ndarray
) -> float:
    """The largest difference of two answers, as a share of the error that is allowed."""
    usable = np.isfinite(low) & np.isfinite(high)
    allowed = np.broadcast_to(gates.allowed_error(expected, precision), low.shape)[usable]
    differ = high[usable].astype(np.float64) - low[usable].astype(np.float64)
    is_apart = differ > 0
    if not is_apart.any():
        return 0.0
    return float(np.max(differ[is_apart] / np.maximum(allowed[is_apart], precision.underflow)))
