"""Which sizes an evaluation tries, and which classes of sizes it may miss.

    python benchmarks/sizes.py [--plans 40] [--out docs/results/sizes.md] [PROBLEM …]

A class of sizes is what a careless tail depends on: an axis beyond a threshold with a remainder in
a range. For each axis of each problem, and for the lengths of rows of sparse ones, it is counted
in how many plans of a whole evaluation no shape falls into a class. Nothing is built, run or
judged: a class that a plan holds is tried, and what is wrong there still has to show in values.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Problem
from kernelwright.traces.records import Depth
from kernelwright.verifier.truth.trials import Stage, Trial, plan

BEYOND = (0, 1024, 4096, 8192)
TILES = (8, 64, 96, 128, 144, 160, 256, 384, 512, 640, 1024)
BEYOND_15_BITS = 32_767
ROWS = "row length"


class Class(NamedTuple):
    """Lengths beyond a size whose remainder modulo a tile lies in a range."""

    beyond: int
    tile: int
    first: int
    last: int

    def holds(self, lengths: np.ndarray) -> bool:
        """Whether one of the lengths belongs to it."""
        left = lengths % self.tile
        is_in = (lengths > self.beyond) & (left >= self.first) & (left <= self.last)
        return bool(is_in.any())

    def __str__(self) -> str:
        left = f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"
        return f"beyond {self.beyond:,}, {left} left of {self.tile}"


def classes() -> Iterator[Class]:
    """Nothing left of a tile, one, a few, half a vector, and all but one; of 8, beyond 15 bits."""
    for beyond in BEYOND:
        for tile in TILES:
            for first, last in ((0, 0), (1, 1), (1, 3), (1, 7), (tile - 1, tile - 1)):
                yield Class(beyond, tile, first, last)
    for left in range(8):
        yield Class(BEYOND_15_BITS, 8, left, left)


def lengths_of(trials: list[Trial]) -> dict[str, np.ndarray]:
    """Every length of each axis in a plan, and of all rows of its patterns."""
    found: dict[str, list[np.ndarray]] = defaultdict(list)
    for trial in trials:
        for axis, length in trial.structure.axes.items():
            found[axis].append(np.array([length]))
        if (starts := trial.structure.arrays.get("indptr")) is not None:
            found[ROWS].append(np.diff(np.asarray(starts, dtype=np.int64)))
    return {axis: np.concatenate(parts) for axis, parts in found.items()}


def stage_of(problem: Problem) -> Stage:
    """What trials are drawn for on the smallest workload, the others beside it."""
    structures = [(each.name, problem.structure(each)) for each in problem.workloads]
    (name, target), *others = sorted(structures, key=lambda s: problem.bytes_moved(s[1].axes))
    return Stage(problem, target, name, tuple(others))


def rows_of(problem: Problem, plans: int) -> Iterator[str]:
    """A line of the table for each axis."""
    missed: dict[str, dict[Class, int]] = defaultdict(lambda: defaultdict(int))
    longest: dict[str, int] = defaultdict(int)
    for seed in range(plans):
        # A campaign of its own for each: nothing is remembered of the one before.
        lengths = lengths_of(plan(stage_of(problem), Depth.FULL, np.random.default_rng(seed)))
        for axis, found in lengths.items():
            longest[axis] = max(longest[axis], int(found.max(initial=0)))
            for one in classes():
                missed[axis][one] += not one.holds(found)
    for axis, counts in missed.items():
        held = {one: count for one, count in counts.items() if longest[axis] > one.beyond}
        worst = max(held, key=lambda one: held[one])
        mean = sum(held.values()) / len(held) / plans
        always = sum(count == 0 for count in held.values())
        yield (
            f"| {problem.name} | {axis} | {longest[axis]:,} | {always} of {len(held)} | "
            f"{100 * mean:.1f} % | {worst}: {held[worst]} of {plans} |"
        )


def page(lines: list[str], plans: int) -> str:
    """The whole page."""
    return "\n".join(
        [
            "# Sizes that an evaluation tries",
            "",
            f"Made by `make sizes` on {datetime.date.today().isoformat()}, {machine()}. "
            f"{plans} plans of a whole evaluation for each problem, each as the first of a "
            "campaign; later ones try first what was not tried. A class of sizes is an axis beyond "
            f"{', '.join(f'{b:,}' for b in BEYOND)} with 0, 1, 1 to 3, 1 to 7 or all but one left "
            f"of a tile of {', '.join(map(str, TILES))}, or beyond {BEYOND_15_BITS:,} with each "
            "number left of 8; those beyond the longest length that was "
            "drawn are left out. Missed: no shape of the plan falls into the class.",
            "",
            "| problem | axis | longest | classes in every plan | missed, mean of all classes | "
            "missed most |",
            "|---|---|---|---|---|---|",
            *lines,
            "",
        ]
    )


def main() -> int:
    """Counts for the problems that were named, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help="without: all")
    parser.add_argument("--plans", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("docs/results/sizes.md"))
    asked = parser.parse_args()
    lines: list[str] = []
    for name in asked.problems or registry.names():
        for line in rows_of(registry.get(name), asked.plans):
            print(line, flush=True)
            lines.append(line)
    asked.out.write_text(page(lines, asked.plans))
    return 0


if __name__ == "__main__":
    sys.exit(main())
