# SPDX-License-Identifier: Apache-2.0
"""Candidates for a GPU, one class for each language: what they build to, and how they are emulated.

A candidate is parsed, resolved for the workload that was asked for and built before anything of it
runs. What is wrong with it is raised as Failed, with the status it gets. Nothing here judges.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol as Interface

from ...kernelbench.dtypes import dtype_of
from ...kernelbench.features import features
from ...kernelbench.languages import CUDA, TRITON, Language, language_of
from ...kernelbench.problem import Problem, Structure
from ...kernelbench.targets import Architecture
from ...sandbox.builders import cuda, emulated, python
from ...sandbox.builders.model import BuildFailed, Built, DeviceBuilt, EmulatedVariant, Unsupported
from ...sandbox.builders.triton import TritonBuilder, TritonBuilt, TritonRequest
from ...sandbox.isolation.model import Jail
from ...sandbox.plan import Launches, Plan, PlanFault, PlanFaultKind, check_built, parse, resolve
from ...sandbox.plan.model import Scratch
from ...sandbox.run import interpreted
from ...sandbox.run.arena import EXTRA_BYTES, NOTHING_MORE, TABLES_BYTES, Behind, Extra
from ...sandbox.run.emulated import emulated_program
from ...sandbox.run.program import Program
from ...sandbox.run.starting import Waiting
from ...traces.records import Status
from ..failure import Failed, built_or_failed

_STATUS = {
    PlanFaultKind.MISTAKE: Status.BUILD_FAILED,
    PlanFaultKind.LIMIT: Status.RESOURCE,
    PlanFaultKind.UNSUPPORTED: Status.UNSUPPORTED,
}


_BUILDERS = ThreadPoolExecutor(2, thread_name_prefix="emulated-build")
"""Compile what an emulation will ask for, beside the build for the device and each other."""


@dataclass(frozen=True)
class Workshop:
    """What candidates are built with."""

    problem: Problem
    architecture: Architecture
    subject: Structure
    """The workload that was asked for; it is built for and modelled, and need not be emulated."""
    cache_dir: Path
    jail: Jail
    triton: TritonBuilder | None = None
    newest: int | None = None
    """The last major release of CUDA whose code the driver loads; None: nothing is loaded."""
    interpreters: Waiting | None = None
    """Interpreters that have imported all and wait for a candidate."""

    @property
    def facts(self) -> dict[str, float]:
        """What recipes may ask about the workload and the target."""
        limits = self.architecture
        return {
            **features(self.subject),
            "capability": float(limits.capability),
            "shared_per_block": float(limits.shared_per_block),
        }

    def close(self) -> None:
        """Ends what waits for candidates."""
        for each in (self.triton, self.interpreters):
            if each is not None:
                each.close()


@dataclass(frozen=True)
class OnDevice:
    """A candidate as one process of the device runner is given it."""

    built: DeviceBuilt
    extra: Behind
    """The table and the work buffers of a call. Raises Failed where it cannot be launched."""


class DeviceCandidate(Interface):
    """One candidate, built for its target."""

    plan: Plan
    device: DeviceBuilt
    launches: Launches
    """On the subject."""
    schedules: tuple[str, ...]
    """In which a right candidate gives the same answers; the first is the natural one."""
    is_native: bool
    """Whether our compiled runner emulates it: fences, sanitizers and the access build exist."""

    @property
    def spare(self) -> int:
        """Bytes behind the tensors of an emulated call, beyond those on the target."""

    def extra(self, structure: Structure) -> Extra:
        """What a call on this structure is given. Raises Failed where it cannot be launched."""

    def program(self, schedule: str) -> Program:
        """The program that emulates it. Raises Failed."""

    def on_device(self, structures: Sequence[Structure]) -> OnDevice:
        """What a device is given for calls on these structures and their twins. Raises Failed."""


def status_of(fault: PlanFault) -> Status:
    """The status of a candidate with this fault."""
    return _STATUS[fault.kind]


def _resolved(workshop: Workshop, plan: Plan, structure: Structure) -> Launches:
    found = resolve(
        plan, workshop.problem, structure.axes, features(structure), workshop.architecture
    )
    if isinstance(found, PlanFault):
        raise Failed(status_of(found), found.sentence)
    return found


def _fits(
    workshop: Workshop, launches: Launches, device: DeviceBuilt, plan: Plan | None = None
) -> None:
    fault = check_built(launches, device.kernels, workshop.architecture, plan)
    if fault is not None:
        raise Failed(status_of(fault), fault.sentence if plan else fault.reason)


def _bytes(scratch: Scratch) -> int:
    return math.prod(scratch.shape) * dtype_of(scratch.dtype).bytes


_Emulated = Built | BuildFailed | Unsupported


@dataclass
class CudaCandidate:
    """CUDA C++ with a plan: NVRTC for the target, g++ for the emulation."""

    workshop: Workshop
    source: str
    plan: Plan
    device: DeviceBuilt
    launches: Launches
    schedules: tuple[str, ...]
    is_native: bool = True
    _begun: dict[EmulatedVariant, Future[_Emulated]] = field(default_factory=dict)
    _builds: dict[EmulatedVariant, Built] = field(default_factory=dict)

    @classmethod
    def build(
        cls, workshop: Workshop, source: str, seed: int, foreseen: Sequence[EmulatedVariant] = ()
    ) -> CudaCandidate:
        """Begins the builds for the CPU that are foreseen as well. Raises Failed."""
        plan = parse(source, CUDA.name)
        if isinstance(plan, PlanFault):
            raise Failed(status_of(plan), plan.sentence)
        launches = _resolved(workshop, plan, workshop.subject)
        begun = {
            variant: _BUILDERS.submit(_emulated, workshop, source, launches, variant)
            for variant in foreseen
        }
        device = built_or_failed(
            cuda.build(
                source,
                launches.kernels,
                workshop.architecture,
                cache_dir=workshop.cache_dir,
                jail=workshop.jail,
                newest=workshop.newest,
            )
        )
        _fits(workshop, launches, device, plan)
        schedules = emulated.schedules(seed)
        return cls(workshop, source, plan, device, launches, schedules, _begun=begun)

    @property
    def spare(self) -> int:
        """See DeviceCandidate. All of it is looked at after each call: no more than it takes."""
        return EXTRA_BYTES if self.plan.scratch else TABLES_BYTES

    def extra(self, structure: Structure) -> Extra:
        """See DeviceCandidate."""
        launches = self.launched(structure)
        return Extra(launches.pack(), tuple(_bytes(each) for each in launches.scratch))

    def launched(self, structure: Structure) -> Launches:
        """Its launches on this structure. Raises Failed."""
        launches = _resolved(self.workshop, self.plan, structure)
        _fits(self.workshop, launches, self.device, self.plan)
        return launches

    def program(self, schedule: str) -> Program:
        """See DeviceCandidate."""
        return self.variant(EmulatedVariant.PLAIN, schedule)

    def on_device(self, structures: Sequence[Structure]) -> OnDevice:
        """See DeviceCandidate: one build serves every structure."""
        del structures
        return OnDevice(self.device, self.extra)

    def variant(self, variant: EmulatedVariant, schedule: str = "order") -> Program:
        """The program of one of its builds for the CPU. Raises Failed."""
        built = self.built(variant)
        return emulated_program(built, self.workshop.cache_dir, variant=variant, schedule=schedule)

    def built(self, variant: EmulatedVariant) -> Built:
        """One of its builds for the CPU. Raises Failed."""
        if variant not in self._builds:
            begun = self._begun.get(variant)
            if begun is None or begun.cancel():
                result = _emulated(self.workshop, self.source, self.launches, variant)
            else:
                result = begun.result()
            self._builds[variant] = built_or_failed(result)
        return self._builds[variant]


def _emulated(
    workshop: Workshop, source: str, launches: Launches, variant: EmulatedVariant
) -> _Emulated:
    return emulated.build(
        source,
        workshop.problem,
        launches.kernels,
        variant=variant,
        architecture=workshop.architecture.name,
        cache_dir=workshop.cache_dir,
        jail=workshop.jail,
    )


@dataclass
class TritonCandidate:
    """Triton with a plan or with host code: compiled for the target, interpreted here."""

    workshop: Workshop
    source: str
    plan: Plan
    device: DeviceBuilt
    launches: Launches
    entry: str
    """Of its host code; empty where it has a plan."""
    schedules: tuple[str, ...] = ("in turn",)
    """One process takes the interpreter's schedules in turn: starting one takes seconds."""
    is_native: bool = False

    @classmethod
    def build(cls, workshop: Workshop, source: str, seed: int) -> TritonCandidate:
        """Raises Failed."""
        del seed
        plan = parse(source, TRITON.name)
        if isinstance(plan, PlanFault):
            raise Failed(status_of(plan), plan.sentence)
        if workshop.interpreters is not None:
            # It imports while the candidate is built.
            interpreted.prepare(workshop.interpreters, workshop.problem, workshop.architecture)
        entry = ""
        if not plan.launches:
            entry = built_or_failed(python.check(source, workshop.problem)).entry
        made = _triton(workshop, source, plan, entry, (workshop.subject,))
        return cls(workshop, source, plan, made.device, made.launches[0], entry)

    @property
    def spare(self) -> int:
        """See DeviceCandidate."""
        return TABLES_BYTES

    def extra(self, structure: Structure) -> Extra:
        """See DeviceCandidate. The interpreter makes the work buffers itself."""
        if self.entry:
            return NOTHING_MORE
        return Extra(interpreted.table(_resolved(self.workshop, self.plan, structure)))

    def on_device(self, structures: Sequence[Structure]) -> OnDevice:
        """See DeviceCandidate: each structure has kernels of its own, as Triton specialises."""
        parts = [self._built((one,)) for one in structures]
        whole = self._built(tuple(structures)) if len(parts) > 1 else parts[0]
        known = _Tables(whole.device, self._built)
        for structure, launches in zip(structures, whole.launches, strict=True):
            known.add(structure, launches)
        return OnDevice(whole.device, known.extra)

    def _built(self, structures: tuple[Structure, ...]) -> TritonBuilt:
        return _triton(self.workshop, self.source, self.plan, self.entry, structures)

    def program(self, schedule: str) -> Program:
        """See DeviceCandidate."""
        del schedule
        return self._interpreted()

    def patient(self) -> Program:
        """The interpreter with more patience, for one call that is to be explained."""
        return self._interpreted(sample=interpreted.STEPS // 8)

    def _interpreted(self, sample: int = 0) -> Program:
        raw = self.source.encode()
        built = Built(raw, hashlib.sha256(raw).hexdigest(), 0.0, compiler="Triton's interpreter")
        return interpreted.interpreted_program(
            built,
            self.workshop.problem,
            self.workshop.architecture,
            entry=self.entry,
            kernels=self.device.kernels,
            launches=self.launches,
            waiting=self.workshop.interpreters,
            sample=sample,
        )


def _triton(
    workshop: Workshop, source: str, plan: Plan, entry: str, structures: tuple[Structure, ...]
) -> TritonBuilt:
    """The source built for these structures, whose launches all fit. Raises Failed."""
    plans = None
    if plan.launches:
        plans = tuple(_resolved(workshop, plan, structure) for structure in structures)
    assert workshop.triton is not None
    request = TritonRequest(source, workshop.problem, structures, plans, entry=entry or "run")
    made = built_or_failed(workshop.triton.build(request))
    for launches in made.launches:
        _fits(workshop, launches, made.device)
    return made


class _Tables:
    """The launches of a Triton candidate over the kernels that its process has loaded."""

    def __init__(
        self,
        loaded: DeviceBuilt,
        build: Callable[[tuple[Structure, ...]], TritonBuilt],
    ) -> None:
        self._loaded = {_identity(loaded, n): n for n in range(len(loaded.kernels))}
        self._build = build
        self._known: dict[int, tuple[Structure, Extra]] = {}

    def add(self, structure: Structure, launches: Launches) -> None:
        """Keeps the launches on a structure. Raises Failed."""
        sizes = tuple(_bytes(each) for each in launches.scratch)
        # The structure is kept as well: its identity is its key.
        self._known[id(structure)] = (structure, Extra(launches.pack(), sizes))

    def extra(self, structure: Structure) -> Extra:
        """Of a structure that was not built for, e.g. a twin. Raises Failed."""
        if id(structure) not in self._known:
            made = self._build((structure,))
            self.add(structure, self._over_loaded(made.device, made.launches[0]))
        return self._known[id(structure)][1]

    def _over_loaded(self, device: DeviceBuilt, launches: Launches) -> Launches:
        moved = []
        for launch in launches.launches:
            number = launch.kernel
            if number >= 0:
                number = self._loaded.get(_identity(device, number), -1)
                if number < 0:
                    raise Failed(
                        Status.UNSUPPORTED,
                        f"{device.kernels[launch.kernel].name} is compiled anew for a pattern of "
                        "the same sizes: let sizes alone decide what is specialised",
                    )
            moved.append(replace(launch, kernel=number))
        return replace(launches, launches=tuple(moved))


def _identity(device: DeviceBuilt, number: int) -> tuple[str, str]:
    kernel = device.kernels[number]
    return kernel.symbol, device.cubins[kernel.cubin].sha256


def candidate(
    workshop: Workshop,
    language: str,
    source: str,
    seed: int,
    foreseen: Sequence[EmulatedVariant] = (),
) -> DeviceCandidate:
    """The candidate in its language, built for the target.

    Builds for the CPU that are foreseen are begun beside it, where the language has such.

    Raises:
        Failed: it cannot be built or launched.
        PrerequisiteError: this machine lacks what the language needs.
        SandboxError, StorageError: the harness failed, not the source.
    """
    return BUILT[language_of(language)](workshop, source, seed, foreseen)


BUILT: dict[
    Language, Callable[[Workshop, str, int, Sequence[EmulatedVariant]], DeviceCandidate]
] = {
    CUDA: CudaCandidate.build,
    TRITON: lambda workshop, source, seed, _: TritonCandidate.build(workshop, source, seed),
}
"""How each language that GPUs take becomes a candidate."""
TAKES = f"it takes {' and '.join(map(str, BUILT))}"
