# SPDX-License-Identifier: Apache-2.0
"""What a candidate for a GPU is: the same to every stand, whatever language it is written in.

It is parsed, resolved for the workload that was asked for and built before anything of it runs.
What is wrong with it is raised as Failed, with the status it gets. Nothing here judges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ...kernelbench.dtypes import dtype_of
from ...kernelbench.features import features
from ...kernelbench.locality import locality
from ...kernelbench.problem import Problem, Structure
from ...kernelbench.targets import Architecture
from ...sandbox.builders.model import DeviceBuilt, EmulatedVariant
from ...sandbox.builders.toolchain import ANY_RELEASE
from ...sandbox.builders.workshop import Workshop
from ...sandbox.plan import Launches, Plan, PlanFault, PlanFaultKind, check_built, resolve
from ...sandbox.plan.model import Scratch
from ...sandbox.run.arena import Behind, Extra
from ...sandbox.run.program import Program
from ...traces.records import Status
from ..failure import Failed

_STATUS = {
    PlanFaultKind.MISTAKE: Status.BUILD_FAILED,
    PlanFaultKind.LIMIT: Status.RESOURCE,
    PlanFaultKind.UNSUPPORTED: Status.UNSUPPORTED,
}


@dataclass(frozen=True)
class GpuGround:
    """What candidates for a GPU are built for, and where."""

    workshop: Workshop
    problem: Problem
    architecture: Architecture
    subject: Structure
    """The workload that was asked for; it is built for and modelled, and need not be emulated."""
    newest: int = ANY_RELEASE
    """The last major release of CUDA whose code the driver loads."""
    scales: Mapping[str, float] = field(default_factory=dict)
    """Of modelled times; see profile/fit.py."""

    @property
    def facts(self) -> dict[str, float]:
        """What recipes may ask about the workload and the target."""
        limits = self.architecture
        return {
            **features(self.subject),
            **locality(self.subject),
            "capability": float(limits.capability),
            "shared_per_block": float(limits.shared_per_block),
        }


@dataclass(frozen=True)
class OnDevice:
    """A candidate as one process of the device runner is given it."""

    built: DeviceBuilt
    extra: Behind
    """The table and the work buffers of a call. Raises Failed where it cannot be launched."""


class DeviceCandidate(Protocol):
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


class Maker(Protocol):
    """Makes the candidates of one language."""

    @property
    def versions(self) -> dict[str, str]:
        """Of what it builds with, beside the compilers that a build names."""

    def build(self, source: str, seed: int, foreseen: Sequence[EmulatedVariant]) -> DeviceCandidate:
        """See GpuTools.build."""

    def close(self) -> None:
        """Ends what waits for candidates."""


def status_of(fault: PlanFault) -> Status:
    """The status of a candidate with this fault."""
    return _STATUS[fault.kind]


def resolve_or_fail(ground: GpuGround, plan: Plan, structure: Structure) -> Launches:
    """The launches of a plan on a structure. Raises Failed."""
    found = resolve(plan, ground.problem, structure.axes, features(structure), ground.architecture)
    if isinstance(found, PlanFault):
        raise Failed(status_of(found), found.sentence)
    return found


def ensure_fits(
    ground: GpuGround, launches: Launches, device: DeviceBuilt, plan: Plan | None = None
) -> None:
    """Raises Failed where the launches do not fit what was built."""
    fault = check_built(launches, device.kernels, ground.architecture, plan)
    if fault is not None:
        raise Failed(status_of(fault), fault.sentence if plan else fault.reason)


def scratch_bytes(scratch: Scratch) -> int:
    """Of one work buffer."""
    return math.prod(scratch.shape) * dtype_of(scratch.dtype).bytes
