# SPDX-License-Identifier: Apache-2.0
"""Holds launches against what the compiler says of their kernels."""

from __future__ import annotations

from collections.abc import Sequence

from ...kernelbench.targets import Architecture
from ..builders.model import KernelFacts
from ..front_matter import FilePlace
from .declared import Plan
from .faults import PlanFault, fault_at
from .limits import built_wrong
from .model import Launches


def check_built(
    launches: Launches,
    kernels: Sequence[KernelFacts],
    architecture: Architecture,
    plan: Plan | None = None,
) -> PlanFault | None:
    """The first launch that its kernel, as built, cannot be launched with: static shared memory,
    registers, number and sizes of parameters.

    `kernels` are in the order of `launches.kernels`; `plan` gives the fault its place.
    """
    for launch in launches.launches:
        if launch.kernel < 0:
            continue
        facts = kernels[launch.kernel]
        if wrong := built_wrong(launch, facts, architecture):
            key, sentence, kind = wrong
            place = _place(plan, launches, launch.kernel, key)
            return fault_at(f"{facts.name}: {sentence}", place, kind)
    return None


def _place(plan: Plan | None, launches: Launches, kernel: int, key: str) -> FilePlace:
    if plan is None:
        return FilePlace()
    name = launches.kernels[kernel]
    if launches.specialisations:
        name = launches.specialisations[kernel].kernel
    index = next((each.index for each in plan.launches if each.kernel == name), 0)
    return plan.place("launch", index, key)
