# SPDX-License-Identifier: Apache-2.0
"""Opens the stand that a task asks for: the CPUs, a device that is here, or its emulation.

This is where it is decided what candidates run on; nobody asks again. The isolation of this machine
is measured first, and its peaks before anything else takes its time.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from ...errors import PrerequisiteError, UsageError
from ...kernelbench import registry
from ...kernelbench.languages import CUDA, TRITON, language_of
from ...kernelbench.machine import usable_cpus
from ...kernelbench.problem import Problem, Structure
from ...kernelbench.targets import architecture, target_of
from ...sandbox.builders.compatibility import compiler_for
from ...sandbox.builders.triton import TritonBuilder
from ...sandbox.isolation import choose
from ...sandbox.isolation.canary import probe
from ...sandbox.isolation.model import Jail
from ...sandbox.run import interpreted
from ...sandbox.run.starting import Waiting
from ...traces.records import Isolation
from ..clock.roofline import measured_peaks
from ..request import Task
from ..truth.trials import Stage
from .cpu import CpuStand
from .device import DeviceStand
from .emulated import EmulatedStand
from .gpu_candidates import Workshop
from .leased import Leased, Machine
from .session import Admission, Session, abreast, versions
from .stand import Stand

EMULATED_BYTES = {CUDA: 1 << 20, TRITON: 320 << 10}
"""Inputs and outputs of a workload that is emulated at most; an interpreter takes longer."""


@dataclass(frozen=True)
class _Ground:
    """What is known before it is known what candidates run on."""

    task: Task
    problem: Problem
    jail: Jail
    isolation: Isolation
    cpus: tuple[int, ...]
    cache_dir: Path

    def session(self, stage: Stage, **more: str) -> Session:
        """With the versions that are this stand's own."""
        return Session(
            self.task,
            self.problem,
            stage,
            self.jail,
            self.isolation,
            self.cpus,
            self.cache_dir,
            Admission(self.problem, stage.target),
            {**versions(), **more},
        )

    def workshop(self, newest: int | None) -> Workshop:
        """Raises PrerequisiteError where the driver does not load what our compilers make."""
        for language in self.task.languages:
            compiler_for(language, newest)
        target = architecture(self.task.target)
        builder = waiting = None
        if TRITON.name in self.task.languages:
            builder = TritonBuilder(
                self.jail,
                target,
                cache_dir=self.cache_dir,
                workers=abreast(self.cpus),
                newest=newest,
            )
            waiting = Waiting(self.jail, interpreted.LIMITS, self.cpus)
        subject = self.problem.structure(self.task.workload)
        return Workshop(
            self.problem, target, subject, self.cache_dir, self.jail, builder, newest, waiting
        )


def open_stand(task: Task, machine: Machine | None = None) -> Stand:
    """Raises the errors of errors.py: unknown names, weak isolation, unfit workloads."""
    problem = registry.get(task.problem).for_target(task.target)
    cpus = task.cpus or usable_cpus()
    cache_dir = Path(task.cache_dir)
    jail = choose(task.jail)
    isolation = probe(jail, cache_dir)
    if isolation.lacking and not task.accept_weak_isolation:
        raise _too_weak(isolation, task.jail)
    ground = _Ground(task, problem, jail, isolation, cpus, cache_dir)
    if target_of(task.target).is_cpu:
        peaks = measured_peaks(cache_dir, cpus)
        return CpuStand.opened(ground.session(_stage(problem, task)), peaks)
    machine = machine or Machine()
    present = machine.devices(architecture(task.target).name)
    if present:
        return _on_device(ground, Leased.take(machine, present, cache_dir))
    workshop = ground.workshop(None)
    stage = _small_stage(problem, task, workshop.subject)
    return EmulatedStand(ground.session(stage, **_tools(workshop)), workshop)


def _on_device(ground: _Ground, leased: Leased) -> Stand:
    """The device is given back where its stand cannot be opened."""
    try:
        workshop = ground.workshop(leased.loads_up_to)
        stage = _stage(ground.problem, ground.task)
        session = ground.session(stage, **_tools(workshop), **leased.versions)
        return DeviceStand.opened(session, workshop, leased)
    except BaseException:
        leased.close()
        raise


def _tools(workshop: Workshop) -> dict[str, str]:
    return {"triton": version("triton")} if workshop.triton else {}


def _too_weak(isolation: Isolation, asked: str) -> PrerequisiteError:
    better = (
        "install bubblewrap (apt-get install bubblewrap), see `kernelwright doctor`"
        if asked == "auto"
        else f"leave out --jail {asked}, so that the best sandbox of this machine is used"
    )
    return PrerequisiteError(
        f"the sandbox '{isolation.mechanism}' does not enforce "
        f"{', '.join(isolation.lacking)} on this machine",
        hint=f"{better}, or accept it with --accept-weak-isolation",
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
    return Stage(problem, small[name], name, others)


def _stage(problem: Problem, task: Task) -> Stage:
    target = problem.structure(task.workload)
    others = tuple(
        (workload.name, problem.structure(workload))
        for workload in problem.workloads
        if workload.kind != "realistic" and workload != task.workload
    )
    return Stage(problem, target, task.workload.name, others)
