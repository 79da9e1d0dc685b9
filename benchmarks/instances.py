"""Several instances of few threads, or one of all: a batch of calls either way, on CPUs.

    python benchmarks/instances.py [--rounds 60] [--out docs/results/instances.md] [PROBLEM …]

Packrat (arXiv 2311.18174) serves a batch of a model on a CPU by several instances of few threads
each, which it finds to answer sooner than one instance of all threads. A batch here is one call for
each CPU: made one after the other by an instance of all threads, or at the same time by an instance
for each CPU, each in a process of its own that is bound to it. Rounds alternate; the figure is the
median ratio of the two in a pair of rounds, with a bootstrap interval. Sides are the first recipe
of a problem as the product builds it, and its torch baseline.
"""

from __future__ import annotations

import argparse
import ctypes
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.machine import usable_cpus
from kernelwright.kernelbench.problem import BaselineCall, Family, Problem
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.sandbox.builders import cpp
from kernelwright.sandbox.builders.model import BuildFailed
from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.choose import choose

PROBLEMS = ("softmax", "layernorm", "gemm", "spmm_csr", "sddmm_csr", "attention_prefill", "gemv")
CALLS = 4
"""That an instance makes for each CPU's place in a batch, so that a pipe's time is little."""
TORCH = "torch eager"
BOOTSTRAP = 2000
QUIET = 0.5
"""Fewer other processes, in a minute's mean, leave an instance of all threads its CPUs."""


class Found(NamedTuple):
    """One side of one problem."""

    problem: str
    workload: str
    side: str
    alone_us: float
    """A call of the one instance."""
    ratio: float
    """The batch by one instance, over that by several: above 1 several are faster."""
    low: float
    high: float


def library_of(problem: Problem, folder: Path) -> Path:
    """The first recipe, built as a candidate is."""
    source = recipes_for(problem.name)[0].render(recipes_for(problem.name)[0].first_knobs())
    workshop = Workshop(choose("auto"), folder, usable_cpus())
    built = cpp.build(workshop, source, cpp.prototype(problem), problem.name)
    if isinstance(built, BuildFailed):
        raise SystemExit(f"the recipe of {problem.name} does not build: {built.reason}")
    library = folder / f"{problem.name}.so"
    library.write_bytes(built.artefact)
    return library


def serve(name: str, library: str) -> None:
    """An instance: makes so many calls as each line of its input says, and answers."""
    problem = registry.get(name)
    structure = problem.structure(problem.default_workload)
    drawn = problem.values(structure, Family.NORMAL, np.random.default_rng(0))
    inputs = {t.name: structure.arrays.get(t.name, drawn.get(t.name)) for t in problem.inputs}
    outputs = {
        t.name: np.zeros(t.extent(structure.axes), np.dtype(t.dtype)) for t in problem.outputs
    }
    call = prepare(problem, BaselineCall(dict(structure.axes), inputs, outputs), library)
    call()
    print("ready", flush=True)
    for line in sys.stdin:
        for _ in range(int(line)):
            call()
        print("done", flush=True)


def prepare(problem: Problem, given: BaselineCall, library: str) -> Callable[[], object]:
    """What makes a call."""
    if not library:
        baseline = next(each for each in problem.baselines if each.name == TORCH)
        import torch

        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        return baseline.prepare(given)
    kernel = getattr(ctypes.CDLL(library), problem.name)
    arrays = [{**given.inputs, **given.outputs}[tensor.name] for tensor in problem.tensors]
    arguments = [ctypes.c_int(given.axes[axis]) for axis in problem.axes]
    arguments += [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    return lambda: kernel(*arguments)


class Instance:
    """A process that makes calls on its CPUs."""

    def __init__(self, name: str, library: str, cpus: Sequence[int]) -> None:
        command = [sys.executable, __file__, "--serve", name, "--library", library]
        count = str(len(cpus))
        threads = {"OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **threads},
            preexec_fn=lambda: os.sched_setaffinity(0, cpus),
        )
        self.wait()

    def ask(self, calls: int) -> None:
        """Begins so many calls."""
        assert self._process.stdin
        self._process.stdin.write(f"{calls}\n")
        self._process.stdin.flush()

    def wait(self) -> None:
        """Until they are made."""
        assert self._process.stdout
        if not self._process.stdout.readline():
            raise SystemExit("an instance ended before it answered; its error stands above")

    def close(self) -> None:
        """Ends it."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


def time_batch(instances: Sequence[Instance], calls: int) -> float:
    """Seconds until all have made their calls."""
    began = time.perf_counter()
    for instance in instances:
        instance.ask(calls)
    for instance in instances:
        instance.wait()
    return time.perf_counter() - began


def compare(problem: Problem, side: str, library: str, rounds: int) -> Found:
    """One instance of all threads beside one for each CPU."""
    cpus = usable_cpus()
    one = [Instance(problem.name, library, cpus)]
    several = [Instance(problem.name, library, (cpu,)) for cpu in cpus]
    try:
        pairs = []
        for number in range(rounds):
            turns = [(one, CALLS * len(cpus)), (several, CALLS)]
            took = {}
            for at in (0, 1) if number % 2 else (1, 0):
                took[at] = time_batch(*turns[at])
            pairs.append((took[0], took[1]))
    finally:
        for instance in (*one, *several):
            instance.close()
    ratios = np.array([alone / together for alone, together in pairs])
    rng = np.random.default_rng(0)
    drawn = np.median(rng.choice(ratios, (BOOTSTRAP, len(ratios))), axis=1)
    low, high = np.quantile(drawn, (0.025, 0.975))
    alone_us = 1e6 * float(np.median([pair[0] for pair in pairs])) / (CALLS * len(cpus))
    workload = problem.default_workload.name
    return Found(problem.name, workload, side, alone_us, float(np.median(ratios)), low, high)


def tell_load(before: float) -> str:
    """A sentence, where others ran meanwhile."""
    if before < QUIET:
        return ""
    return (
        f"**The machine was shared**: before this began {before:.1f} other processes ran on its "
        f"{len(usable_cpus())} CPUs. An instance of all threads waits at the end of each call for "
        "the thread that others keep from running, and one of a single thread never does: ratios "
        "are then those of a shared machine, and say nothing of an idle one."
    )


def page(found: Sequence[Found], rounds: int, load: float) -> str:
    """As Markdown.

    Args:
        load: how many processes ran before it began.
    """
    better = sum(each.low > 1.0 for each in found)
    worse = sum(each.high < 1.0 for each in found)
    lines = [
        "# Several instances of few threads, or one of all",
        "",
        f"{datetime.date.today()}, {machine()}. "
        f"`python benchmarks/instances.py --rounds {rounds}`.",
        "",
        "A batch of one call for each CPU: made by one instance of all threads, one call after "
        "the other, or by an instance for each CPU at the same time. Packrat (arXiv 2311.18174) "
        "reports 1.43 to 1.83 times for whole models on CPUs of many cores. The ratio is above 1 "
        "where several instances are faster, with its 95 % interval over pairs of rounds.",
        "",
        *filter(None, [tell_load(load)]),
        "",
        f"Several instances are faster in {better} of {len(found)} rows, slower in {worse}.",
        "",
        "| problem | workload | side | a call alone (µs) | ratio | 95 % |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{each.problem}` | {each.workload} | {each.side} | {each.alone_us:,.0f} | "
        f"{each.ratio:.2f} | {each.low:.2f}–{each.high:.2f} |"
        for each in found
    ]
    return "\n".join([*lines, ""])


def main() -> None:
    """Writes the page, or is an instance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=PROBLEMS)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("docs/results/instances.md"))
    parser.add_argument("--serve", default="")
    parser.add_argument("--library", default="")
    given: Any = parser.parse_args()
    if given.serve:
        serve(given.serve, given.library)
        return
    found, load = [], os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        for name in given.problems:
            problem = registry.get(name)
            sides = (("ours", str(library_of(problem, Path(folder)))), (TORCH, ""))
            for side, library in sides:
                found.append(compare(problem, side, library, given.rounds))
                print(json.dumps(found[-1]._asdict(), default=float), flush=True)
    given.out.write_text(page(found, given.rounds, load))


if __name__ == "__main__":
    main()
