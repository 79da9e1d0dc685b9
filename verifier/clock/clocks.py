# SPDX-License-Identifier: Apache-2.0
"""What the referee's clocks say of timed calls, and what a call counts as.

Pure functions of figures. No claim lowers a time: a call counts as long as the referee saw it take,
from the opening of the gate to the kernel's stamp on the answer, less what an empty call took
before the candidate was loaded; at least as long as its CPU time takes on all CPUs, and as its
busiest thread worked until the process was stopped behind the answer: who finishes after it has
answered pays (verification.md §4). The process is stopped from its answer until the inputs of its
next call are written; what it uses from then until the gate opens is added whole.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

import numpy as np

from ...sandbox.run.process import Timed
from ...traces.records import Check

CLOCK_LIMIT = 1.1
"""The referee's clock, less an empty call's and CLOCK_SLACK_US, over the claim: beyond it in nine
of ten calls the verdict is SUSPECT. A busy machine may put the runner aside before or behind a
kernel in most of them; whoever tells the truth in a few gains nothing by the others."""
CLOCK_SLACK_US = 20.0
"""An honest answer is on its way for so long at most; longer where the Program says so. It is
charged, but proves nothing."""
CPU_SLACK_US = 100.0
"""CPU time beyond that of the claim on all CPUs: threads falling asleep after the answer."""
AHEAD_US = 100.0
"""CPU time between the answer before and the gate that is charged, in three of four calls, beside
AHEAD_SHARE of the call: more is SUSPECT. Where a machine is busy the referee itself is put aside
there now and then."""
AHEAD_SHARE = 0.1
EMPTY_LIMIT_US = 5.0
"""More than this is not taken off for an empty call: where it took longer, the machine was busy."""
WAKING_LIMIT_US = 60.0
"""The same for the CPU time of waking up and of falling asleep, of all threads."""
BUSIEST_LIMIT_US = 20.0
"""The same of one thread."""
LOOKING_LIMIT_US = 60.0
"""The same for the CPU time of waking up and of looking at the gate before it opens."""
COLD = 1.75
"""Times an empty call's CPU time is taken off, which was measured on one call after the other:
between two of a timing the others have theirs, and nothing is in the caches any more of what
threads fall asleep and wake up with. Measured on honest kernels (`make fairness`)."""


@dataclass
class Clocks:
    """What was seen of each timed call; microseconds."""

    claimed_us: list[float] = field(default_factory=list)
    wall_us: list[float] = field(default_factory=list)
    """Less an empty call's."""
    doubted_us: list[float] = field(default_factory=list)
    """The same less what an honest answer may need on its way."""
    cpu_us: list[float] = field(default_factory=list)
    """Less an empty call's."""
    busiest_us: list[float] = field(default_factory=list)
    """CPU time of the busiest thread, less an empty call's."""
    ahead_us: list[float] = field(default_factory=list)
    """CPU time between the answer before and the gate, less an empty call's."""
    beyond_us: list[float] = field(default_factory=list)
    """By how much the referee's clock exceeds what it grants to a device's events."""

    def add(
        self,
        call: Timed,
        empty: Timed,
        cpus: int,
        *,
        overhead_us: float = 0.0,
    ) -> float:
        """Takes up a call; the microseconds that it counts as.

        Args:
            empty: An empty call of the same runner, before it had loaded the candidate.
            cpus: How many CPUs the candidate may use.
            overhead_us: `Program.overhead_us`.
        """
        claimed = call.claimed_ns / 1e3
        wall = call.wall_ns / 1e3 - min(empty.wall_ns / 1e3, EMPTY_LIMIT_US)
        slack = CLOCK_SLACK_US + overhead_us + max(0.0, empty.wall_ns / 1e3 - EMPTY_LIMIT_US)
        cpu = max(0.0, call.cpu_ns / 1e3 - _granted_us(empty.cpu_ns, WAKING_LIMIT_US))
        if call.host_ns and self._bears_out(wall - claimed * CLOCK_LIMIT - slack):
            # Events time the kernels alone; launching them and waking up is in any call of a GPU's.
            wall = claimed
        busiest = call.busiest_ns / 1e3 - _granted_us(empty.busiest_ns, BUSIEST_LIMIT_US)
        looking = _granted_us(empty.ahead_ns, LOOKING_LIMIT_US) + overhead_us
        ahead = max(0.0, call.ahead_ns / 1e3 - looking)
        self.claimed_us.append(claimed)
        self.wall_us.append(wall)
        self.doubted_us.append(wall - slack)
        self.cpu_us.append(cpu)
        self.busiest_us.append(busiest)
        self.ahead_us.append(ahead)
        return max(claimed, wall, cpu / cpus, busiest) + ahead

    def _bears_out(self, beyond_us: float) -> bool:
        """Whether the referee's clock bears out a device's events, in the median call so far.

        One call tells nothing of a kernel that is shorter than the host takes to wake up, and
        baselines, whose events alone count, are not charged for it either.
        """
        self.beyond_us.append(beyond_us)
        return statistics.median_low(self.beyond_us) <= 0


def _granted_us(empty_ns: int, limit_us: float) -> float:
    """CPU time that is not charged, from what an empty call took of it."""
    return COLD * min(empty_ns / 1e3, limit_us)


def join_clocks(parts: list[Clocks]) -> Clocks:
    """All samples of several processes."""
    whole = Clocks()
    for part in parts:
        for name, figures in vars(part).items():
            getattr(whole, name).extend(figures)
    return whole


def ratio(clocks: Clocks) -> float:
    """Referee's time per call / claimed time per call; a little over 1 for an honest runner."""
    return float(np.median(clocks.wall_us)) / max(float(np.median(clocks.claimed_us)), 1e-3)


def checks(clocks: Clocks, cpus: int) -> list[Check]:
    """Two clocks, CPU time within calls, and ahead of the gate."""
    claimed = float(np.median(clocks.claimed_us))
    doubted = np.asarray(clocks.doubted_us) / np.maximum(clocks.claimed_us, 1e-3)
    found = float(np.percentile(doubted, 10))
    # Means: a claim that is low in a few calls only cannot hide among the others.
    cpu = float(np.mean(clocks.cpu_us))
    allowed = float(np.mean(clocks.claimed_us)) * cpus * CLOCK_LIMIT + CPU_SLACK_US
    ahead = float(np.percentile(clocks.ahead_us, 25))
    allowed_ahead = AHEAD_US + AHEAD_SHARE * claimed
    return [
        Check(
            name="two clocks",
            passed=found <= CLOCK_LIMIT,
            figure=found,
            limit=CLOCK_LIMIT,
            detail=f"the referee saw {found:.2f} times the time that the runner claims, or more, "
            "in nine of ten calls",
        ),
        Check(
            name="CPU time within calls",
            passed=cpu <= allowed,
            figure=cpu,
            limit=allowed,
            detail=f"{cpu:.0f} µs of CPU time per call of {claimed:.0f} µs on {cpus} CPUs",
        ),
        Check(
            name="CPU time ahead of the gate",
            passed=ahead <= allowed_ahead,
            figure=ahead,
            limit=allowed_ahead,
            detail=f"{ahead:.0f} µs of CPU time, or more, were spent between the answer before and "
            "the begin of a call, in three of four",
        ),
    ]
