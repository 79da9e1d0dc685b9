"""What a screening's error is made of: one kernel screened many times, and two of a known ratio.

    python benchmarks/noise.py [--problem spmm_csr] [--times 40] [--out docs/results/noise.md]

Each time a candidate is timed as in a screening, with as many pairs of processes as are asked for:
beside a copy of itself, beside another recipe, and against the fastest library. The standard
deviation of the logarithm over the times is what one such figure is worth. Another timer, which has
nothing of the referee, says what the ratio of the two is.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from fairness import built
from head_to_head import rank
from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.traces.records import CHAMPION, Depth
from kernelwright.verifier.clock import statistics
from kernelwright.verifier.clock.judging import Judges
from kernelwright.verifier.request import Task
from kernelwright.verifier.stands import contests
from kernelwright.verifier.stands.cpu import CpuStand
from kernelwright.verifier.stands.opening import open_stand

SHAPES = ((1, 24), (2, 12), (3, 8), (4, 6))
"""Pairs of processes, and rounds in each of them."""


@dataclass(frozen=True)
class Budget:
    """What one way to spend a screening's rounds gave."""

    blocks: int
    rounds: int
    beside_itself: np.ndarray
    """ln of the ratio that was told, each time."""
    beside_other: np.ndarray
    against_library: np.ndarray
    within: float
    """The standard error that one block shows of itself, in the median."""
    seconds: float


def screen(
    stand: CpuStand, candidate: str, champion: str, blocks: int, seed: int
) -> tuple[float, float, float, float]:
    """ln of the ratios beside the champion and the library, the error within, and the seconds."""
    started, rng, session = time.monotonic(), np.random.default_rng(seed), stand.session
    ours, theirs = (
        contests.RunnerLaunch(built(session, source), is_light=True)
        for source in (candidate, champion)
    )
    contests.BLOCKS[Depth.SCREEN] = blocks
    with Judges() as judges:
        contest = contests.Contest(
            session, stand.baselines, Depth.SCREEN, ours, theirs, judges, rng
        )
        while contest.goes_on():
            with contest.process() as side:
                contest.add(side)
    series = contest.series
    library = next(n for n in series.names if n not in ("candidate", CHAMPION))
    told = [
        statistics.speedup(series.blocks_of("candidate", name), series.blocks_of(name), rng)
        for name in (CHAMPION, library)
    ]
    first = statistics.speedup(
        series.blocks_of("candidate")[:1], series.blocks_of(CHAMPION)[:1], rng
    )
    within = np.log(first.high / first.low) / 2 / statistics.NORMAL_QUANTILE
    seconds = time.monotonic() - started
    return float(np.log(told[0].median)), float(np.log(told[1].median)), float(within), seconds


def measure(stand: CpuStand, one: str, other: str, blocks: int, rounds: int, times: int) -> Budget:
    """So many screenings of the one, beside itself and beside the other in turn."""
    before = contests.ROUNDS[Depth.SCREEN]
    contests.ROUNDS[Depth.SCREEN] = replace(before, count=rounds, least=rounds)
    found: dict[str, list[tuple[float, float, float, float]]] = {"itself": [], "other": []}
    for number in range(times):
        found["itself"].append(screen(stand, one, one, blocks, 2 * number))
        found["other"].append(screen(stand, one, other, blocks, 2 * number + 1))
    contests.ROUNDS[Depth.SCREEN] = before
    itself, beside = (np.array(found[name]) for name in ("itself", "other"))
    both = np.concatenate([itself, beside])
    return Budget(
        blocks,
        rounds,
        itself[:, 0],
        beside[:, 0],
        both[:, 1],
        float(np.median(both[:, 2])),
        float(np.median(both[:, 3])),
    )


def true_ratio(stand: CpuStand, problem: str, one: str, other: str) -> tuple[float, float]:
    """ln(time of the other / time of the one) by another timer, with its standard error."""
    with tempfile.TemporaryDirectory() as folder:
        libraries = []
        for number, source in enumerate((one, other)):
            libraries.append(Path(folder) / f"{number}.so")
            libraries[-1].write_bytes(built(stand.session, source).built.artefact)
        logs = rank(
            registry.get(problem),
            stand.session.stage.target,
            libraries,
            processes=12,
            rounds=40,
            cpus=len(stand.session.workshop.cpus),
        )
    apart = logs[:, 1] - logs[:, 0]
    return float(apart.mean()), float(apart.std(ddof=1) / np.sqrt(len(apart)))


def line(found: Budget, truth: float) -> str:
    """A way's line of the table."""
    itself, other, library = (
        found.beside_itself,
        found.beside_other,
        found.against_library,
    )
    return (
        f"| {found.blocks} × {found.rounds} | {found.within:.1%} | {itself.std(ddof=1):.1%} | "
        f"{itself.mean():+.1%} | {other.std(ddof=1):.1%} | {other.mean() - truth:+.1%} | "
        f"{library.std(ddof=1):.1%} | {found.seconds:.2f} |"
    )


def main() -> None:
    """Measures every way and writes the page after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="spmm_csr")
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("docs/results/noise.md"))
    asked = parser.parse_args()
    problem = registry.get(asked.problem)
    first, second = (r.render(r.first_knobs()) for r in recipes_for(asked.problem)[:2])
    with tempfile.TemporaryDirectory() as cache:
        task = Task(
            problem=asked.problem,
            workload=problem.default_workload,
            cache_dir=cache,
            baselines=("torch eager",),
        )
        stand = open_stand(task)
        assert isinstance(stand, CpuStand)
        try:
            stand.wait_prepared()
            truth, error = true_ratio(stand, asked.problem, first, second)
            lines = [
                "# What a screening's error is made of",
                "",
                f"Made by `make noise`, {datetime.date.today().isoformat()}: {machine()}. "
                f"`{asked.problem}` on {problem.default_workload.name}, {asked.times} screenings "
                "of one recipe beside a copy of itself and as many beside another's default, of "
                f"which another timer says that it takes {np.exp(truth):.3f} times as long "
                f"(± {error:.1%}). Standard deviations are of the logarithm of the ratio, from one "
                "screening to the next.",
                "",
                "| processes × rounds | error that one process shows | beside itself: deviation | "
                "mean | beside the other: deviation | mean − truth | against the library: "
                "deviation | s |",
                "|---|---|---|---|---|---|---|---|",
            ]
            for blocks, rounds in SHAPES:
                found = measure(stand, first, second, blocks, rounds, asked.times)
                lines.append(line(found, truth))
                print(lines[-1], flush=True)
                asked.out.write_text("\n".join(lines) + "\n")
        finally:
            stand.close()


if __name__ == "__main__":
    main()
