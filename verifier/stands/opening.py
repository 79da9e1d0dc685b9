# SPDX-License-Identifier: Apache-2.0
"""Opens the stand that a task asks for: the CPUs, a device that is here, or its emulation.

This is where it is decided what candidates run on; nobody asks again. The isolation of this machine
is measured first, and its peaks before anything else takes its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...errors import UsageError
from ...kernelbench import registry
from ...kernelbench.languages import CUDA, TRITON, language_of
from ...kernelbench.machine import available_bytes, usable_cpus
from ...kernelbench.problem import Problem, Structure, Workload
from ...kernelbench.rows import is_large
from ...kernelbench.targets import architecture, target_of
from ...sandbox.builders.toolchain import ANY_RELEASE
from ...sandbox.builders.workshop import Workshop
from ...sandbox.definitions.process import Definition
from ...sandbox.isolation import choose
from ...sandbox.isolation.canary import require_isolation
from ...traces.records import Isolation
from ..clock.roofline import measured_peaks
from ..request import Task
from ..truth.asked_sizes import AskedSizes
from ..truth.trials import Stage
from .cpu import CpuStand
from .device import DeviceStand
from .emulated import EmulatedStand
from .gpu_candidates import GpuGround
from .gpu_tools import GpuTools
from .leased import Leased, Machine
from .session import Admission, Session, versions
from .stand import Stand

EMULATED_BYTES = {CUDA: 1 << 20, TRITON: 320 << 10}
"""Inputs and outputs of a workload that is emulated at most; an interpreter takes longer."""

HELD_CALLS, HELD_BYTES = 6, 1 << 30
"""What an evaluation holds at most: calls of the candidate, the champion and the baselines, what is
written into them, and what libraries take of their own; programs and small shapes beside."""


@dataclass(frozen=True)
class _Ground:
    """What is known before it is known what candidates run on."""

    task: Task
    problem: Problem
    workshop: Workshop
    isolation: Isolation
    definition: Definition | None = None
    """The process in which a user's problem runs."""

    def session(self, stage: Stage, **more: str) -> Session:
        """With the versions that are this stand's own."""
        return Session(
            self.task,
            self.problem,
            stage,
            self.workshop,
            self.isolation,
            Admission(self.problem, stage.target, self.workshop),
            {**versions(), **more},
            self.definition,
        )

    def tools(self, newest: int = ANY_RELEASE) -> GpuTools:
        """Raises PrerequisiteError where the driver does not load what our compilers make."""
        target = architecture(self.task.target)
        subject = self.problem.structure(self.task.workload)
        scales = self.task.model_scales
        ground = GpuGround(self.workshop, self.problem, target, subject, newest, scales)
        return GpuTools.open(ground, self.task.languages)


def open_stands(task: Task, machine: Machine | None = None) -> list[Stand]:
    """One for each workload of a task, the weightiest first; on a device they share its lease.

    Raises the errors of errors.py: unknown names, weak isolation, unfit workloads.
    """
    stands: list[Stand] = []
    leased: Leased | None = None
    try:
        for workload in [part.workload for part in task.workload.parts] or [task.workload]:
            one = task.model_copy(update={"workload": workload, "asked": task.workload})
            stand = open_stand(one, machine, leased)
            stands.append(stand)
            leased = stand.leased if isinstance(stand, DeviceStand) else None
    except BaseException:
        for stand in stands:
            stand.close()
        raise
    return stands


def open_stand(task: Task, machine: Machine | None = None, leased: Leased | None = None) -> Stand:
    """The stand for a task of one workload. Raises as `open_stands`.

    Args:
        leased: A device that is held already; None: the first that is there and free.
    """
    if task.problem_text:
        registry.add_text(task.problem, task.problem_text)
    problem = registry.get(task.problem).for_target(task.target)
    workshop = Workshop(choose(task.jail), Path(task.cache_dir), task.cpus or usable_cpus())
    _ensure_instances(task, workshop)
    isolation = require_isolation(
        workshop.jail,
        workshop.folder,
        asked=task.jail,
        accepts_weak=task.accept_weak_isolation,
    )
    if not problem.text:
        return _open_on(_Ground(task, problem, workshop, isolation), machine, leased)
    definition = Definition(problem, workshop)
    try:
        ground = _Ground(task, definition.problem(), workshop, isolation, definition)
        return _open_on(ground, machine, leased)
    except BaseException:
        definition.close()
        raise


def _open_on(ground: _Ground, machine: Machine | None, leased: Leased | None) -> Stand:
    """The stand of a ground's target."""
    task, problem, workshop = ground.task, ground.problem, ground.workshop
    if target_of(task.target).is_cpu:
        peaks = measured_peaks(workshop)
        return CpuStand.open(ground.session(_stage(problem, task)), peaks)
    machine = machine or Machine()
    present = machine.devices(architecture(task.target).name)
    if present:
        return _on_device(ground, leased or Leased.take(machine, present, workshop))
    _ensure_not_timed(task)
    tools = ground.tools()
    stage = _small_stage(problem, task, tools.ground.subject)
    return EmulatedStand(ground.session(stage, **tools.versions), tools)


def _ensure_not_timed(task: Task) -> None:
    """Raises UsageError where a workload asks for a way of timing and nothing is timed."""
    if suffix := task.workload.manner.suffix:
        raise UsageError(
            f"the workload '{task.workload.name}' is to be timed in the manner '{suffix}', and "
            f"{task.target} is emulated here: nothing is timed",
            hint=f"name a workload without '{suffix}', or run it on the device",
        )


def _ensure_instances(task: Task, workshop: Workshop) -> None:
    """Raises UsageError where a workload asks for more calls at a time than can be made."""
    many, cpus = task.workload.instances, len(workshop.cpus)
    if many == 1:
        return
    named = f"the workload '{task.workload.name}' has {many} calls at a time"
    if not target_of(task.target).is_cpu:
        raise UsageError(
            f"{named}, and {task.target} makes one after the other",
            hint=f"name it without '@x{many}', or take the target cpu",
        )
    if many > cpus:
        raise UsageError(
            f"{named}, each on CPUs of its own, and {cpus} can be used",
            hint=f"ask for fewer, as '@x{cpus}'" if cpus > 1 else f"name it without '@x{many}'",
        )


def _on_device(ground: _Ground, leased: Leased) -> Stand:
    """The device is given back where its stand cannot be opened."""
    try:
        tools = ground.tools(leased.loads_up_to)
        stage = _stage(ground.problem, ground.task)
        session = ground.session(stage, **tools.versions, **leased.versions)
        return DeviceStand.open(session, tools, leased)
    except BaseException:
        leased.close()
        raise


def _ensure_room(problem: Problem, target: Structure, workload: Workload) -> None:
    """Raises UsageError where this machine has no memory for evaluations of the workload."""
    if not is_large(problem, target.axes):
        return
    one, available = problem.bytes_moved(target.axes), available_bytes()
    held = HELD_CALLS * workload.instances
    needed = held * one + HELD_BYTES
    if available is not None and needed > available:
        raise UsageError(
            f"evaluations of {problem.name} / {workload.name} take {needed / (1 << 30):.1f} GiB "
            f"({held} times one call's {one / (1 << 20):,.0f} MiB, and "
            f"{HELD_BYTES >> 20} MiB) and {available / (1 << 30):.1f} GiB are available",
            hint="choose a smaller workload, or a machine with more memory",
        )


def _small_stage(problem: Problem, task: Task, subject: Structure) -> Stage:
    """The workloads that an emulation can afford; the tiny one stands for one that is large."""
    made = {w.name: problem.structure(w) for w in problem.workloads if w.kind != "realistic"}
    made[task.workload.name] = subject
    asked = [language_of(name) for name in task.languages]
    most = min(EMULATED_BYTES[each] for each in asked or EMULATED_BYTES)
    small = {
        name: structure
        for name, structure in made.items()
        if problem.bytes_moved(structure.axes) <= most
    }
    if not small:
        raise UsageError(
            f"no workload of {problem.name} is small enough to be emulated",
            hint=f"give it one of at most {most >> 10} KiB",
        )
    name = task.workload.name if task.workload.name in small else next(iter(small))
    others = tuple((other, s) for other, s in small.items() if other != name)
    return Stage(problem, small[name], name, others, asked=_find_asked(task))


def _stage(problem: Problem, task: Task) -> Stage:
    target = problem.structure(task.workload)
    _ensure_room(problem, target, task.workload)
    others = tuple(
        (workload.name, problem.structure(workload))
        for workload in problem.workloads
        if workload.kind != "realistic" and workload != task.workload
    )
    return Stage(problem, target, task.workload.name, others, asked=_find_asked(task))


def _find_asked(task: Task) -> AskedSizes | None:
    return AskedSizes.between(task.asked) if task.asked else None
