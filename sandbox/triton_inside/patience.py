"""How long interpreted calls may take, and how much of a call has run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Patience:
    """How many steps there are: loads, stores, atomics and products, or STEP_S of CPU time."""

    steps: int = 12_000
    """In one call; more is an error."""
    sample: int = 160
    """In one call, from which on the programs of a grid are left out that have not run."""
    sampled: int = 6_000
    """In all calls: a quarter of what is left may be spent in a call beyond `sample`."""
    whole: int = 16_000
    """In all calls whose programs need each other, so that none is left out."""

    def share(self) -> int:
        """The steps that the next call may take before programs are left out."""
        return min(self.steps, max(self.sample, self.sampled // 4))

    def whole_share(self) -> int:
        """The steps that the next call may take where no program is left out."""
        return min(self.steps, max(self.sample, self.whole // 4))


@dataclass
class Coverage:
    """What ran of the last call."""

    programs: int = 0
    left_out: int = 0

    def __bool__(self) -> bool:
        return self.left_out > 0
