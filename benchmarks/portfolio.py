"""Where one SpMM kernel is not best everywhere: fixed best, rule, learned and oracle.

    python benchmarks/portfolio.py [--sweeps 1] [--graphs FOLDER] [--from FILE]

At least 40 matrices times four widths; every candidate is judged right and timed on each beside the
first one. What was seen lies beside the page, a JSON object a line: measuring goes on where it was
ended, and `--from` learns from it without measuring anything.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Workload
from kernelwright.kernelbench.recipes import catalogue
from kernelwright.kernelbench.standins import STAND_INS, StandIn
from kernelwright.portfolio.measuring import Cell, Contender, measure, pick_looks
from kernelwright.portfolio.times import read_seen
from kernelwright.verifier.process.client import open_referee
from kernelwright.verifier.request import Referee, Task

PROBLEM = "spmm_csr"
SEED = 7
WIDTHS = (1, 8, 32, 128)
MOST_ENTRIES = 520_000
LAWS = {
    "even-short": StandIn(60_000, 180_000, 0.3, 0.9, 500),
    "even-four": StandIn(8_000, 32_000, 0.3, 0.5, 200),
    "even-ten": StandIn(30_000, 300_000, 0.2, 0.2),
    "even-thirty": StandIn(4_000, 120_000, 0.2, 0.2),
    "even-long": StandIn(2_000, 240_000, 0.2, 0.3, 200),
    "even-longest": StandIn(600, 240_000, 0.2, 0.2),
    "tiny-even": StandIn(500, 2_500, 0.3),
    "tiny-skewed": StandIn(800, 6_000, 2.5),
    "small-skewed": StandIn(3_000, 40_000, 3.0),
    "small-hubs": StandIn(5_000, 30_000, 8.0, gamma=2.0),
    "band": StandIn(40_000, 200_000, 0.1, 1.0, 50),
    "wide-band": StandIn(10_000, 250_000, 0.1, 1.0, 300),
    "skewed": StandIn(20_000, 200_000, 2.5),
    "skewed-local": StandIn(20_000, 200_000, 2.5, 0.8, 200),
    "hubs": StandIn(40_000, 200_000, 10.0, gamma=1.9),
    "many-rows": StandIn(200_000, 300_000, 1.2),
    "most-rows": StandIn(260_000, 260_000, 2.0),
    "long-skewed": StandIn(3_000, 300_000, 1.5),
    "one-each": StandIn(50_000, 50_000, 0.1),
    "dense-like": StandIn(400, 60_000, 0.3),
}
"""Patterns of other sizes than the published graphs', by the law that draws these."""
KNOBS = (
    ("row", "row-balanced", {}),
    ("nnz", "nnz-balanced", {}),
    ("row-half", "row-balanced", {"vector": "half", "prefetch": 0}),
    ("row-two", "row-balanced", {"unroll": 2, "prefetch": 0, "vectors": 4, "schedule": "static"}),
)
"""Name, family, and knobs that are not the default's; the first one takes turns with the others."""


def list_contenders() -> list[Contender]:
    """Settings of both families, and a kernel by hand for factors of a few columns."""
    found = []
    for name, family, changes in KNOBS:
        recipe = catalogue.get(PROBLEM, family)
        found.append(Contender(name, recipe.render({**recipe.first_knobs(), **changes})))
    hand = Path(__file__).with_name("narrow_spmm.cpp")
    return [*found, Contender("narrow", hand.read_text())]


def list_workloads(graphs: Path | None) -> list[Workload]:
    """Every matrix at every width: stand-ins, generated laws, the folder's matrix files."""
    problem = registry.get(PROBLEM)
    dense = problem.default_workload.axes
    made = [
        registry.workload_for(problem, n) for n, g in STAND_INS.items() if g.nnz <= MOST_ENTRIES
    ]
    made += [
        Workload(name=name, kind="generated", axes=dense, generator=law.generator)
        for name, law in LAWS.items()
    ]
    hub = {"law": "hub", "n": 6_000, "nnz": 60_000}
    made.append(Workload(name="hub", kind="generated", axes=dense, generator=hub))
    for scale, factor in ((11, 8), (13, 16), (15, 4), (14, 24)):
        rmat = {"law": "rmat", "scale": scale, "edge_factor": factor}
        made.append(Workload(name=f"rmat-{scale}", kind="generated", axes=dense, generator=rmat))
    files = sorted(graphs.glob("*.mtx.gz")) if graphs else []
    made += [
        found.model_copy(update={"name": f"{found.name}-file"})
        for found in (registry.workload_for(problem, matrix=str(file)) for file in files)
    ]
    # Ended early, the record has some of every kind.
    random.Random(SEED).shuffle(made)
    return [_widen(workload, width) for workload in made for width in WIDTHS]


def _widen(workload: Workload, width: int) -> Workload:
    name = f"{workload.name}:N={width}"
    return workload.model_copy(update={"name": name, "axes": {**workload.axes, "N": width}})


def fill(record: Path, sweeps: int, graphs: Path | None, cpus: tuple[int, ...]) -> None:
    """Measures what the record lacks, and adds it line by line."""
    seen = read_seen(record) if record.exists() else []
    workloads, contenders = list_workloads(graphs), list_contenders()
    looks = Counter(
        Cell(each.workload, each.group, each.source)
        for each in pick_looks(seen, workloads, contenders)
        if each.ratio is not None
    )
    print(f"{len(workloads)} workloads, {len(contenders)} candidates", flush=True)
    with tempfile.TemporaryDirectory() as cache, record.open("a") as out:

        def open_for(workload: Workload) -> AbstractContextManager[Referee]:
            return open_referee(
                Task(
                    problem=PROBLEM,
                    workload=workload,
                    cache_dir=cache,
                    languages=("cpp",),
                    baselines=("scipy",),
                    cpus=cpus,
                )
            )

        for sweep in range(1, sweeps + 1):
            begun = time.monotonic()
            found = measure(
                registry.get(PROBLEM),
                workloads,
                contenders,
                open_for,
                is_known=lambda cell, sweep=sweep: looks[cell] >= sweep,
            )
            for each in found:
                out.write(each.model_dump_json() + "\n")
                out.flush()
            print(f"sweep {sweep}: {time.monotonic() - begun:.0f} s", flush=True)


def main() -> None:
    """Measures, learns, writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=1)
    parser.add_argument("--cpus", type=int, nargs="*", default=[], help="none: all of them")
    parser.add_argument("--graphs", type=Path, help="a folder of .mtx.gz files")
    parser.add_argument("--out", type=Path, default=Path("docs/results/portfolio.md"))
    asked = parser.parse_args()
    fill(asked.out.with_suffix(".jsonl"), asked.sweeps, asked.graphs, tuple(asked.cpus))


if __name__ == "__main__":
    main()
