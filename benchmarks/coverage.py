"""Whether the intervals of one kernel, judged again and again, hold the same figure.

    python benchmarks/coverage.py [--runs 30] [--minutes 60] [--out ...]

One right kernel is judged in full at even distances over an hour, each time on a machine that does
nothing else and then beside a load that comes and goes. Two intervals that do not overlap cannot
both be right.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from machine import machine
from side_by_side import judge

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Workload
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.traces.records import Speedup
from kernelwright.verifier.process.client import open_referee
from kernelwright.verifier.request import Task

QUIET, LOADED = "quiet", "loaded"
BUSY_S, IDLE_S = (2.0, 20.0), (5.0, 40.0)
"""How long the load stays, and how long it is away."""
_WORK = "import numpy as n\na = n.ones((700, 700), n.float32)\nwhile True: a @ a"


@contextmanager
def load(seed: int = 0) -> Iterator[None]:
    """A process of one thread that multiplies matrices, for seconds at a time."""
    ended, lots = threading.Event(), random.Random(seed)

    def come_and_go() -> None:
        while not ended.wait(lots.uniform(*IDLE_S)):
            command = [sys.executable, "-c", _WORK]
            busy = subprocess.Popen(command, env={"OPENBLAS_NUM_THREADS": "1"})
            ended.wait(lots.uniform(*BUSY_S))
            busy.kill()
            busy.wait()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def series(problem: str, runs: int, minutes: float, cache: str) -> dict[str, list[Speedup]]:
    """The kernel's speed-up against its best baseline, from each of the evaluations."""
    recipe = recipes_for(problem)[0]
    source = recipe.render(recipe.first_knobs())
    found: dict[str, list[Speedup]] = {QUIET: [], LOADED: []}
    lots = random.Random(runs)
    with open_referee(Task(problem=problem, workload=workload_of(problem), cache_dir=cache)) as one:
        one.prepare()
        begun = time.monotonic()
        for number in range(runs):
            due = begun + number * 60.0 * minutes / runs
            time.sleep(max(0.0, due - time.monotonic()))
            found[QUIET].append(judge(one, f"{source}// quiet {number}\n").gain)
            with load(number):
                time.sleep(lots.uniform(0.0, IDLE_S[1]))
                found[LOADED].append(judge(one, f"{source}// loaded {number}\n").gain)
            print(number, *(f"{name} {gains[-1].median:.3f}" for name, gains in found.items()))
    return found


def workload_of(problem: str) -> Workload:
    """The one that is judged."""
    return registry.get(problem).default_workload


def overlapping(found: list[Speedup]) -> float:
    """The share of pairs whose intervals have a figure in common."""
    pairs = list(itertools.combinations(found, 2))
    return sum(a.low <= b.high and b.low <= a.high for a, b in pairs) / max(1, len(pairs))


def summary(name: str, found: list[Speedup]) -> str:
    """The line of the table for one series."""
    medians = np.array([one.median for one in found])
    lows = np.array([one.low for one in found])
    widths = np.array([(one.high - one.low) / one.median for one in found])
    low, high = np.percentile(medians, (5, 95))
    typical = float(np.median(medians))
    return (
        f"| {name} | {len(found)} | {100 * overlapping(found):.0f} % | {typical:.3f} | "
        f"{medians.min():.3f}–{medians.max():.3f} | {100 * (high - low) / typical:.1f} % | "
        f"{lows.min():.3f}–{lows.max():.3f} | {100 * np.median(widths):.1f} % | "
        f"{datetime.date.today().isoformat()} |"
    )


def page(problem: str, found: dict[str, list[Speedup]], minutes: float) -> str:
    """The whole page."""
    return "\n".join(
        [
            "# Intervals that hold",
            "",
            f"Made by `make coverage`: {machine()}. One kernel, {problem} / "
            f"{workload_of(problem).name}, judged in full again and again, {minutes:g} minutes, "
            "each time on a quiet machine and then beside a load; speed-ups against the best "
            "baseline. Spread: from the 5th to the 95th percentile, of the median. The load is one "
            f"thread that multiplies matrices, {BUSY_S[0]:g} to {BUSY_S[1]:g} s at a time, and is "
            f"away for {IDLE_S[0]:g} to {IDLE_S[1]:g} s.",
            "",
            "| machine | runs | pairs of intervals that overlap | median | range | spread | "
            "lower ends | median width | date |",
            "|---|---|---|---|---|---|---|---|---|",
            *(summary(name, gains) for name, gains in found.items()),
            "",
        ]
    )


def main() -> None:
    """Runs both series side by side and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="spmm_csr")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("docs/results/coverage.md"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        found = series(asked.problem, asked.runs, asked.minutes, cache)
    asked.out.write_text(page(asked.problem, found, asked.minutes))
    print(asked.out.read_text(), end="")


if __name__ == "__main__":
    main()
