"""What a referee keeps for a campaign: the problem, its structures, the jail, the baselines.

Opening a session measures the isolation of this machine and its peaks. The baselines start in the
background, because importing torch and compiling takes seconds that builds can use, and so does
the gate that refuses a workload on which a kernel that computes nothing would pass.
"""

from __future__ import annotations

import platform
import statistics as stats
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path

import numpy as np

from ... import __version__
from ...errors import PrerequisiteError, UsageError
from ...kernelbench import registry
from ...kernelbench.features import features
from ...kernelbench.languages import CUDA, TRITON, language_of
from ...kernelbench.machine import processor, usable_cpus
from ...kernelbench.problem import Family, Problem, Structure
from ...kernelbench.targets import architecture, target_of
from ...sandbox.builders.compatibility import compiler_for
from ...sandbox.builders.triton import TritonBuilder
from ...sandbox.isolation import choose
from ...sandbox.isolation.canary import probe
from ...sandbox.isolation.model import Jail
from ...sandbox.run import interpreted
from ...sandbox.run.arena import footprint
from ...sandbox.run.starting import Waiting
from ...traces.records import Check, Isolation, Preparation
from ..baselines.process import BaselineProcess, NotReady
from ..clock.roofline import Peaks, measured_peaks
from ..clock.timed_sides import BaselineSide
from ..clock.timing import MAX_BATCH
from ..request import Task
from ..truth import null_kernels
from ..truth.input_pool import Pool
from ..truth.trials import Stage, make_item
from .gpu_candidates import Workshop
from .leased import Leased, Machine

_SLOT_ROOM = 48 << 20
_CALIBRATION_CALLS = 5
MOST_ABREAST = 4
"""Candidates that are built or emulated at once: each process takes up to a GB, and one that finds
no memory would have to answer for it."""
EMULATED_CALL_S = 30.0
EMULATED_BYTES = {CUDA: 1 << 20, TRITON: 320 << 10}
"""Inputs and outputs of a workload that is emulated at most; an interpreter takes longer."""


@dataclass
class Reference:
    """The baselines that run here, fastest first, with a first idea of their times."""

    process: BaselineProcess
    latency_us: dict[str, float]
    missing: dict[str, str]
    peaks: Peaks | None = None
    """Of the device, where the baselines run on one."""

    @property
    def fastest_us(self) -> float:
        """The fastest baseline's median; decides counts, batches and deadlines."""
        return min(self.latency_us.values())

    def sides(self, within: float = float("inf")) -> list[BaselineSide]:
        """The baselines within this factor of the fastest; all of them unless told otherwise."""
        limit = within * self.fastest_us
        return [
            BaselineSide(name, self.process) for name, us in self.latency_us.items() if us <= limit
        ]


@dataclass
class Session:
    """Everything that stays between evaluations."""

    task: Task
    problem: Problem
    stage: Stage
    jail: Jail
    isolation: Isolation
    peaks: Peaks | None
    """Of this machine; None where the target is another one."""
    cpus: tuple[int, ...]
    cache_dir: Path
    device: Workshop | None = None
    """What candidates for a GPU are built with; None on the target `cpu`."""
    leased: Leased | None = None
    """The device that candidates are measured on; None: they are emulated, and the stage holds
    workloads that are small enough for it."""
    sanitizers: str | None = None
    """Why the sanitizers cannot be used here, empty where they can; None until it was tried."""
    _pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2))
    _reference: Future[Reference] | None = None
    _admission: Future[list[Check]] | None = None

    @classmethod
    def open(cls, task: Task, machine: Machine | None = None) -> Session:
        """Raises the errors of errors.py: unknown names, weak isolation, unfit workloads."""
        problem = registry.get(task.problem).on(task.target)
        cpus = task.cpus or usable_cpus()
        cache_dir = Path(task.cache_dir)
        jail = choose(task.jail)
        isolation = probe(jail, cache_dir)
        if isolation.lacking and not task.accept_weak_isolation:
            raise _too_weak(isolation, task.jail)
        if not target_of(task.target).is_cpu:
            session = cls._for_gpu(task, problem, jail, isolation, cpus, machine or Machine())
        else:
            peaks = measured_peaks(cache_dir, cpus)
            stage = _stage(problem, task)
            session = cls(task, problem, stage, jail, isolation, peaks, cpus, cache_dir)
        if session.device is None or session.leased is not None:
            session._reference = session._pool.submit(session._start_reference)
        session._admission = session._pool.submit(
            null_kernels.admit, problem, session.stage.target, np.random.default_rng()
        )
        return session

    @classmethod
    def _for_gpu(
        cls,
        task: Task,
        problem: Problem,
        jail: Jail,
        isolation: Isolation,
        cpus: tuple[int, ...],
        machine: Machine,
    ) -> Session:
        """A session that measures where the target's device is present, else emulates it."""
        cache_dir = Path(task.cache_dir)
        name = architecture(task.target).name
        present = machine.devices(name)
        leased = Leased.take(machine, present, cache_dir) if present else None
        try:
            device = _workshop(
                problem, task, jail, cpus, cache_dir, leased.loads_up_to if leased else None
            )
            stage = _stage(problem, task) if leased else _small_stage(problem, task, device.subject)
        except BaseException:
            if leased:
                leased.close()
            raise
        return cls(
            task,
            problem,
            stage,
            jail,
            isolation,
            None,
            cpus,
            cache_dir,
            device=device,
            leased=leased,
        )

    @property
    def is_emulated(self) -> bool:
        """Whether candidates are for a device that is not here."""
        return self.device is not None and self.leased is None

    @property
    def abreast(self) -> int:
        """Candidates that may be built or emulated at once on these CPUs."""
        return _abreast(self.cpus)

    def ensure_admitted(self) -> None:
        """Waits for the null-kernel gate. Raises NotDiscriminatingError where it failed."""
        assert self._admission is not None
        self._admission.result()

    @property
    def slots(self) -> int:
        """Slots of an arena on the target workload."""
        one = sum(footprint(self.problem, self.stage.target.axes))
        return int(np.clip(_SLOT_ROOM // one, 3, MAX_BATCH))

    @property
    def reference(self) -> Reference:
        """The running baselines; waits until they are ready."""
        assert self._reference is not None
        return self._reference.result()

    @cached_property
    def pool(self) -> Pool:
        """What the inputs of timed calls are taken of; drawn once, since that takes a while."""
        return Pool.drawn(self.problem, self.stage.target, np.random.default_rng())

    def prepared(self) -> Preparation:
        """Waits until candidates can be judged; which baselines they are held against."""
        self.ensure_admitted()
        if self._reference is None:
            return Preparation()
        held = self.reference
        return Preparation(baselines=tuple(held.latency_us), missing=held.missing)

    def await_reference(self) -> None:
        """Waits until nothing more is measured in the background."""
        if self._reference is not None:
            self._reference.result()

    @property
    def facts(self) -> dict[str, float]:
        """What recipes may ask about the workload and the machine."""
        own = {"cpus": float(len(self.cpus)), "vector_bytes": float(processor().vector_bytes)}
        if self.device is None:
            return {**features(self.stage.target), **own, **_rates(self.peaks)}
        limits = self.device.architecture
        return {
            **features(self.device.subject),
            "capability": float(limits.capability),
            "shared_per_block": float(limits.shared_per_block),
        }

    def timeout_s(self) -> float:
        """Deadline of one call: ten times the reference, at least five seconds.

        An emulation is slow and is not timed: it has what a grid that does not end would need.
        """
        if self.is_emulated:
            return EMULATED_CALL_S
        if self._reference is not None and self._reference.done():
            return max(5.0, 10 * max(self.reference.latency_us.values()) * MAX_BATCH / 1e6)
        return 5.0

    def versions(self) -> dict[str, str]:
        """What the figures of a verdict depend on."""
        return {
            "kernelwright": __version__,
            "python": platform.python_version(),
            "kernel": platform.release(),
            "cpu": processor().name or platform.machine(),
            **{name: version(name) for name in ("torch", "numpy", "scipy")},
            **({"triton": version("triton")} if self.device and self.device.triton else {}),
            **(self.leased.versions if self.leased else {}),
        }

    def close(self) -> None:
        """Ends the baseline process and gives the device back."""
        try:
            if self._reference is not None and not self._reference.cancel():
                self._reference.result().process.close()
        finally:
            if self.device is not None:
                self.device.close()
            self._pool.shutdown()
            if self.leased is not None:
                self.leased.close()

    def _start_reference(self) -> Reference:
        """The baselines that are ready in time; one that is not makes the others start again."""
        device = self.leased.place.device if self.leased else ""
        fit = tuple(b.name for b in self.problem.baselines if b.runs_on(device))
        names, late = list(self.task.baselines or fit), dict[str, str]()
        while True:
            process = BaselineProcess(
                self.problem,
                self.stage.target,
                slots=self.slots,
                cpus=self.cpus,
                cache_dir=self.cache_dir,
                place=self.leased.place if self.leased else None,
            )
            try:
                return self._ready_reference(process, tuple(names), late)
            except NotReady as slow:
                process.close()
                names.remove(slow.baseline)
                within = f"{self.task.preparation_s:g} s"
                late[slow.baseline] = f"it was not ready within {within} (--max-preparation)"
            except BaseException:
                process.close()
                raise

    def _ready_reference(
        self, process: BaselineProcess, names: tuple[str, ...], late: dict[str, str]
    ) -> Reference:
        rng = np.random.default_rng()
        usable, missing = process.prepare(names, rng, self.task.preparation_s)
        missing = late | missing
        if not usable:
            waited = "; give them more time: --max-preparation 30m" if late else ""
            raise PrerequisiteError(
                f"no baseline of {self.problem.name} runs here: {missing}",
                hint=f"check that torch and scipy are installed in this environment{waited}",
            )
        latency = {name: self._calibrate(process, name, rng) for name in usable}
        peaks = self.leased.peaks(process) if self.leased else None
        return Reference(process, latency, missing, peaks)

    def _calibrate(self, process: BaselineProcess, name: str, rng: np.random.Generator) -> float:
        side = BaselineSide(name, process)
        item = make_item(self.problem, self.stage.target, Family.NORMAL, rng)
        side.take([item], 0)
        return stats.median(side.take([item], 0) for _ in range(_CALIBRATION_CALLS))


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


def _abreast(cpus: tuple[int, ...]) -> int:
    return min(len(cpus), MOST_ABREAST)


def _workshop(
    problem: Problem,
    task: Task,
    jail: Jail,
    cpus: tuple[int, ...],
    cache_dir: Path,
    newest: int | None,
) -> Workshop:
    """Raises PrerequisiteError where the driver does not load what our compilers make."""
    for language in task.languages:
        compiler_for(language, newest)
    target = architecture(task.target)
    subject = problem.structure(task.workload)
    builder = waiting = None
    if TRITON.name in task.languages:
        builder = TritonBuilder(
            jail, target, cache_dir=cache_dir, workers=_abreast(cpus), newest=newest
        )
        waiting = Waiting(jail, interpreted.LIMITS, cpus)
    return Workshop(problem, target, subject, cache_dir, jail, builder, newest, waiting)


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


def _rates(peaks: Peaks | None) -> dict[str, float]:
    """What this machine reached at best."""
    if peaks is None:
        return {}
    return {
        "memory_gbs": peaks.bandwidth_gbs,
        "llc_gbs": peaks.llc_bandwidth_gbs,
        "l2_gbs": peaks.cache_bandwidth_gbs,
        "fma_gflops": peaks.flops_gflops,
    }
