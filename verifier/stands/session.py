# SPDX-License-Identifier: Apache-2.0
"""What every stand has for a campaign: the problem, its structures, the workshop.

Nothing here knows which stand it is, and nothing is timed. What refuses a problem that can verify
nobody runs beside what a stand prepares.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ...errors import UsageError
from ...kernelbench.machine import processor
from ...kernelbench.problem import Problem, Structure
from ...kernelbench.rows import is_large
from ...sandbox.builders.workshop import Workshop
from ...sandbox.definitions.process import Definition
from ...sandbox.run.arena import footprint
from ...traces.records import Check, Isolation
from ...traces.wording import explain_check
from ...version import VERSION
from ..baselines.headroom import SkippedCheck, hold_baselines
from ..clock.pace import Pace
from ..clock.timing import MAX_BATCH
from ..request import Task
from ..truth import null_kernels, soundness
from ..truth.input_pool import Pool
from ..truth.trials import Stage

CALL_S = 5.0
"""Deadline of a call where no baseline says more."""
EMULATED_CALL_S = 30.0
"""The same of an emulation: it is slow and not timed, and a grid that does not end needs an end."""
_SLOT_ROOM = 48 << 20
LEAST_SLOTS = 3
"""Where calls are not large."""
SOUND = "sound-problems"
"""Folder in the cache folder: one empty file for each version of a problem that was found so."""
MOST_ABREAST = 4
"""Candidates that are built or emulated at once: each process takes up to a GB, and one that finds
no memory would have to answer for it."""


class Admission:
    """Whether a problem can verify anybody, in the background: null kernels fail on a structure;
    of a user's problem also whether its answers can be relied on, once per version and machine."""

    def __init__(self, problem: Problem, structure: Structure, workshop: Workshop) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._found = self._pool.submit(_admit, problem, structure, workshop)

    def wait(self) -> None:
        """Raises UsageError where it is refused, with the check that failed and its figure."""
        self._found.result()

    def close(self) -> None:
        """Lets it end."""
        self._pool.shutdown()


def _admit(problem: Problem, structure: Structure, workshop: Workshop) -> None:
    """Raises UsageError where the problem is refused. Built-in ones are admitted by tests."""
    if problem.text:
        _ensure_sound(problem, workshop)
    null_kernels.admit(problem, structure, np.random.default_rng())


def _ensure_sound(problem: Problem, workshop: Workshop) -> None:
    if _note_of(problem, workshop.folder).exists():
        return
    if failed := soundness.find_unsound(problem) or _find_tight(problem, workshop):
        raise UsageError(
            f"the problem '{problem.name}' cannot verify kernels: {explain_check(failed)}",
            hint="`kernelwright problems --check` on its file tells all that is looked at",
        )
    note_sound(problem, workshop.folder)


def note_sound(problem: Problem, folder: Path) -> None:
    """Every aspect of soundness.py has passed, and its baselines: nobody looks again at this
    version, on this machine.

    Args:
        problem: a user's.
        folder: the cache folder.
    """
    note = _note_of(problem, folder)
    note.parent.mkdir(parents=True, exist_ok=True)
    note.touch()


def _find_tight(problem: Problem, workshop: Workshop) -> Check | None:
    """The first check that a right implementation fails, its own baselines; None: all pass, or all
    of them run on a device alone, where `wait_prepared` finds those that are wrong."""
    if not any(baseline.runs_on("") for baseline in problem.baselines):
        return None
    checks = hold_baselines(problem, workshop, np.random.default_rng(0))
    return next((c for c in checks if not (c.passed or isinstance(c, SkippedCheck))), None)


def _note_of(problem: Problem, folder: Path) -> Path:
    told = [VERSION, version("numpy"), processor().name, problem.name, problem.text]
    return folder / SOUND / hashlib.sha256(json.dumps(told).encode()).hexdigest()


def versions() -> dict[str, str]:
    """What figures depend on, wherever they are measured."""
    return {
        "kernelwright": VERSION,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cpu": processor().name or platform.machine(),
        **{name: version(name) for name in ("torch", "numpy", "scipy")},
    }


def count_abreast(cpus: tuple[int, ...]) -> int:
    """Candidates that may be built or emulated at once on these CPUs."""
    return min(len(cpus), MOST_ABREAST)


@dataclass
class Session:
    """Everything that stays between evaluations, whatever candidates run on."""

    task: Task
    problem: Problem
    stage: Stage
    workshop: Workshop
    isolation: Isolation
    """What its jail enforces here, as the canary measured it."""
    admission: Admission
    versions: Mapping[str, str] = field(default_factory=versions)
    """What the figures of a verdict depend on."""
    definition: Definition | None = None
    """The process in which a user's problem runs."""

    def ensure_admitted(self) -> None:
        """Waits until the problem is admitted. Raises UsageError where it is refused."""
        self.admission.wait()

    @property
    def slots(self) -> int:
        """Slots of an arena on the target workload."""
        axes = self.stage.target.axes
        one = sum(footprint(self.problem, axes))
        turn = self.pace.turn(1)
        least = turn if is_large(self.problem, axes) else max(turn, LEAST_SLOTS)
        return int(np.clip(_SLOT_ROOM // one, least, max(least, MAX_BATCH)))

    @cached_property
    def pace(self) -> Pace:
        """What comes between timed calls."""
        return Pace(self.task.workload.manner, self.workshop.cpus)

    @cached_property
    def pool(self) -> Pool:
        """What the inputs of timed calls are taken of; drawn once, since that takes a while."""
        return Pool.draw(self.problem, self.stage.target, np.random.default_rng())

    @property
    def work(self) -> tuple[float, float]:
        """Operations and bytes of what is timed: of a call, or of several at a time."""
        axes, many = self.stage.target.axes, self.pace.instances
        return many * self.problem.flops(axes), many * self.problem.bytes_moved(axes)

    def close(self) -> None:
        """Lets what it began end."""
        self.admission.close()
        self.pace.close()
        if self.definition:
            self.definition.close()
