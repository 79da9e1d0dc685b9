"""Whether the intervals of one kernel, judged again and again, hold the same figure.

    python benchmarks/coverage.py [--problems spmm_csr ...] [--runs 30] [--minutes 60] [--out ...]

One right kernel of each problem is judged in full at even distances over an hour, each time on a
machine that does nothing else and then beside a load that comes and goes. Two intervals
that do not overlap cannot both be right.
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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from machine import machine
from side_by_side import Judged, judge

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Workload
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.traces.records import Speedup
from kernelwright.verifier.process.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Task

PROBLEMS = ["gemm", "spmm_csr", "softmax"]
"""The first computes on what caches hold, the others wait for memory that neighbours share."""
QUIET, LOADED = "quiet", "loaded"
Series = tuple[str, str]
"""A problem, and the machine's state."""
Found = dict[Series, list[Judged]]
LIMITS = {QUIET: 0.05, LOADED: 0.1}
"""What the figures of one kernel may be spread by, as a share."""
OVERLAP = 0.9
"""Of the pairs of its intervals must have a figure in common."""
BUSY_S, IDLE_S = (2.0, 20.0), (5.0, 40.0)
"""How long the load stays, and how long it is away."""
_WORK = """import os, numpy as n
a, parent = n.ones((700, 700), n.float32), os.getppid()
while os.getppid() == parent: a @ a"""
"""It ends with whoever started it."""


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


class Watch:
    """Whether the machine is as fast as at its best, by calls that the referee has no part in: who
    shares its cores slows one of them, who shares its memory the other."""

    CALLS, LIMIT, BEST = 15, 1.1, 0.05

    def __init__(self) -> None:
        import torch

        values, bytes_ = torch.randn(1024, 1024), torch.zeros(4 << 20, dtype=torch.int32)
        into, copy = torch.empty_like(values), torch.empty_like(bytes_)
        self._calls = (
            lambda: torch.softmax(values, -1, out=into),
            lambda: torch.add(bytes_, 1, out=copy),
        )
        self._seen: list[list[float]] = []

    def look(self) -> None:
        """Once more."""
        self._seen.append([self._time(call) for call in self._calls])

    def _time(self, call: Callable[[], object]) -> float:
        took = []
        for _ in range(self.CALLS):
            start = time.perf_counter()
            call()
            took.append(time.perf_counter() - start)
        return float(np.median(took))

    def quiet_share(self) -> float:
        """Of all looks."""
        seen = np.array(self._seen)
        return float((seen < self.LIMIT * np.quantile(seen, self.BEST, axis=0)).all(axis=1).mean())


def series(
    problems: list[str], runs: int, minutes: float, cache: str, watch: Watch
) -> dict[Series, list[Judged]]:
    """Each kernel's evaluations, on the machine as it is and beside a load; `watch` looks around
    the first."""
    found: Found = {(problem, name): [] for problem in problems for name in (QUIET, LOADED)}
    lots = random.Random(runs)
    with ExitStack() as stack:
        referees = {
            problem: stack.enter_context(_referee_of(problem, cache)) for problem in problems
        }
        for referee in referees.values():
            referee.prepare()
        # The first evaluation of a cache folder knows nothing of its machine.
        _judge_each(referees, QUIET, -1, {key: [] for key in found})
        begun = time.monotonic()
        for number in range(runs):
            due = begun + number * 60.0 * minutes / runs
            time.sleep(max(0.0, due - time.monotonic()))
            watch.look()
            _judge_each(referees, QUIET, number, found)
            watch.look()
            with load(number):
                time.sleep(lots.uniform(0.0, IDLE_S[1]))
                _judge_each(referees, LOADED, number, found)
            for key, of in found.items():
                print(number, *key, of[-1], f"{of[-1].seconds:.0f} s", flush=True)
    return found


def _referee_of(problem: str, cache: str) -> RefereeProcess:
    return open_referee(Task(problem=problem, workload=workload_of(problem), cache_dir=cache))


def _judge_each(referees: dict[str, RefereeProcess], name: str, number: int, found: Found) -> None:
    for problem, referee in referees.items():
        recipe = recipes_for(problem)[0]
        source = f"{recipe.render(recipe.first_knobs())}// {name} {number}\n"
        found[problem, name].append(judge(referee, source))


def workload_of(problem: str) -> Workload:
    """The one that is judged."""
    return registry.get(problem).default_workload


def overlapping(found: list[Speedup]) -> float:
    """The share of pairs whose intervals have a figure in common."""
    pairs = list(itertools.combinations(found, 2))
    return sum(a.low <= b.high and b.low <= a.high for a, b in pairs) / max(1, len(pairs))


def spread(figures: list[float]) -> float:
    """From the 5th to the 95th percentile, as a share of the median; not a number: of none."""
    if not figures:
        return float("nan")
    low, middle, high = np.percentile(figures, (5, 50, 95))
    return float((high - low) / middle)


def _percent(share: float) -> str:
    return "–" if np.isnan(share) else f"{100 * share:.1f} %"


def finding(key: Series, judged: list[Judged]) -> str:
    """Whether one series holds what is asked of intervals and figures."""
    limit, found = LIMITS[key[1]], [one.gain for one in judged]
    every = spread([gain.median for gain in found])
    calm = spread([one.gain.median for one in judged if not one.is_disturbed])
    share = overlapping(found)

    def is_met(met: bool) -> str:
        return "met" if met else "not met"

    return (
        f"- {key[0]}, {key[1]}: spread {_percent(every)}, at most {100 * limit:g} %: "
        f"{is_met(every <= limit)}; of the undisturbed {_percent(calm)}: "
        f"{is_met(calm <= limit)}; {100 * share:.0f} % of the pairs of intervals overlap, at "
        f"least {100 * OVERLAP:g} %: {is_met(share >= OVERLAP)}"
    )


def summary(key: Series, judged: list[Judged]) -> str:
    """The line of the table for one series."""
    found = [one.gain for one in judged]
    calm = [one.gain for one in judged if not one.is_disturbed]
    problem, workload = registry.get(key[0]), workload_of(key[0])
    moved = problem.bytes_moved(problem.structure(workload).axes)
    medians = np.array([one.median for one in found])
    widths = np.array([(one.high - one.low) / one.median for one in found])
    seconds = np.array([one.seconds for one in judged])
    return (
        f"| {key[0]} / {workload.name} | {moved / 1e6:.1f} | {key[1]} | {len(found)} | "
        f"{len(found) - len(calm)} | {100 * overlapping(found):.0f} % | {np.median(medians):.3f} | "
        f"{medians.min():.3f}–{medians.max():.3f} | {_percent(spread(list(medians)))} | "
        f"{_percent(spread([one.median for one in calm]))} | "
        f"{_percent(spread([one.low for one in found]))} | "
        f"{_percent(spread([one.low for one in calm]))} | "
        f"{100 * np.median(widths):.1f} % | {np.median(seconds):.1f} ({seconds.max():.1f}) |"
    )


def page(found: Found, minutes: float, quiet: float) -> str:
    """The whole page."""
    return "\n".join(
        [
            "# Intervals that hold",
            "",
            f"Made by `make coverage` on {datetime.date.today().isoformat()}: {machine()}. One "
            f"kernel of each problem, judged in full again and again, {minutes:g} minutes, each "
            "time on the machine as it is and then beside a load; speed-ups against the best "
            "baseline. Spread: from the 5th to the 95th percentile, as a share of the median. "
            "Disturbed: the verdict itself says that something else kept the machine busy, by what "
            "others took of the CPUs, and how long baselines and a copy took. *Credited* is the "
            "lower end of the interval. Each kernel was judged once before, so that it is known "
            "what the machine can. Who moves a few megabytes and computes on them shares less with "
            "a virtual machine's neighbours than who moves many. The load is one thread that "
            f"multiplies matrices, {BUSY_S[0]:g} to {BUSY_S[1]:g} s at a time, and is away for "
            f"{IDLE_S[0]:g} to {IDLE_S[1]:g} s.",
            "",
            f"How quiet the machine was: in {100 * quiet:.0f} % of the moments around the "
            "evaluations without that load a softmax and "
            f"a copy by torch, outside of the referee, took less than {Watch.LIMIT:g} times "
            "their best.",
            "",
            *(finding(key, judged) for key, judged in found.items()),
            "",
            "| kernel | MB a call | machine | runs | disturbed | pairs of intervals that overlap | "
            "median | range | spread | of the undisturbed | of what is credited | of what is "
            "credited to the undisturbed | median width | seconds (most) |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
            *(summary(key, judged) for key, judged in found.items()),
            "",
        ]
    )


def main() -> None:
    """Runs both series side by side and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="+", default=PROBLEMS)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("docs/results/coverage.md"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        watch, begun = Watch(), time.monotonic()
        found = series(asked.problems, asked.runs, asked.minutes, cache, watch)
        minutes = round((time.monotonic() - begun) / 60)
    asked.out.write_text(page(found, minutes, watch.quiet_share()))
    print(asked.out.read_text(), end="")


if __name__ == "__main__":
    main()
