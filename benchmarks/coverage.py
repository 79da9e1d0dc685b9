"""Whether the intervals of one kernel, judged again and again, hold the same figure.

    python benchmarks/coverage.py [--runs 30] [--minutes 60] [--only quiet|loaded] [--out ...]

One right kernel is judged in full at even distances, on a machine that does nothing else and beside
a load that comes and goes. Two intervals that do not overlap cannot both be right. A series that
is not run keeps its line of the page.
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
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
from machine import machine
from side_by_side import judge

from kernelwright.kernelbench import registry
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


def series(problem: str, runs: int, minutes: float, cache: str) -> list[Speedup]:
    """The kernel's speed-up against its best baseline, from each of the evaluations."""
    recipe = recipes_for(problem)[0]
    source = recipe.render(recipe.first_knobs())
    found: list[Speedup] = []
    workload = registry.get(problem).default_workload
    with open_referee(Task(problem=problem, workload=workload, cache_dir=cache)) as referee:
        referee.prepare()
        begun = time.monotonic()
        for number in range(runs):
            due = begun + number * 60.0 * minutes / runs
            time.sleep(max(0.0, due - time.monotonic()))
            found.append(judge(referee, f"{source}// run {number}\n").gain)
    return found


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


def page(problem: str, lines: list[str]) -> str:
    """The whole page."""
    workload = registry.get(problem).default_workload.name
    return "\n".join(
        [
            "# Intervals that hold",
            "",
            f"Made by `make coverage`: {machine()}. One kernel, {problem} / {workload}, judged in "
            "full again and again; speed-ups against the best baseline. Spread: from the 5th to "
            "the 95th percentile, of the median. The load is one thread that multiplies matrices, "
            f"{BUSY_S[0]:g} to {BUSY_S[1]:g} s at a time, and is away for {IDLE_S[0]:g} to "
            f"{IDLE_S[1]:g} s.",
            "",
            "| machine | runs | pairs of intervals that overlap | median | range | spread | "
            "lower ends | median width | date |",
            "|---|---|---|---|---|---|---|---|---|",
            *lines,
            "",
        ]
    )


def main() -> None:
    """Runs both series; writes the page after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="spmm_csr")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=60.0, help="of each series")
    parser.add_argument("--only", choices=(QUIET, LOADED))
    parser.add_argument("--out", type=Path, default=Path("docs/results/coverage.md"))
    asked = parser.parse_args()
    old = asked.out.read_text().splitlines() if asked.out.exists() else []
    lines = {name: [x for x in old if x.startswith(f"| {name} |")] for name in (QUIET, LOADED)}
    for name in (QUIET, LOADED):
        if asked.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as cache, load() if name == LOADED else nullcontext():
            found = series(asked.problem, asked.runs, asked.minutes, cache)
        lines[name] = [summary(name, found)]
        asked.out.write_text(page(asked.problem, [*lines[QUIET], *lines[LOADED]]))
    print(asked.out.read_text(), end="")


if __name__ == "__main__":
    main()
