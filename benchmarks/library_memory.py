"""What libraries lose to memory that is given back to the system: page faults of a timed call.

    python benchmarks/library_memory.py [--processes 4] [--out PAGE] [PROBLEM …]

Torch by its own takes its results from the heap. Where what was freed goes back to the system, as
glibc has it by itself, each call may get it anew, page by page. Each row is torch's eager baseline
in processes of either kind in turn, as the referee starts and calls them; figures are medians over
calls, and the range over processes.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.machine import usable_cpus
from kernelwright.kernelbench.problem import Family, Problem
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose
from kernelwright.sandbox.run import starting
from kernelwright.verifier.baselines.process import BaselineProcess
from kernelwright.verifier.clock.timed_sides import BaselineSide
from kernelwright.verifier.truth.trials import make_item

PROBLEMS = (
    *("depthwise_conv", "apmm_bipolar", "attention_decode_gqa", "softmax", "bias_gelu"),
    *("spmm_csr", "edge_softmax", "gat_fused", "gemm", "layernorm_backward"),
)
TORCH = "torch eager"
CALLS = 24
SLOTS = 3


class Found(NamedTuple):
    """One process."""

    us: float
    faults: float
    """Of a call: pages that the system gave it."""


@contextmanager
def given_back() -> Iterator[None]:
    """Processes that start inside give freed memory back as glibc does by itself."""
    kept = dict(starting.KEEPING)
    starting.KEEPING.clear()
    try:
        yield
    finally:
        starting.KEEPING.update(kept)


def faults_of(pid: int) -> int:
    """Minor page faults of a process so far (proc(5))."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[7])


def time_process(problem: Problem, cache: str, seed: int) -> Found:
    """A fresh process of torch's baseline on the usual workload."""
    rng = np.random.default_rng(seed)
    structure = problem.structure(problem.default_workload)
    workshop = Workshop(choose("auto"), Path(cache), usable_cpus())
    process = BaselineProcess(workshop, problem, structure, slots=SLOTS)
    try:
        _, missing = process.prepare((TORCH,), rng)
        if missing:
            raise SystemExit(f"{problem.name}: {missing[TORCH]}")
        side = BaselineSide(TORCH, process)
        item = make_item(problem, structure, Family.NORMAL, rng)
        side.take([item] * SLOTS, 0)
        before = faults_of(process.pid)
        spent = [side.take([item], number % SLOTS) for number in range(CALLS)]
        return Found(float(np.median(spent)), (faults_of(process.pid) - before) / CALLS)
    finally:
        process.close()


def line(problem: Problem, back: Sequence[Found], kept: Sequence[Found]) -> str:
    """The line of a problem."""

    def tell(found: Sequence[Found]) -> str:
        us = [each.us for each in found]
        faults = np.median([each.faults for each in found])
        return f"{np.median(us):,.0f} ({min(us):,.0f}–{max(us):,.0f}) | {faults:,.0f}"

    ratio = np.median([one.us for one in back]) / np.median([one.us for one in kept])
    named = f"`{problem.name}` | {problem.default_workload.name}"
    return f"| {named} | {tell(back)} | {tell(kept)} | {ratio:.2f} |"


def page(lines: Sequence[str], processes: int) -> str:
    """As Markdown."""
    head = [
        "# What libraries lose to memory that is given back",
        "",
        f"Made by `make library-memory` on {datetime.date.today()}: {machine()}. Torch's eager "
        f"baseline, {processes} processes of either kind in turn, {CALLS} calls each: the median "
        "call in µs with the range over processes, and page faults a call. *Given back*: glibc "
        "as it is by itself. *Kept*: `MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_MAX_` as the "
        "referee sets them for both sides.",
        "",
        "| problem | workload | given back | faults | kept | faults | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    return "\n".join([*head, *lines, ""])


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--processes", type=int, default=4)
    parser.add_argument("--out", type=Path, default=Path("docs/results/library-memory.md"))
    asked = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as cache:
        for problem in map(registry.get, asked.problems):
            back: list[Found] = []
            kept: list[Found] = []
            for seed in range(asked.processes):
                with given_back():
                    back.append(time_process(problem, cache, seed))
                kept.append(time_process(problem, cache, seed))
            lines.append(line(problem, back, kept))
            print(lines[-1], flush=True)
    asked.out.write_text(page(lines, asked.processes))


if __name__ == "__main__":
    main()
