"""Interleaved paired timing: every round gives fresh inputs to every side, in a random order.

The number of rounds and the calls per sample are decided by the fastest baseline, never by the
candidate (C9). Times are the runner's claims, held against the referee's own clock: a runner whose
claim is smaller than that clock allows is charged the difference (two clocks, verification.md §4).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

import numpy as np

from ..traces.records import Check, Measurement, Speedup
from . import statistics
from .sides import CandidateSide, Clocks, Side, Wrong
from .trials import Item

SAMPLE_US = 800.0
"""Calls shorter than this are sampled several at a time."""
MAX_BATCH = 12
WARM_UP_CALLS = 3
CLOCK_TOLERANCE = 0.05
"""The two clocks of an honest runner agree within this much."""
CLOCK_LIMIT = 1.25
"""The referee's clock over the claim: beyond it the verdict is SUSPECT."""
IDLE_CPU_US = 100.0
"""CPU time that a runner may spend in three of four gaps between an answer and the next call
(threads falling asleep, answering a ping), beside 2 % of the sample."""
IDLE_BURST_US = 1500.0
"""The same for a quarter of the gaps, beside IDLE_BURST_SHARE of the sample's time on all CPUs."""
IDLE_BURST_SHARE = 0.25
NOISY_SLOPE = 0.5
"""A slope below this share of the net round trip per call is not used."""
SLOPE_SAMPLES = 24
"""Fewer samples give no steady slope."""
LAUNCH_BOUND = 5.0
"""A sample shorter than this many round trips is marked launch-bound."""


@dataclass
class Series:
    """Samples of every side; a block is one runner process and may leave sides out."""

    blocks: list[dict[str, list[float]]] = field(default_factory=list)
    clocks: list[Clocks] = field(default_factory=list)
    batch: int = 1

    @property
    def names(self) -> list[str]:
        """Every side that was timed, in the order of its first appearance."""
        return list(dict.fromkeys(name for block in self.blocks for name in block))

    def of(self, name: str, beside: str = "") -> list[np.ndarray]:
        """The blocks of one side, microseconds per call; only those that have `beside` too."""
        return [
            np.asarray(block[name])
            for block in self.blocks
            if name in block and (not beside or beside in block)
        ]

    def all_of(self, name: str) -> np.ndarray:
        """All samples of one side."""
        return np.concatenate(self.of(name))


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
    """Adds one block of paired samples. Raises RunFault or Wrong.

    The inputs of the next round are drawn while the answers of the last one are checked; nothing
    of the referee's runs while a side is timed.
    """
    sides = [candidate, *others]
    batch = series.batch
    given = items(batch)
    for _ in range(WARM_UP_CALLS):
        for side in sides:
            side.take(given, 0)
    _settle([], candidate)
    if isinstance(candidate, CandidateSide):
        candidate.clocks = Clocks()
    samples: dict[str, list[float]] = {side.name: [] for side in sides}
    start = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        upcoming = pool.submit(items, batch)
        for number in range(rounds.count):
            # A random number of calls: nobody can tell how many are left (A11), and the slope of
            # time over calls is the referee's own clock.
            given = upcoming.result()[: int(rng.integers(-(-batch // 4), batch + 1))]
            first = int(rng.integers(slots - len(given) + 1))
            for index in rng.permutation(len(sides)):
                samples[sides[index].name].append(sides[index].take(given, first))
            is_last = number + 1 == rounds.count or (
                number + 1 >= rounds.least and time.monotonic() - start > rounds.budget_s
            )
            if not is_last:
                upcoming = pool.submit(items, batch)
            _settle([] if is_last else [upcoming], candidate)
            if is_last:
                break
    series.blocks.append(samples)
    if isinstance(candidate, CandidateSide):
        series.clocks.append(candidate.clocks)


def _settle(running: list[Future[list[Item]]], candidate: Side) -> None:
    """Holds the answers against the truth and waits for what runs beside. Raises Wrong."""
    failed = None
    if isinstance(candidate, CandidateSide):
        failed = next((f for a in candidate.answers() if (f := a.failure())), None)
    wait(running)
    if failed:
        raise Wrong(failed)


def clock_ratio(series: Series) -> float:
    """Referee's time per call / claimed time per call; about 1 for an honest runner.

    The referee's time is the slope of round trip over number of calls, so that the cost of a
    round trip falls out (verification.md §4); where every sample has one call, or there are few,
    it is the round trip less an empty one.
    """
    calls, wall = _all(series, "calls"), _all(series, "wall_us")
    claimed = float(np.median(_all(series, "claimed_us")))
    net = float(np.median((wall - np.median(_all(series, "ping_us"))) / calls))
    seen = net
    if calls.size >= SLOPE_SAMPLES and np.unique(calls).size > 1:
        slope = _slope(calls, wall)
        # A slope far below the round trips themselves is noise, and would excuse any claim.
        seen = slope if slope > NOISY_SLOPE * net else net
    return seen / max(claimed, 1e-3)


def _slope(calls: np.ndarray, wall: np.ndarray) -> float:
    """Median slope over all pairs of samples (Theil and Sen): a few outliers do not move it."""
    left, right = np.triu_indices(calls.size, 1)
    apart = calls[left] != calls[right]
    left, right = left[apart], right[apart]
    return float(np.median((wall[left] - wall[right]) / (calls[left] - calls[right])))


def _all(series: Series, name: str) -> np.ndarray:
    return np.concatenate([getattr(clocks, name) for clocks in series.clocks])


def charge(series: Series, name: str, uncharged_trips: float = 2.0) -> float:
    """Scales the candidate's samples up where its claims fall short of the referee's clock.

    Returns the ratio of the clocks. A surplus within the tolerance, or within a few round trips, is
    the cost of waking a process and is not charged.
    """
    ratio = clock_ratio(series)
    if ratio > 1.0 + CLOCK_TOLERANCE + uncharged_trips * _trip_share(series):
        for block in series.blocks:
            block[name] = [us * ratio for us in block[name]]
    return ratio


def _trip_share(series: Series) -> float:
    """An empty round trip as a share of a sample's time, by the referee's clock alone."""
    trip = float(np.median(_all(series, "ping_us")))
    return trip / max(float(np.median(_all(series, "wall_us"))) - trip, 0.1 * trip)


def clock_checks(series: Series, cpus: int) -> list[Check]:
    """Two clocks, CPU time within a call, CPU time after an answer."""
    ratio = clock_ratio(series)
    limit = CLOCK_LIMIT + 4.0 * _trip_share(series)
    claimed = float(np.median(_all(series, "claimed_us")))
    # Quartiles: on a shared host the time of waking up is booked as CPU time now and then. Whoever
    # works outside the calls does so in most of them, or the median that is credited stays.
    often, seldom = np.percentile(_all(series, "idle_cpu_us"), [25, 75])
    sample = claimed * float(np.median(_all(series, "calls")))
    allowed_often = IDLE_CPU_US + 0.02 * sample
    allowed_seldom = IDLE_BURST_US + IDLE_BURST_SHARE * sample * cpus
    cpu = float(np.mean(_all(series, "cpu_us")))
    wall = float(np.mean(_all(series, "wall_us") / _all(series, "calls")))
    allowed = wall * cpus * 1.1 + IDLE_CPU_US
    return [
        Check(
            name="two clocks", passed=ratio <= limit, figure=ratio, limit=limit,
            detail=f"the referee saw {ratio:.2f} times the time that the runner claims",
        ),
        Check(
            name="CPU time within calls", passed=cpu <= allowed, figure=cpu, limit=allowed,
            detail=f"{cpu:.0f} µs of CPU time per call of {claimed:.0f} µs on {cpus} CPUs",
        ),
        Check(
            name="CPU time after answers",
            passed=bool(often <= allowed_often and seldom <= allowed_seldom),
            figure=float(often), limit=allowed_often,
            detail=f"{often:.0f} µs of CPU time per answer (lower quartile; upper {seldom:.0f} µs) "
            "were spent between an answer and the next call",
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
        name: statistics.speedup(series.of(candidate, name), series.of(name), rng)
        for name in compared
    }
    own = statistics.timing(series.of(candidate))
    return Measurement(
        workload=workload,
        candidate=own,
        baselines=timings,
        speedup=speedup,
        best_baseline=best,
        missing=missing,
        pairs=int(series.all_of(candidate).size),
        mde=statistics.mde(series.of(champion or best), rng) if champion or best else 0.0,
        floor_us=floor_us,
        roofline=floor_us / own.median_us if floor_us else None,
        clock_ratio=1.0 / ratio if ratio > 0 else None,
        cpu_us=float(np.mean(_all(series, "cpu_us"))),
        threads=threads,
        is_launch_bound=LAUNCH_BOUND * _trip_share(series) > 1.0,
    )
