# SPDX-License-Identifier: Apache-2.0
"""Interleaved paired timing: every round gives fresh inputs to every side, in a random order.

The number of rounds and the calls per sample are decided by the fastest baseline, never by the
candidate (C9). What a candidate's sample counts as is for clocks.py to say.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from ...traces.records import CHAMPION, LEAST_CALM, Measurement, Speedup
from ..truth.trials import Item
from . import clocks, statistics
from .calm import MACHINE, Calm
from .clocks import Clocks
from .others import OTHERS
from .pace import Pace
from .timed_sides import CandidateSide, Side

SAMPLE_US = 200.0
"""Calls shorter than this are sampled several at a time."""
MAX_BATCH = 12
WARM_UP_CALLS = 3
PATIENCE = 2
"""Times as many rounds, and seconds, where others have the CPUs meanwhile."""
FEW_CALM = 6
"""Blocks: of three alone an interval is twice as wide, and its lower end left to chance."""
A_LITTLE = 1.3
"""Times what is too much, as a logarithm: copies that took up to 1.16 times their time."""
LAUNCH_BOUND_US = 50.0
"""Calls below this are marked: the few microseconds on both sides of a call weigh in them."""


@dataclass
class Series:
    """Samples of every side; a block is one runner process and may leave sides out."""

    blocks: list[dict[str, list[float]]] = field(default_factory=list)
    clocks: list[Clocks] = field(default_factory=list)
    batch: int = 1
    prepare_us: list[float] = field(default_factory=list)
    """Of each time that the candidate prepared the workload's pattern, where it does."""
    calm: Calm = field(default_factory=Calm)
    """Tells the blocks in which the machine was disturbed."""
    pace: Pace = field(default_factory=Pace)
    """What comes between its calls."""

    @property
    def calm_blocks(self) -> list[dict[str, list[float]]]:
        """Those in which it was not."""
        return [block for block in self.blocks if not self.calm.is_disturbed(took_of(block))]

    @property
    def counted(self) -> list[dict[str, list[float]]]:
        """The blocks that figures rest on: those in which it was not, and where they are few the
        next best of those that were disturbed a little; where too few were left alone, all."""
        much = [self.calm.disturbance(took_of(block)) for block in self.blocks]
        calm = sum(each <= 1.0 for each in much)
        if calm < LEAST_CALM:
            return self.blocks
        a_little = sorted(each for each in much if each <= A_LITTLE)
        limit = a_little[min(max(calm, FEW_CALM), len(a_little)) - 1]
        return [block for block, each in zip(self.blocks, much, strict=True) if each <= limit]

    @property
    def names(self) -> list[str]:
        """Every side that was timed, in the order of its first appearance."""
        found = dict.fromkeys(name for block in self.blocks for name in block)
        return [name for name in found if name not in (MACHINE, OTHERS)]

    def blocks_of(self, name: str, beside: str = "") -> list[np.ndarray]:
        """The counted blocks of one side, microseconds per call; only those that have `beside` too.

        Where fewer than LEAST_CALM that count have them, all blocks that do: one block alone would
        tell nothing of how far processes differ.
        """
        both = {name, beside or name}
        counted = [block for block in self.counted if both <= block.keys()]
        every = [block for block in self.blocks if both <= block.keys()]
        found = counted if len(counted) >= LEAST_CALM else every
        return [np.asarray(block[name]) for block in found]

    def all_of(self, name: str) -> np.ndarray:
        """All samples of one side."""
        return np.concatenate(self.blocks_of(name))

    def tell_slowed(self, name: str) -> float:
        """Times its usual time that a baseline took where disturbed blocks count; else 1."""
        usual = self.calm.usual_us(name)
        if usual is None or len(self.counted) == len(self.calm_blocks):
            return 1.0
        return float(np.median(self.all_of(name))) / usual

    @property
    def seen(self) -> Clocks:
        """What was seen of the candidate in all blocks."""
        return clocks.join_clocks(self.clocks)


@dataclass(frozen=True)
class Rounds:
    """How long to sample in one block."""

    count: int
    budget_s: float
    """Beyond it a block ends once it has `least` rounds."""
    least: int = 4
    judged: int | None = None
    """How many calls of the candidate are held against the truth; None: all of them."""
    warm_up: int = WARM_UP_CALLS
    """Rounds that come first and do not count."""
    tests: int = 0
    """Calls of the candidate on other families of inputs, scattered among the others."""
    behind: float = math.inf
    """A block ends once it has `least` rounds and says that the candidate takes so much longer than
    the first of the others: the logarithm of the ratio. Nobody needs to know it any better. With
    more rounds it is known better, and less is enough."""
    waits: float = math.inf
    """A round does not count in which a side waited for a CPU for more than this share of its time,
    unless too few others are there: the load of a minute says nothing of who is faster without it.
    Only for quick looks: whoever makes its own threads wait would leave out its slow calls."""


def took_of(block: dict[str, list[float]]) -> dict[str, float]:
    """What each baseline took in a block, and the machine's copy, in the median: microseconds; and
    what others took of the CPUs."""
    own = ("candidate", CHAMPION)
    return {name: float(np.median(us)) for name, us in block.items() if name not in own}


def batch_for(reference_us: float, room: int, pace: Pace | None = None) -> int:
    """Calls per sample that count, from the fastest baseline's time."""
    if pace:
        room = pace.room(room)
    return int(min(MAX_BATCH, room, max(1.0, np.ceil(SAMPLE_US / max(reference_us, 1.0)))))


def sample_block(
    series: Series,
    candidate: Side,
    others: list[Side],
    items: Callable[[int], list[Item]],
    slots: int,
    rounds: Rounds,
    rng: np.random.Generator,
    tests: Iterator[Item] | None = None,
) -> None:
    """Adds one block of paired samples; nothing else of the referee's runs while a side is timed.

    What is to be judged of the candidate's answers is asked of it afterwards.

    Args:
        tests: Inputs of calls that are judged and not timed.

    Raises:
        RunFault, Failed: the candidate failed in one of the calls; others raise their own.
    """
    sides = [candidate, *others]
    batch, pace = series.batch, series.pace
    if isinstance(candidate, CandidateSide):
        candidate.judge(rounds.judged)
    for _ in range(rounds.warm_up):
        given, first = _draw_calls(items, batch, slots, rng, pace)
        for side in sides:
            side.take(given, first)
    if isinstance(candidate, CandidateSide):
        candidate.clocks = Clocks()
    tested = _scatter_rounds(rounds.tests, rounds, rng)
    samples: dict[str, list[float]] = {side.name: [] for side in sides}
    is_calm: list[bool] = []
    start = time.monotonic()
    while not _is_enough(samples, sides, is_calm, rounds, time.monotonic() - start):
        number = len(is_calm)
        given, first = _draw_calls(items, batch, slots, rng, pace)
        for index in rng.permutation(len(sides)):
            side = sides[index]
            if index == 0 and number in tested and isinstance(candidate, CandidateSide):
                candidate.test(list(itertools.islice(tests or (), pace.instances)), first)
            samples[side.name].append(side.take(given, first))
        is_calm.append(all(side.waited <= rounds.waits for side in sides))
    if sum(is_calm) >= rounds.least:
        samples = {name: list(itertools.compress(us, is_calm)) for name, us in samples.items()}
    series.blocks.append(samples)
    if isinstance(candidate, CandidateSide):
        series.clocks.append(candidate.clocks)
        series.prepare_us += candidate.plans.us


def _is_enough(
    samples: dict[str, list[float]],
    sides: list[Side],
    is_calm: list[bool],
    rounds: Rounds,
    took_s: float,
) -> bool:
    """Whether a block has rounds enough."""
    calm, every = sum(is_calm), len(is_calm)
    if every < rounds.least:
        return False
    if calm < rounds.least:
        return every >= PATIENCE * rounds.count or took_s > PATIENCE * rounds.budget_s
    is_over = took_s > rounds.budget_s or every >= PATIENCE * rounds.count
    return calm >= rounds.count or is_over or _is_behind(samples, sides, rounds)


def _is_behind(samples: dict[str, list[float]], sides: list[Side], rounds: Rounds) -> bool:
    """Whether the first side takes so much longer than the second, as far as is known."""
    if math.isinf(rounds.behind):
        return False
    ours, theirs = (np.asarray(samples[side.name]) for side in sides[:2])
    limit = rounds.behind * math.sqrt(rounds.least / len(ours))
    return bool(np.median(np.log(ours / theirs)) > limit)


def _draw_calls(
    items: Callable[[int], list[Item]],
    batch: int,
    slots: int,
    rng: np.random.Generator,
    pace: Pace,
) -> tuple[list[Item], int]:
    """A random number of calls at a random slot: nobody can tell how many are left (A11), or where
    the warm-up ends."""
    given = items(pace.turn(int(rng.integers(-(-batch // 4), batch + 1))))
    return given, int(rng.integers(slots - len(given) + 1))


def _scatter_rounds(count: int, rounds: Rounds, rng: np.random.Generator) -> set[int]:
    """So many rounds at most, half of them among those that there will be for certain."""
    early = rng.permutation(rounds.least)[: -(-count // 2)]
    return {int(n) for n in (*early, *rng.permutation(rounds.count)[: count // 2])}


def measurement(
    series: Series,
    candidate: str,
    baselines: list[str],
    champion: str | None,
    *,
    missing: dict[str, str],
    workload: str,
    floor_us: float,
    roof: str,
    threads: int,
    rng: np.random.Generator,
) -> Measurement:
    """The record of a finished series."""
    timings = {name: statistics.timing(series.blocks_of(name)) for name in baselines}
    best = min(timings, key=lambda name: timings[name].median_us, default="")
    compared = [*baselines, *([champion] if champion else [])]
    if champion:
        timings[champion] = statistics.timing(series.blocks_of(champion))
    speedup: dict[str, Speedup] = {
        name: statistics.speedup(series.blocks_of(candidate, name), series.blocks_of(name), rng)
        for name in compared
    }
    for name in baselines:
        speedup[name] = statistics.beside_library(speedup[name], series.tell_slowed(name))
    own = statistics.timing(series.blocks_of(candidate))
    ratio = clocks.ratio(series.seen)
    return Measurement(
        workload=workload,
        candidate=own,
        baselines=timings,
        speedup=speedup,
        best_baseline=best,
        missing=missing,
        pairs=int(series.all_of(candidate).size),
        blocks=len(series.blocks),
        disturbed_blocks=len(series.blocks) - len(series.calm_blocks),
        mde=statistics.mde(series.blocks_of(champion or best), rng) if champion or best else 0.0,
        floor_us=floor_us,
        roof=roof,
        roofline=floor_us / own.median_us if floor_us else None,
        clock_ratio=1.0 / ratio if ratio > 0 else None,
        cpu_us=float(np.mean(series.seen.cpu_us)),
        threads=threads,
        is_launch_bound=own.median_us < LAUNCH_BOUND_US,
    )
