"""What two evaluations at once credit, with and without taking turns, against one alone.

    python benchmarks/side_by_side.py [--problem spmm_csr] [--runs 3] [--out docs/results/...]

The same right kernel is judged by referees of their own: alone, two at once that take turns, and
two at once that do not know of each other. Nobody but them should work on the machine.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.traces.records import Depth, Speedup
from kernelwright.verifier.process.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Order, Task

ALONE, IN_TURN, AT_ONCE = "alone", "two at once, in turn", "two at once, unaware"


@dataclass(frozen=True)
class Judged:
    """One evaluation's figures."""

    gain: Speedup
    seconds: float
    is_disturbed: bool = False
    """By the verdict's own word."""

    def __str__(self) -> str:
        gain = self.gain
        told = f"{gain.median:.3f} ({gain.low:.3f} to {gain.high:.3f})"
        return told + (" disturbed" if self.is_disturbed else "")


@contextmanager
def referees(
    problem: str, count: int, cache: str, *, in_turn: bool
) -> Iterator[list[RefereeProcess]]:
    """So many, at one place for their turns or at one each."""
    chosen = registry.get(problem).default_workload
    with ExitStack() as stack:
        places = [stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(count)]
        yield [
            stack.enter_context(
                open_referee(
                    Task(
                        problem=problem,
                        workload=chosen,
                        cache_dir=cache,
                        timing_lock=places[0 if in_turn else number],
                    )
                )
            )
            for number in range(count)
        ]


def judge(referee: RefereeProcess, source: str) -> Judged:
    """One full evaluation. Raises SystemExit where the kernel is not found right."""
    started = time.monotonic()
    verdict = referee.evaluate(Order(source=source, language="cpp", protocol=Depth.FULL))
    measured = verdict.measurement
    if measured is None or measured.headline is None:
        raise SystemExit(f"{verdict.status}: {'; '.join(verdict.reasons)}")
    return Judged(measured.headline, time.monotonic() - started, measured.is_disturbed)


def series(problem: str, source: str, runs: int, cache: str) -> dict[str, list[Judged]]:
    """Each way of judging, `runs` times."""
    found: dict[str, list[Judged]] = {}
    for name, count, in_turn in ((ALONE, 1, True), (IN_TURN, 2, True), (AT_ONCE, 2, False)):
        with referees(problem, count, cache, in_turn=in_turn) as opened:
            for one in opened:
                one.prepare()
            with ThreadPoolExecutor(count) as pool:
                found[name] = [
                    judged
                    for _ in range(runs)
                    for judged in pool.map(lambda one: judge(one, source), opened)
                ]
    return found


def summary(name: str, found: list[Judged], alone: float) -> str:
    """The line of the table for one way of judging."""
    medians = np.array([one.gain.median for one in found])
    typical = float(np.exp(np.log(medians).mean()))
    intervals = ", ".join(
        f"{one.gain.median:.2f} [{one.gain.low:.2f}, {one.gain.high:.2f}]" for one in found
    )
    seconds = float(np.median([one.seconds for one in found]))
    return f"| {name} | {typical:.2f} | {typical / alone:.2f} | {seconds:.1f} | {intervals} |"


def page(problem: str, found: dict[str, list[Judged]]) -> str:
    """The whole page."""
    alone = float(np.exp(np.mean([np.log(one.gain.median) for one in found[ALONE]])))
    workload = registry.get(problem).default_workload.name
    lines = [
        "# Two evaluations at once",
        "",
        f"Made by `make side-by-side` on {datetime.date.today().isoformat()}: {machine()}. One "
        f"kernel, {problem} / {workload}, judged by `full`; speed-ups against the best baseline.",
        "",
        "| | geometric mean | / alone | median s | each |",
        "|---|---|---|---|---|",
        *(summary(name, judged, alone) for name, judged in found.items()),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs all three and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="spmm_csr")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("docs/results/side-by-side.md"))
    asked = parser.parse_args()
    recipe = recipes_for(asked.problem)[0]
    with tempfile.TemporaryDirectory() as cache:
        source = recipe.render(recipe.first_knobs())
        written = page(asked.problem, series(asked.problem, source, asked.runs, cache))
    asked.out.write_text(written)
    print(written, end="")


if __name__ == "__main__":
    main()
