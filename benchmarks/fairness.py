"""What the timing credits where nothing was gained, and where 5 % was.

    python benchmarks/fairness.py [--equal 60] [--faster 20] [--out docs/results/fairness.md]

A candidate is timed beside a champion as in a confirmation: fresh processes, paired rounds, the
same statistics. In the first series both are the same kernel. In the second the champion does the
rows of a twentieth of the matrix twice, so that the candidate truly is 5 % faster. A gain is
credited where it would displace the champion.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernelwright.kernelbench import registry
from kernelwright.traces.records import CHAMPION, Protocol, Speedup
from kernelwright.verifier import sampling, statistics
from kernelwright.verifier.programs import build_program
from kernelwright.verifier.request import Task
from kernelwright.verifier.session import Session

PROBLEM, WORKLOAD, WIDTH = "spmm_csr", "pubmed", 32
KERNEL = """\
#include <cstring>
extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr, const int* indices,
                         const float* values, const float* B, float* C) {
    const int rows = M + M / %(extra)s;
#pragma omp parallel for schedule(dynamic, 64)
    for (int turn = 0; turn < rows; ++turn) {
        const int i = turn < M ? turn : turn - M;
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
PLAIN = KERNEL % {"extra": "0x7fffffff"}
SLOWER = KERNEL % {"extra": "20"}


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


def confirm(session: Session, candidate: str, champion: str, seed: int) -> Pairing:
    """Times a candidate beside a champion as a confirmation does."""
    started = time.monotonic()
    rng = np.random.default_rng(seed)
    ours, theirs = (build_program(session, source, "cpp") for source in (candidate, champion))
    series = sampling.new_series(session)
    with sampling.arena_for(session) as arena:
        for _ in range(sampling.BLOCKS[Protocol.CONFIRM]):
            with sampling.started(session, Protocol.CONFIRM, "candidate", ours, arena, rng) as side:
                sampling.add_block(session, Protocol.CONFIRM, series, side, theirs, rng)
    gain = statistics.speedup(series.of("candidate", CHAMPION), series.of(CHAMPION), rng)
    noise = statistics.mde(series.of(CHAMPION), rng)
    return Pairing(gain, noise, time.monotonic() - started)


def summary(name: str, found: list[Pairing]) -> list[str]:
    """Lines of the table for one series."""
    credited = sum(p.is_credited for p in found)
    medians = np.array([p.gain.median for p in found])
    lows = np.array([p.gain.low for p in found])
    return [
        f"| {name} | {len(found)} | {credited} | {100 * credited / len(found):.0f} % | "
        f"{lows.max():.3f} | {np.median(medians):.3f} | {medians.min():.3f}–{medians.max():.3f} | "
        f"{np.median([p.mde for p in found]):.3f} | {np.median([p.seconds for p in found]):.1f} |"
    ]


def main() -> None:
    """Runs both series and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--equal", type=int, default=60)
    parser.add_argument("--faster", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("docs/results/fairness.md"))
    asked = parser.parse_args()
    problem = registry.get(PROBLEM)
    workload = registry.workload_for(problem, WORKLOAD, N=WIDTH)
    with tempfile.TemporaryDirectory() as cache:
        session = Session.open(
            Task(problem=PROBLEM, workload=workload, cache_dir=cache, baselines=("torch eager",))
        )
        equal = [confirm(session, PLAIN, PLAIN, seed) for seed in range(asked.equal)]
        faster = [confirm(session, PLAIN, SLOWER, 1000 + n) for n in range(asked.faster)]
        session.close()
    lines = [
        "# What the timing credits",
        "",
        f"Made by `make fairness` on {datetime.date.today().isoformat()}: {PROBLEM} on "
        f"{workload.name} with N = {WIDTH}, {len(os.sched_getaffinity(0))} CPUs, Linux "
        f"{platform.release()}. A gain is credited where the lower end of its 95 % interval "
        "exceeds 1 + max(2 %, the noise of that run).",
        "",
        "| series | runs | credited | share | largest lower end | median ratio | range | "
        "median noise | s per run |",
        "|---|---|---|---|---|---|---|---|---|",
        *summary("a kernel beside its copy", equal),
        *summary("5 % less work", faster),
    ]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
