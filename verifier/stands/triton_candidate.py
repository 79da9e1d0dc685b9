# SPDX-License-Identifier: Apache-2.0
"""Triton candidates: compiled for the target in warm processes, and interpreted here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Self

from ...kernelbench.languages import TRITON
from ...kernelbench.problem import Structure
from ...sandbox.builders import python
from ...sandbox.builders.model import Built, DeviceBuilt, EmulatedVariant
from ...sandbox.builders.triton import TritonBuilder, TritonBuilt, TritonRequest
from ...sandbox.plan import Launches, Plan, PlanFault, parse
from ...sandbox.run import interpreted
from ...sandbox.run.arena import NOTHING_MORE, TABLES_BYTES, Extra
from ...sandbox.run.program import Program
from ...sandbox.run.starting import Waiting
from ...traces.records import Status
from ..failure import Failed, built_or_failed
from .gpu_candidates import (
    GpuGround,
    OnDevice,
    ensure_fits,
    resolve_or_fail,
    scratch_bytes,
    status_of,
)
from .session import count_abreast


@dataclass
class TritonCandidate:
    """Triton with a plan or with host code: compiled for the target, interpreted here."""

    maker: TritonMaker
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
    def build(cls, maker: TritonMaker, source: str) -> TritonCandidate:
        """Raises Failed."""
        ground = maker.ground
        plan = parse(source, TRITON.name)
        if isinstance(plan, PlanFault):
            raise Failed(status_of(plan), plan.sentence)
        # It imports while the candidate is built.
        interpreted.prepare(
            ground.workshop, maker.interpreters, ground.problem, ground.architecture
        )
        entry = ""
        if not plan.launches:
            entry = built_or_failed(python.check(source, ground.problem)).entry
        made = _triton(maker, source, plan, entry, (ground.subject,))
        return cls(maker, source, plan, made.device, made.launches[0], entry)

    @property
    def spare(self) -> int:
        """See DeviceCandidate."""
        return TABLES_BYTES

    def extra(self, structure: Structure) -> Extra:
        """See DeviceCandidate. The interpreter makes the work buffers itself."""
        if self.entry:
            return NOTHING_MORE
        return Extra(interpreted.table(resolve_or_fail(self.maker.ground, self.plan, structure)))

    def on_device(self, structures: Sequence[Structure]) -> OnDevice:
        """See DeviceCandidate: each structure has kernels of its own, as Triton specialises."""
        parts = [self._build((one,)) for one in structures]
        whole = self._build(tuple(structures)) if len(parts) > 1 else parts[0]
        known = _Tables(whole.device, self._build)
        for structure, launches in zip(structures, whole.launches, strict=True):
            known.add(structure, launches)
        return OnDevice(whole.device, known.extra)

    def _build(self, structures: tuple[Structure, ...]) -> TritonBuilt:
        return _triton(self.maker, self.source, self.plan, self.entry, structures)

    def program(self, schedule: str) -> Program:
        """See DeviceCandidate."""
        del schedule
        return self._interpreted_program()

    def patient_program(self) -> Program:
        """The interpreter with more patience, for one call that is to be explained."""
        return self._interpreted_program(sample=interpreted.STEPS // 8)

    def _interpreted_program(self, sample: int = 0) -> Program:
        raw = self.source.encode()
        built = Built(raw, hashlib.sha256(raw).hexdigest(), 0.0, compiler="Triton's interpreter")
        return interpreted.interpreted_program(
            self.maker.ground.workshop,
            built,
            self.maker.ground.problem,
            self.maker.ground.architecture,
            entry=self.entry,
            kernels=self.device.kernels,
            launches=self.launches,
            waiting=self.maker.interpreters,
            sample=sample,
        )


def _triton(
    maker: TritonMaker, source: str, plan: Plan, entry: str, structures: tuple[Structure, ...]
) -> TritonBuilt:
    """The source built for these structures, whose launches all fit. Raises Failed."""
    ground = maker.ground
    plans = None
    if plan.launches:
        plans = tuple(resolve_or_fail(ground, plan, structure) for structure in structures)
    request = TritonRequest(source, ground.problem, structures, plans, entry=entry or "run")
    made = built_or_failed(maker.builder.build(request))
    for launches in made.launches:
        ensure_fits(ground, launches, made.device)
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
        sizes = tuple(scratch_bytes(each) for each in launches.scratch)
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


@dataclass(frozen=True)
class TritonMaker:
    """See Maker: warm processes that compile, and interpreters that have imported all."""

    ground: GpuGround
    builder: TritonBuilder
    interpreters: Waiting

    @classmethod
    def open(cls, ground: GpuGround) -> Self:
        """Begins to start them. Raises PrerequisiteError."""
        builder = TritonBuilder(
            ground.workshop,
            ground.architecture,
            workers=count_abreast(ground.workshop.cpus),
            newest=ground.newest,
        )
        return cls(ground, builder, Waiting(ground.workshop, interpreted.LIMITS))

    @property
    def versions(self) -> dict[str, str]:
        """See Maker."""
        return {"triton": version("triton")}

    def build(self, source: str, seed: int, foreseen: Sequence[EmulatedVariant]) -> TritonCandidate:
        """See Maker: it has one order of its own, and no builds for the CPU."""
        del seed, foreseen
        return TritonCandidate.build(self, source)

    def close(self) -> None:
        """See Maker."""
        self.builder.close()
        self.interpreters.close()
