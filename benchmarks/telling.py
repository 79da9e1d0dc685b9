"""In how many trials of an evaluation a kernel that is wrong for some sizes shows it.

    python benchmarks/telling.py [--plans 40] [--out docs/results/telling.md] [ROW or PROBLEM …]

Each row of tests/hostile/sizes.toml is built and called here, on the trials of as many plans of a
whole evaluation; its answers meet the gates. A row that few trials of a plan tell is missed by
some evaluation. Fenced memory, other patterns of the same sizes and timed calls, which refuse some
of these kernels as well, are not counted.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from machine import machine
from sizes import stage_of

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP
from kernelwright.kernelbench.problem import Problem
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.traces.records import Depth
from kernelwright.verifier.truth.gates import check_output
from kernelwright.verifier.truth.trials import Item, make_item, plan

ROWS = Path("tests/hostile/sizes.toml")
POISON = 0x7FC0DEAD
COMMAND = ("g++", "-O2", "-shared", "-fPIC", "-fopenmp", "-x", "c++", "-")
Call = Callable[[Item], bool]
"""Of a kernel: whether its answers to these inputs are refused."""


def build(problem: Problem, row: dict[str, str], folder: Path) -> Call:
    """The kernel that a row makes of the problem's skeleton."""
    library = folder / f"{len(list(folder.iterdir()))}.so"
    source = skeleton(problem, CPP).replace(row["find"], row["put"])
    subprocess.run([*COMMAND, "-o", library], input=source, text=True, check=True)
    entry = getattr(ctypes.CDLL(str(library)), problem.name)
    return lambda item: is_refused(entry, item)


def is_refused(entry: Any, item: Item) -> bool:
    """Whether a gate refuses what the entry point answers."""
    problem, axes = item.problem, item.structure.axes
    known = {**item.structure.arrays, **item.inputs}
    inputs = [np.ascontiguousarray(known[tensor.name]) for tensor in problem.inputs]
    answers = {
        name: np.full(expected.value.shape, POISON, np.uint32).view(np.float32)
        for name, expected in item.expected.items()
    }
    pointers = [each.ctypes.data_as(ctypes.c_void_p) for each in (*inputs, *answers.values())]
    entry(*(ctypes.c_int(axes[name]) for name in problem.axes), *pointers)
    return not all(
        check.passed
        for name, got in answers.items()
        for check in check_output(
            name, got, item.expected[name], problem.precision, item.family, poison=POISON
        )
    )


def count_telling(problem: Problem, calls: dict[str, Call], seed: int) -> dict[str, int]:
    """Of each kernel in how many trials of one plan it is refused."""
    rng = np.random.default_rng(seed)
    telling = dict.fromkeys(calls, 0)
    for trial in plan(stage_of(problem), Depth.FULL, rng):
        item = make_item(problem, trial.structure, trial.family, rng)
        for name, call in calls.items():
            telling[name] += call(item)
    return telling


def tell_row(problem: Problem, name: str, counts: list[int]) -> str:
    """A line of the table."""
    missed = counts.count(0)
    return (
        f"| {problem.name} | {name} | {missed} of {len(counts)} | {min(counts)} | "
        f"{int(np.median(counts))} | {max(counts)} |"
    )


def page(lines: list[str], plans: int) -> str:
    """The whole page."""
    return "\n".join(
        [
            "# Trials that tell a kernel which is wrong for some sizes",
            "",
            f"Made by `make telling` on {datetime.date.today().isoformat()}, {machine()}. The rows "
            f"of `{ROWS}` on the trials of {plans} plans of a whole evaluation, each as the first "
            "of a campaign. Missed: no trial of the plan shows it; what an evaluation looks at "
            "beside its trials is not counted.",
            "",
            "| problem | kernel | missed | telling trials, fewest | median | most |",
            "|---|---|---|---|---|---|",
            *lines,
            "",
        ]
    )


def main() -> int:
    """Counts for the rows that were named, and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of rows or problems; without: all")
    parser.add_argument("--plans", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("docs/results/telling.md"))
    asked = parser.parse_args()
    rows: list[dict[str, str]] = tomllib.loads(ROWS.read_text("utf-8"))["row"]
    rows = [
        row for row in rows if not asked.names or {row["name"], row["problem"]} & {*asked.names}
    ]
    lines: list[str] = []
    for name in dict.fromkeys(row["problem"] for row in rows):
        problem = registry.get(name)
        with tempfile.TemporaryDirectory() as folder:
            mine = [row for row in rows if row["problem"] == name]
            calls = {row["name"]: build(problem, row, Path(folder)) for row in mine}
            plans = [count_telling(problem, calls, seed) for seed in range(asked.plans)]
        for row in calls:
            lines.append(tell_row(problem, row, [counts[row] for counts in plans]))
            print(lines[-1], flush=True)
    asked.out.write_text(page(lines, asked.plans))
    return 0


if __name__ == "__main__":
    sys.exit(main())
