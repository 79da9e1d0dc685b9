# SPDX-License-Identifier: Apache-2.0
"""How long interpreted calls may take, and how much of a call has run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Patience:
    """How many steps there are: loads, stores, atomics and products, more of large tiles.

    They are counted, not timed: the same programs run on a machine that is slow or busy.
    """

    steps: int = 40_000
    """In one program; more is an error."""
    too_long: int = 3
    """Calls that stay unknown since one program takes more, where others did not."""
    call: int = 12_000
    """In one call, once a program of each launch has run."""
    sample: int = 96
    """In one call, from which on the programs of a grid are left out that have not run."""
    sampled: int = 3_000
    """In all calls: a quarter of what is left may be spent in a call beyond `sample`."""
    small: int = 4_000
    """In all calls for grids of few programs: half of what is left may be spent in a call."""
    whole: int = 16_000
    """In all calls whose programs need each other, so that none is left out."""

    def most_steps(self) -> int:
        """The steps of a call."""
        return min(self.steps, self.call)

    def share(self) -> int:
        """The steps that the next call may take before programs are left out."""
        return min(self.most_steps(), max(self.sample, self.sampled // 4))

    def small_share(self) -> int:
        """The steps that a grid of few programs may take before some are left out."""
        return min(self.most_steps(), max(self.sample, self.small // 2))

    def whole_share(self) -> int:
        """The steps that the next call may take where no program is left out."""
        return min(self.most_steps(), max(self.sample, self.whole // 4))

    def spend(self, steps: int, small: int, *, is_whole: bool) -> None:
        """Takes off what a call took beyond its due; `small` of it by grids of few programs."""
        if is_whole:
            self.whole = max(0, self.whole - max(0, steps - self.sample))
            return
        self.small = max(0, self.small - max(0, small - self.sample))
        self.sampled = max(0, self.sampled - max(0, steps - small - self.sample))


@dataclass
class CallCoverage:
    """What ran of the last call."""

    programs: int = 0
    left_out: int = 0

    def __bool__(self) -> bool:
        return self.left_out > 0
