"""What the timing credits where nothing was gained, and where 5 % was.

    python benchmarks/fairness.py [--equal 60] [--faster 20] [--seats 4] [--out ...]

A candidate is timed beside a champion as in a confirmation: fresh processes, paired rounds, the
same statistics. In the first series both are the same kernel. In the second the champion computes
one row in 16 twice, so that the candidate truly is about 5 % faster (another timer says by how
much). A gain is credited where it would
displace the champion. In the third one kernel sits in both seats: it is a candidate, and a baseline
that the process of the baselines calls. A series of 0 runs keeps its lines of the page.
"""

from __future__ import annotations

import argparse
import datetime
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.manner import Manner
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.sandbox.run.program import Program
from kernelwright.sandbox.run.starting import thread_environment
from kernelwright.traces.records import CHAMPION, Depth, Speedup
from kernelwright.verifier.clock import statistics
from kernelwright.verifier.clock.judging import Judges
from kernelwright.verifier.failure import Failed
from kernelwright.verifier.request import Task
from kernelwright.verifier.stands import contests
from kernelwright.verifier.stands.cpu import CpuStand
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.programs import build_program
from kernelwright.verifier.stands.session import Session

SPMM = """\
#include <cstring>
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
#pragma omp parallel for schedule(dynamic, 64)
    for (int i = 0; i < M; ++i) {
        float sums[512];
        std::memset(sums, 0, sizeof(float) * N);
        for (int p = indptr[i]; p < indptr[i + 1]; ++p) {
            const float* __restrict__ b = B + (long)indices[p] * N;
            for (int n = 0; n < N; ++n) sums[n] += values[p] * b[n];
        }
        std::memcpy(C + (long)i * N, sums, sizeof(float) * N);
    }
}
"""
GEMM = """\
#include <cstring>
extern "C" void gemm(int M, int N, int K, const float* A, const float* B, float* C) {
    const int rows = M + M / %(every)s;
#pragma omp parallel for schedule(dynamic, 1)
    for (int turn = 0; turn < rows; ++turn) {
        const int i = turn < M ? turn : (turn - M) * %(every)s;
        float sums[1024];
        std::memset(sums, 0, sizeof(float) * N);
        for (int k = 0; k < K; ++k) {
            const float a = A[(long)i * K + k];
            const float* __restrict__ b = B + (long)k * N;
            for (int n = 0; n < N; ++n) sums[n] += a * b[n];
        }
        std::memcpy(C + (long)i * N, sums, sizeof(float) * N);
    }
}
"""
"""A product, since a part of its work is nearly that part of its time. It is small enough for a
cache of its own: what waits for memory depends on where the pages of a process happen to lie."""


ALONE = """\
import ctypes, sys, time
import numpy as np
size, calls = 256, 3000
kernels = [ctypes.CDLL(path).gemm for path in sys.argv[1:]]
tensors = [np.random.default_rng(n).standard_normal((size, size)).astype("f") for n in range(3)]
arguments = [*[ctypes.c_int(size)] * 3, *[ctypes.c_void_p(t.ctypes.data) for t in tensors]]
spent = [[], []]
for call in range(calls):
    for which in ((0, 1), (1, 0))[call % 2]:
        start = time.perf_counter_ns()
        kernels[which](*arguments)
        spent[which].append(time.perf_counter_ns() - start)
print(np.median(np.divide(spent[1], spent[0])))
"""
"""What the two kernels of a series take in one process of their own, call by call in turn."""

SEATS = (
    *("spmm_csr", "gspmm_reduce", "edge_softmax", "softmax", "layernorm", "rmsnorm"),
    *("spmm_csr@x2", "softmax@x2", "layernorm@x2"),
)
SEAT, SEATED = "the same kernel", "both seats: "
TRUTH = "True ratio of the second series:"


@dataclass(frozen=True)
class Series:
    """Confirmations of one kernel beside a champion."""

    name: str
    problem: str
    workload: str
    axes: dict[str, int]
    candidate: str
    champion: str
    first_seed: int


EQUAL = Series(
    "a kernel beside its copy: spmm_csr, pubmed, N = 32",
    "spmm_csr",
    "pubmed",
    {"N": 32},
    SPMM,
    SPMM,
    0,
)
FASTER = Series(
    "a sixteenth less work: gemm, M = N = K = 256",
    "gemm",
    "512",
    {"M": 256, "N": 256, "K": 256},
    GEMM % {"every": "0x7fffffff"},
    GEMM % {"every": "16"},
    1000,
)


@dataclass(frozen=True)
class Pairing:
    """One confirmation's figures."""

    gain: Speedup
    mde: float
    seconds: float

    @property
    def is_credited(self) -> bool:
        """Whether the candidate would displace the champion."""
        return statistics.displaces(self.gain, self.mde)


def built(session: Session, source: str) -> Program:
    """A kernel of a benchmark, as a candidate is built."""
    try:
        return build_program(session, source, "cpp")
    except Failed as failed:
        reason = f"a champion of this benchmark does not build: {failed.reason}"
        raise SystemExit(reason) from failed


def play(contest: contests.Contest) -> None:
    """All its blocks, each in fresh processes."""
    while contest.goes_on():
        with contest.process() as side:
            contest.add(side)


def confirm(stand: CpuStand, candidate: str, champion: str, seed: int) -> Pairing:
    """Times a candidate beside a champion as a confirmation does."""
    started = time.monotonic()
    rng, session = np.random.default_rng(seed), stand.session
    ours, theirs = (built(session, source) for source in (candidate, champion))
    challenger = contests.RunnerLaunch(ours, is_light=True)
    champion_launch = contests.RunnerLaunch(theirs, is_light=True)
    with Judges() as judges:
        contest = contests.Contest(
            session, stand.baselines, Depth.CONFIRM, challenger, champion_launch, judges, rng
        )
        play(contest)
    series = contest.series
    gain = statistics.speedup(
        series.blocks_of("candidate", CHAMPION), series.blocks_of(CHAMPION), rng
    )
    noise = statistics.mde(series.blocks_of(CHAMPION), rng)
    return Pairing(gain, noise, time.monotonic() - started)


def true_ratio(asked: Series) -> float:
    """Champion over candidate by another timer, in one process, without the referee."""
    workload = registry.workload_for(registry.get(asked.problem), asked.workload, **asked.axes)
    with tempfile.TemporaryDirectory() as folder:
        task = Task(
            problem=asked.problem, workload=workload, cache_dir=folder, baselines=("torch eager",)
        )
        stand = open_stand(task)
        try:
            libraries = []
            for number, source in enumerate((asked.candidate, asked.champion)):
                library = Path(folder) / f"{number}.so"
                library.write_bytes(built(stand.session, source).built.artefact)
                libraries.append(str(library))
            threads = thread_environment(len(stand.session.workshop.cpus))
        finally:
            stand.close()
        told = subprocess.run(
            [sys.executable, "-c", ALONE, *libraries],
            env={**os.environ, **threads},
            check=True,
            capture_output=True,
            text=True,
        )
    return float(told.stdout)


def sit_in_both(name: str, cache: str, seed: int) -> Speedup:
    """One `full` timing of a recipe against itself in the process of the baselines.

    Args:
        name: A problem; behind it may stand in what manner it is called.
    """
    problem_name, manner = Manner.split(name)
    problem, recipe = registry.get(problem_name), recipes_for(problem_name)[0]
    workload = problem.default_workload.called_in(manner)
    task = Task(
        problem=problem_name, workload=workload, cache_dir=cache, baselines=("torch eager",)
    )
    stand = open_stand(task)
    assert isinstance(stand, CpuStand)
    rng, session = np.random.default_rng(seed), stand.session
    try:
        ours = built(session, recipe.render(recipe.first_knobs()))
        reference = stand.baselines.reference
        library = Path(cache) / f"{ours.built.sha256}.so"
        library.write_bytes(ours.built.artefact)
        reference.process.load(SEAT, library)
        reference.latency_us = {SEAT: min(reference.latency_us.values())}
        launched = contests.RunnerLaunch(ours, is_light=True)
        with Judges() as judges:
            contest = contests.Contest(
                session, stand.baselines, Depth.FULL, launched, None, judges, rng
            )
            play(contest)
        series = contest.series
        found = statistics.speedup(series.blocks_of("candidate"), series.blocks_of(SEAT), rng)
        return statistics.beside_library(found)
    finally:
        stand.close()


def seats_line(problem: str, found: list[Speedup]) -> str:
    """The line of the table for one problem."""
    medians = np.array([one.median for one in found])
    holding = sum(one.low <= 1.0 <= one.high for one in found)
    intervals = ", ".join(f"{f.median:.3f} [{f.low:.3f}, {f.high:.3f}]" for f in found)
    return (
        f"| {SEATED}{problem} | {len(found)} | {np.exp(np.log(medians).mean()):.3f} | "
        f"{holding} of {len(found)} | {intervals} | {datetime.date.today().isoformat()} |"
    )


def summary(name: str, found: list[Pairing]) -> str:
    """The line of the table for one series."""
    credited = sum(p.is_credited for p in found)
    medians = np.array([p.gain.median for p in found])
    lows = np.array([p.gain.low for p in found])
    return (
        f"| {name} | {len(found)} | {credited} | {100 * credited / len(found):.0f} % | "
        f"{lows.max():.3f} | {np.median(medians):.3f} | {medians.min():.3f}–{medians.max():.3f} | "
        f"{np.median([p.mde for p in found]):.3f} | {np.median([p.seconds for p in found]):.1f} | "
        f"{datetime.date.today().isoformat()} |"
    )


def kept(page: Path, name: str) -> str:
    """The line that an earlier run wrote for a series that is not run now."""
    lines = page.read_text().splitlines() if page.exists() else []
    begins = f"| {name} |" if name != TRUTH else TRUTH
    return next((line for line in lines if line.startswith(begins)), "")


def run(asked: Series, count: int) -> list[Pairing]:
    """So many confirmations, each with a seed of its own."""
    if not count:
        return []
    workload = registry.workload_for(registry.get(asked.problem), asked.workload, **asked.axes)
    with tempfile.TemporaryDirectory() as cache:
        task = Task(
            problem=asked.problem, workload=workload, cache_dir=cache, baselines=("torch eager",)
        )
        stand = open_stand(task)
        assert isinstance(stand, CpuStand)
        try:
            return [
                confirm(stand, asked.candidate, asked.champion, asked.first_seed + number)
                for number in range(count)
            ]
        finally:
            stand.close()


def page(
    found: dict[str, list[Pairing]], truth: str, seats: dict[str, list[Speedup]], old: Path
) -> str:
    """The whole page; a series that was not run keeps its line of the old one."""
    lines = [
        "# What the timing credits",
        "",
        f"Made by `make fairness`: {machine()}. A gain is credited "
        "where the lower end of its 95 % interval exceeds 1 + max(2 %, the noise of that run).",
        "",
        "| series | runs | credited | share | largest lower end | median ratio | range | "
        "median noise | s per run | date |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(summary(name, runs) if runs else kept(old, name) for name, runs in found.items()),
        "",
        truth or kept(old, TRUTH),
        "",
        "One kernel in both seats, as a candidate and as a baseline: what the seat is worth. "
        f"Intervals against libraries hold {100 * statistics.SEATS:.0f} % on both sides for it. "
        "`@x2`: two calls at a time, for which threads are started: what that takes is taken off "
        "for baselines, and hardly for candidates.",
        "",
        "| kernel | runs | geometric mean | intervals that hold 1 | each | date |",
        "|---|---|---|---|---|---|",
        *(
            seats_line(name, runs) if runs else kept(old, f"{SEATED}{name}")
            for name, runs in seats.items()
        ),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Runs all series and writes the table after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--equal", type=int, default=60)
    parser.add_argument("--faster", type=int, default=20)
    parser.add_argument("--seats", type=int, default=4, help="runs of each problem in both seats")
    parser.add_argument("--out", type=Path, default=Path("docs/results/fairness.md"))
    asked = parser.parse_args()
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Pairing]] = {EQUAL.name: [], FASTER.name: []}
    seats: dict[str, list[Speedup]] = {problem: [] for problem in SEATS}
    truth = ""
    if asked.faster:
        truth = (
            f"{TRUTH} {true_ratio(FASTER):.3f}, the median of 3,000 pairs "
            "of calls in one process, without the referee."
        )
    for one, count in ((EQUAL, asked.equal), (FASTER, asked.faster)):
        found[one.name] = run(one, count)
        asked.out.write_text(page(found, truth, seats, asked.out))
    with tempfile.TemporaryDirectory() as cache:
        for problem in seats:
            seats[problem] = [sit_in_both(problem, cache, 2000 + n) for n in range(asked.seats)]
            asked.out.write_text(page(found, truth, seats, asked.out))
    print(asked.out.read_text(), end="")


if __name__ == "__main__":
    main()
