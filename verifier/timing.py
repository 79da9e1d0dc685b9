"""Interleaved paired timing: every round gives fresh inputs to every side, in a random order.

The number of rounds and the calls per sample are decided by the fastest baseline, never by the
candidate (C9). Times are the runner's claims, held against the referee's own clock: a runner whose
claim is smaller than that clock allows is charged the difference (two clocks, verification.md §4).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ..traces.records import Check, Measurement, Speedup
from . import statistics
from .sides import CandidateSide, Clocks, Side
from .trials import Item

SAMPLE_US = 400.0
"""Calls shorter than this are sampled several at a time."""
MAX_BATCH = 12
WARM_UP_CALLS = 3
CLOCK_TOLERANCE = 0.05
"""The two clocks of an honest runner agree within this much."""
CLOCK_LIMIT = 1.25
"""The referee's clock over the claim: beyond it the verdict is SUSPECT."""
IDLE_CPU_US = 60.0
"""CPU time per answer that a runner may spend until the next call (threads falling asleep)."""
LAUNCH_BOUND = 5.0
"""A sample shorter than this many round trips is marked launch-bound."""


@dataclass
class Series:
    """Samples of every side, a list per block; a block is one runner process."""

    blocks: dict[str, list[list[float]]] = field(default_factory=dict)
    clocks: list[Clocks] = field(default_factory=list)
    batch: int = 1

    def of(self, name: str) -> list[np.ndarray]:
        """The blocks of one side as arrays, microseconds per call."""
        return [np.asarray(block) for block in self.blocks.get(name, []) if block]

    def all_of(self, name: str) -> np.ndarray:
        """All samples of one side."""
        blocks = self.of(name)
        return np.concatenate(blocks) if blocks else np.empty(0)


@dataclass(frozen=True)
class Rounds:
    """How long to sample in one block."""

    count: int
    budget_s: float
    """Beyond it a block ends once it has `least` rounds."""
    least: int = 4


def batch_for(reference_us: float, room: int) -> int:
    """Calls per sample, from the fastest baseline's time."""
    return int(min(MAX_BATCH, room, max(1.0, np.ceil(SAMPLE_US / max(reference_us, 1.0)))))


def sample_block(
    series: Series,
    candidate: Side,
    others: list[Side],
    items: Callable[[int], list[Item]],
    slots: int,
    rounds: Rounds,
    rng: np.random.Generator,
) -> None:
    """Adds one block of paired samples. Raises RunFault or Wrong."""
    sides: list[Side] = [candidate, *others]
    batch = series.batch
    for _ in range(WARM_UP_CALLS):
        given = items(batch)
        for side in sides:
            side.take(given, 0)
    if isinstance(candidate, CandidateSide):
        candidate.clocks = Clocks()
    samples: dict[str, list[float]] = {side.name: [] for side in sides}
    start = time.monotonic()
    for number in range(rounds.count):
        if number >= rounds.least and time.monotonic() - start > rounds.budget_s:
            break
        given = items(batch)
        first = int(rng.integers(slots - batch + 1))
        for index in rng.permutation(len(sides)):
            samples[sides[index].name].append(sides[index].take(given, first))
    for name, block in samples.items():
        series.blocks.setdefault(name, []).append(block)
    if isinstance(candidate, CandidateSide):
        series.clocks.append(candidate.clocks)


def clock_ratio(series: Series) -> float:
    """Referee's time per call / claimed time per call, medians; about 1 for an honest runner."""
    claimed = np.concatenate([c.claimed_us for c in series.clocks])
    wall = np.concatenate([c.wall_us for c in series.clocks])
    ping = np.concatenate([c.ping_us for c in series.clocks])
    net = (np.median(wall) - np.median(ping)) / series.batch
    return float(net / max(float(np.median(claimed)), 1e-3))


def charge(series: Series, name: str, uncharged_trips: float = 2.0) -> float:
    """Scales the candidate's samples up where its claims fall short of the referee's clock.

    Returns the ratio of the clocks. A surplus within the tolerance, or within a few round trips, is
    the cost of waking a process and is not charged.
    """
    ratio = clock_ratio(series)
    pings = np.concatenate([c.ping_us for c in series.clocks])
    claimed = float(np.median(series.all_of(name)))
    slack = uncharged_trips * float(np.median(pings)) / series.batch / max(claimed, 1e-3)
    if ratio > 1.0 + CLOCK_TOLERANCE + slack:
        series.blocks[name] = [[us * ratio for us in block] for block in series.blocks[name]]
    return ratio


def clock_checks(series: Series, cpus: int) -> list[Check]:
    """Two clocks, CPU time within a call, CPU time after an answer."""
    ratio = clock_ratio(series)
    pings = np.concatenate([c.ping_us for c in series.clocks])
    claimed = float(np.median(np.concatenate([c.claimed_us for c in series.clocks])))
    slack = 4.0 * float(np.median(pings)) / series.batch / max(claimed, 1e-3)
    idle = float(np.mean(np.concatenate([c.idle_cpu_us for c in series.clocks])))
    cpu = float(np.mean(np.concatenate([c.cpu_us for c in series.clocks])))
    wall = float(np.mean(np.concatenate([c.wall_us for c in series.clocks])))
    allowed = wall / series.batch * cpus * 1.1 + IDLE_CPU_US
    return [
        Check(
            name="two clocks", passed=ratio <= CLOCK_LIMIT + slack, figure=ratio,
            limit=CLOCK_LIMIT + slack,
            detail=f"the referee saw {ratio:.2f} times the time that the runner claims",
        ),
        Check(
            name="CPU time within calls", passed=cpu <= allowed, figure=cpu, limit=allowed,
            detail=f"{cpu:.0f} µs of CPU time per call of {claimed:.0f} µs on {cpus} CPUs",
        ),
        Check(
            name="CPU time after answers", passed=idle <= IDLE_CPU_US + 0.02 * claimed,
            figure=idle, limit=IDLE_CPU_US + 0.02 * claimed,
            detail=f"{idle:.0f} µs of CPU time per answer were spent after it was given",
        ),
    ]  # fmt: skip


def measurement(
    series: Series,
    candidate: str,
    baselines: list[str],
    champion: str | None,
    *,
    missing: dict[str, str],
    workload: str,
    floor_us: float,
    threads: int,
    ratio: float,
    rng: np.random.Generator,
) -> Measurement:
    """The record of a finished series."""
    timings = {name: statistics.timing(series.of(name)) for name in baselines}
    best = min(timings, key=lambda name: timings[name].median_us, default="")
    compared = [*baselines, *([champion] if champion else [])]
    if champion:
        timings[champion] = statistics.timing(series.of(champion))
    speedup: dict[str, Speedup] = {
        name: statistics.speedup(series.of(candidate), series.of(name), rng) for name in compared
    }
    own = statistics.timing(series.of(candidate))
    pings = np.concatenate([c.ping_us for c in series.clocks])
    cpu = np.concatenate([c.cpu_us for c in series.clocks])
    return Measurement(
        workload=workload,
        candidate=own,
        baselines=timings,
        speedup=speedup,
        best_baseline=best,
        missing=missing,
        pairs=int(series.all_of(candidate).size),
        mde=statistics.mde(series.of(best), rng) if best else 0.0,
        floor_us=floor_us,
        roofline=floor_us / own.median_us if floor_us else None,
        clock_ratio=1.0 / ratio if ratio > 0 else None,
        cpu_us=float(np.mean(cpu)),
        threads=threads,
        is_launch_bound=own.median_us * series.batch < LAUNCH_BOUND * float(np.median(pings)),
    )
