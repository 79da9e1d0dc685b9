# SPDX-License-Identifier: Apache-2.0
"""One launch of a kernel with all that is known of it; the static profile is made of these."""

from __future__ import annotations

from dataclasses import dataclass

from ...sandbox.builders.model import KernelFacts
from ...sandbox.plan.model import Launch
from .mix import Mix
from .model import Estimate, LaunchShape
from .occupancy import Occupancy


@dataclass(frozen=True)
class SeenLaunch:
    """One launch of a kernel with what is known of it."""

    number: int
    """Among the launches of kernels."""
    launch: Launch
    facts: KernelFacts
    occupancy: Occupancy
    mix: Mix | None
    shape: LaunchShape
    estimate: Estimate | None = None
    turn_us: float = 0.0
    """What one more turn of the load/store units costs by the model; 0 where turns are guessed."""

    def waves(self, sms: int) -> float:
        """How often the blocks of the grid fill the device."""
        return self.launch.blocks / (sms * self.occupancy.blocks)
