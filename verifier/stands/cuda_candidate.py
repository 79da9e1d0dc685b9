# SPDX-License-Identifier: Apache-2.0
"""CUDA C++ candidates: built for the target by NVRTC, and for the CPU, in variants, by g++."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from ...kernelbench.languages import CUDA
from ...kernelbench.problem import Structure
from ...sandbox.builders import cuda, emulated
from ...sandbox.builders.model import BuildFailed, Built, DeviceBuilt, EmulatedVariant, Unsupported
from ...sandbox.plan import Launches, Plan, PlanFault, parse
from ...sandbox.run.arena import EXTRA_BYTES, TABLES_BYTES, Extra
from ...sandbox.run.emulated import emulated_program
from ...sandbox.run.program import Program
from ..failure import Failed, built_or_failed
from .gpu_candidates import (
    GpuGround,
    OnDevice,
    ensure_fits,
    resolve_or_fail,
    scratch_bytes,
    status_of,
)

_BUILDERS = ThreadPoolExecutor(2, thread_name_prefix="emulated-build")
"""Compile what an emulation will ask for, beside the build for the device and each other."""


_Emulated = Built | BuildFailed | Unsupported


@dataclass
class CudaCandidate:
    """CUDA C++ with a plan: NVRTC for the target, g++ for the emulation."""

    ground: GpuGround
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
        cls, ground: GpuGround, source: str, seed: int, foreseen: Sequence[EmulatedVariant] = ()
    ) -> CudaCandidate:
        """Begins the builds for the CPU that are foreseen as well. Raises Failed."""
        plan = parse(source, CUDA.name)
        if isinstance(plan, PlanFault):
            raise Failed(status_of(plan), plan.sentence)
        launches = resolve_or_fail(ground, plan, ground.subject)
        begun = {
            variant: _BUILDERS.submit(_build_emulated, ground, source, launches, variant)
            for variant in foreseen
        }
        device = built_or_failed(
            cuda.build(
                ground.workshop,
                source,
                launches.kernels,
                ground.architecture,
                newest=ground.newest,
            )
        )
        ensure_fits(ground, launches, device, plan)
        schedules = emulated.schedules(seed)
        return cls(ground, source, plan, device, launches, schedules, _begun=begun)

    @property
    def spare(self) -> int:
        """See DeviceCandidate. All of it is looked at after each call: no more than it takes."""
        return EXTRA_BYTES if self.plan.scratch else TABLES_BYTES

    def extra(self, structure: Structure) -> Extra:
        """See DeviceCandidate."""
        launches = self.resolve_launches(structure)
        return Extra(launches.pack(), tuple(scratch_bytes(each) for each in launches.scratch))

    def resolve_launches(self, structure: Structure) -> Launches:
        """Its launches on this structure. Raises Failed."""
        launches = resolve_or_fail(self.ground, self.plan, structure)
        ensure_fits(self.ground, launches, self.device, self.plan)
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
        built = self.build_variant(variant)
        return emulated_program(self.ground.workshop, built, variant=variant, schedule=schedule)

    def build_variant(self, variant: EmulatedVariant) -> Built:
        """One of its builds for the CPU. Raises Failed."""
        if variant not in self._builds:
            begun = self._begun.get(variant)
            if begun is None or begun.cancel():
                result = _build_emulated(self.ground, self.source, self.launches, variant)
            else:
                result = begun.result()
            self._builds[variant] = built_or_failed(result)
        return self._builds[variant]


def _build_emulated(
    ground: GpuGround, source: str, launches: Launches, variant: EmulatedVariant
) -> _Emulated:
    return emulated.build(
        ground.workshop,
        source,
        ground.problem,
        launches.kernels,
        variant=variant,
        architecture=ground.architecture.name,
    )


@dataclass(frozen=True)
class CudaMaker:
    """See Maker: compilers that start for one source each."""

    ground: GpuGround

    @property
    def versions(self) -> dict[str, str]:
        """See Maker: a build names its compiler."""
        return {}

    def build(self, source: str, seed: int, foreseen: Sequence[EmulatedVariant]) -> CudaCandidate:
        """See Maker."""
        return CudaCandidate.build(self.ground, source, seed, foreseen)

    def close(self) -> None:
        """See Maker: nothing waits."""
