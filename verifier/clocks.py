"""What the referee's clocks say of timed calls, and what a call counts as.

Pure functions of figures. No claim lowers a time: a call counts as long as the referee saw it take,
from the opening of the gate to the kernel's stamp on the answer, less what an empty call took
before the candidate was loaded; at least as long as its CPU time takes on all CPUs; and CPU time
between calls is added, so that work outside of them cannot pay (verification.md §4).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..sandbox.run.process import Timed
from ..traces.records import Check

CLOCK_LIMIT = 1.1
"""The referee's clock, less CLOCK_SLACK_US, over the claim: beyond it in three of four calls the
verdict is SUSPECT. A busy machine may put the runner aside before or behind a kernel in some."""
CLOCK_SLACK_US = 20.0
"""An honest answer is on its way, and its words are summed, for so long at most; longer where the
Program says so. It is charged, but proves nothing."""
CPU_SLACK_US = 100.0
"""CPU time beyond that of the claim on all CPUs: threads falling asleep after the answer."""
IDLE_ALLOWED_US = 40.0
"""CPU time between calls that is not charged, beside IDLE_ALLOWED_SHARE of the call and twice that
of an empty call: waking up, and threads of the last call falling asleep."""
IDLE_ALLOWED_SHARE = 0.005
IDLE_OFTEN_US = 50.0
"""CPU time between calls beyond what is allowed, in half of the gaps, beside IDLE_OFTEN_SHARE of
the call: more is SUSPECT. Honest kernels show next to none, with three times the load too."""
IDLE_OFTEN_SHARE = 0.02
IDLE_SELDOM_US = 250.0
"""The same for a quarter of the gaps, beside IDLE_SELDOM_SHARE of the call."""
IDLE_SELDOM_SHARE = 0.1
IDLE_RESTING_US = 250.0
"""The same for half of the gaps in which other sides were timed. They are long: threads that work
on are seen there where a busy machine gives them few turns."""
EMPTY_LIMIT_US = 3.0
"""More than this is not taken off for an empty call: where it took longer, the machine was busy."""
WAKING_LIMIT_US = 20.0
"""The same for the CPU time of waking up and of falling asleep."""


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
    idle_us: list[float] = field(default_factory=list)
    """CPU time before the call beyond what is allowed."""
    resting_us: list[float] = field(default_factory=list)
    """The same for the first call of each sample."""

    def add(
        self,
        call: Timed,
        empty: Timed,
        cpus: int,
        *,
        overhead_us: float = 0.0,
        has_rested: bool = False,
    ) -> float:
        """Takes up a call; the microseconds that it counts as.

        Args:
            empty: An empty call of the same runner, before it had loaded the candidate.
            cpus: How many CPUs the candidate may use.
            overhead_us: `Program.overhead_us`.
            has_rested: Whether other sides were timed since its last call.
        """
        claimed = call.claimed_ns / 1e3
        wall = call.wall_ns / 1e3 - min(empty.wall_ns / 1e3, EMPTY_LIMIT_US)
        cpu = max(0.0, call.cpu_ns / 1e3 - min(empty.cpu_ns / 1e3, WAKING_LIMIT_US))
        if call.host_ns and wall <= claimed * CLOCK_LIMIT + CLOCK_SLACK_US:
            # Events time the kernels alone; launching them and waking up is in any call of a GPU's.
            wall = claimed
        counted = max(claimed, wall, cpu / cpus)
        allowed = IDLE_ALLOWED_US + IDLE_ALLOWED_SHARE * counted + overhead_us
        waking = min(2 * empty.idle_ns / 1e3, WAKING_LIMIT_US)
        idle = max(0.0, call.idle_ns / 1e3 - waking - allowed)
        self.claimed_us.append(claimed)
        self.wall_us.append(wall)
        self.doubted_us.append(wall - CLOCK_SLACK_US - overhead_us)
        self.cpu_us.append(cpu)
        self.idle_us.append(idle)
        if has_rested:
            self.resting_us.append(idle)
        return counted + idle


def joined(parts: list[Clocks]) -> Clocks:
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
    """CPU time between calls, two clocks, CPU time within calls."""
    claimed = float(np.median(clocks.claimed_us))
    doubted = np.asarray(clocks.doubted_us) / np.maximum(clocks.claimed_us, 1e-3)
    found = float(np.percentile(doubted, 25))
    # Means: a claim that is low in a few calls only cannot hide among the others.
    cpu = float(np.mean(clocks.cpu_us))
    allowed = float(np.mean(clocks.claimed_us)) * cpus * CLOCK_LIMIT + CPU_SLACK_US
    # No mean: on a shared host the time of waking up is booked as CPU time now and then.
    often, seldom = np.percentile(clocks.idle_us, [50, 75])
    resting = float(np.median(clocks.resting_us or [0.0]))
    allowed_often = IDLE_OFTEN_US + IDLE_OFTEN_SHARE * claimed
    allowed_seldom = IDLE_SELDOM_US + IDLE_SELDOM_SHARE * claimed
    return [
        Check(
            name="CPU time between calls",
            passed=bool(
                often <= allowed_often and seldom <= allowed_seldom and resting <= IDLE_RESTING_US
            ),
            figure=float(often), limit=allowed_often,
            detail=f"{often:.0f} µs of CPU time per call (median; upper quartile {seldom:.0f} "
            f"µs) and {resting:.0f} µs per sample were spent between an answer and the next call",
        ),
        Check(
            name="two clocks", passed=found <= CLOCK_LIMIT, figure=found, limit=CLOCK_LIMIT,
            detail=f"the referee saw {found:.2f} times the time that the runner claims, or more, "
            "in three of four calls",
        ),
        Check(
            name="CPU time within calls", passed=cpu <= allowed, figure=cpu, limit=allowed,
            detail=f"{cpu:.0f} µs of CPU time per call of {claimed:.0f} µs on {cpus} CPUs",
        ),
    ]  # fmt: skip
