"""Where one SpMM kernel is not best everywhere: fixed best, rule, learned and oracle.

    python benchmarks/portfolio.py [--sweeps 2] [--cpus 1] [--graphs FOLDER] [--judge] [--from FILE]

At least 40 matrices times four widths; every candidate is judged right and timed on each beside the
first one. What was seen lies beside the page, a JSON object a line: measuring goes on where it was
ended, and `--from` learns from it without measuring anything.
"""

from __future__ import annotations

import argparse
import datetime
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
from machine import machine

import kernelwright
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Workload
from kernelwright.kernelbench.recipes import catalogue
from kernelwright.kernelbench.standins import STAND_INS, StandIn
from kernelwright.portfolio.building import (
    Portfolio,
    confirm,
    join_representatives,
    learn_portfolio,
)
from kernelwright.portfolio.declared import declare_features
from kernelwright.portfolio.learning import Learner
from kernelwright.portfolio.measuring import Cell, Contender, measure, pick_looks
from kernelwright.portfolio.standing import LEARNED, Line, hold_beside
from kernelwright.portfolio.times import LeftOut, Seen, Table, make_table, read_seen
from kernelwright.portfolio.tree import tell_tree
from kernelwright.running import run_evaluation
from kernelwright.traces.records import Depth
from kernelwright.traces.store import Store
from kernelwright.verifier.process.client import open_referee
from kernelwright.verifier.request import Task
from kernelwright.workbench import exporting

PROBLEM = "spmm_csr"
SEED = 7
WIDTHS = (1, 8, 32, 128)
RULE = "N <= 8"
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


def task_on(workload: Workload, cache: str, cpus: tuple[int, ...]) -> Task:
    """What a referee is started for; a single baseline, which needs no torch."""
    return Task(
        problem=PROBLEM,
        workload=workload,
        cache_dir=cache,
        languages=("cpp",),
        baselines=("scipy",),
        cpus=cpus,
    )


def fill(
    record: Path,
    sweeps: int,
    workloads: list[Workload],
    contenders: list[Contender],
    cpus: tuple[int, ...],
) -> None:
    """Measures what the record lacks, and adds it line by line."""
    seen = read_seen(record) if record.exists() else []
    looks = Counter(
        Cell(each.workload, each.group, each.source)
        for each in pick_looks(seen, workloads, contenders)
        if each.ratio is not None
    )
    print(f"{len(workloads)} workloads, {len(contenders)} candidates", flush=True)
    with tempfile.TemporaryDirectory() as cache, record.open("a") as out:
        for sweep in range(1, sweeps + 1):
            begun = time.monotonic()
            for each in measure(
                registry.get(PROBLEM),
                workloads,
                contenders,
                lambda workload: open_referee(task_on(workload, cache, cpus)),
                is_known=lambda cell, sweep=sweep: looks[cell] >= sweep,
            ):
                out.write(each.model_dump_json(exclude_defaults=True) + "\n")
                out.flush()
                looks[Cell(each.workload, each.group, each.source)] += each.ratio is not None
            print(f"sweep {sweep}: {time.monotonic() - begun:.0f} s", flush=True)


def judge(
    found: Portfolio,
    workloads: list[Workload],
    contenders: list[Contender],
    cpus: tuple[int, ...],
) -> list[str]:
    """Confirms each kernel, judges the whole, exports it and runs its self-test; in words."""
    by_name = {workload.name: workload for workload in workloads}
    kernels = {each.name: each for each in contenders}
    told = []
    with tempfile.TemporaryDirectory() as folder:
        confirmed = confirm(
            found, by_name, kernels, lambda w: open_referee(task_on(w, folder, cpus))
        )
        told += [f"- `{one.name}` on {one.workload}: {one.verdict.status}" for one in confirmed]
        source = found.source({each.name: each.source for each in contenders})
        task = task_on(join_representatives(found, by_name), folder, cpus)
        home = Path(folder) / "home"
        with Store.open(home) as store, open_referee(task) as referee:
            kept = run_evaluation(task, source, "cpp", Depth.FULL, store, referee)
        candidate = kernelwright.open_home(home)[kept.campaign]["@best"]
        told.append(f"- all as one source, on these workloads together: {candidate.result()}")
        package = Path(folder) / "package"
        exporting.export(candidate, package)
        (module,) = (path.name for path in package.iterdir() if path.name.startswith("kw_"))
        done = subprocess.run(
            [sys.executable, "-m", module, "selftest"],
            env={**os.environ, "PYTHONPATH": str(package), "KW_KERNEL_CACHE": f"{folder}/built"},
            capture_output=True,
            text=True,
            check=True,
        )
        told.append(f"- its package's self-test: {done.stdout.splitlines()[-1]}")
    return ["Its kernels, confirmed on a workload that each gets, and the whole:", "", *told, ""]


def tell_row(line: Line) -> str:
    """A row of either table."""
    return (
        f"| {line.name} | {line.share:.1%} | {line.low:.1%} to {line.high:.1%} | {line.worst:.0%} "
        f"| {line.chooses} |"
    )


def best_on(table: Table, name: str) -> str:
    """On how many workloads of each width a candidate is the best one."""
    best = table.regret[:, table.candidates.index(name)] == 0.0
    counts = Counter(
        int(facts["N"]) for facts, is_best in zip(table.facts, best, strict=True) if is_best
    )
    return ", ".join(f"{counts[width]} of N = {width}" for width in WIDTHS if counts[width])


HEAD = """
Made by `make portfolio` on {day}: {machine}, {on}. `spmm_csr`, float32, {matrices} matrices
(stand-ins of published graphs and generated patterns, up to {most:,} entries) times N in
{{1, 8, 32, 128}}: {workloads} workloads, {candidates} candidates. Each was judged right and timed
on each workload by a screening beside `{reference}`, {looks:.1f} times; the standard error of a
ratio is {error:.1%} in the median. The raw table is portfolio.jsonl; `--from` learns from it
without timing.
"""
MEANT = """
The oracle takes the best candidate of each workload as it was measured, luck included: no choice
reaches it where two candidates are alike. Shares are geometric means of its time over the chosen
one's, with 95 % intervals over matrices; `worst` is the workload that is furthest away. `learned`
was learned, its candidates and its size included, without the matrix that it is asked about. The
fixed best and the rule's candidates are the best ones on these very workloads.
"""
SHOWN = """
Learned is {lead:.3f} [{low:.3f}, {high:.3f}] times as fast as the fixed best. With the statistics
of the rows as well, which cost a caller a pass over the row pointers, it reaches {known.share:.1%}
[{known.low:.1%}, {known.high:.1%}].
"""
LUCK = """
Who knows the best candidate of each workload from one sweep, and is timed by the other, reaches
{again:.1%} of the best there: that is what noise alone takes from a choice by a single look.
"""


def fill_in(text: str, **known: object) -> str:
    """A paragraph as one line."""
    return " ".join(text.split()).format(**known)


def page(found: Portfolio, seen: list[Seen], cpus: tuple[int, ...], told: list[str]) -> str:
    """The whole page."""
    table, standing = found.table, found.standing
    with_rows = Learner(declare_features(found.problem, with_rows=True))
    lead, low, high = standing.lead
    head = fill_in(
        HEAD,
        day=datetime.date.today().isoformat(),
        machine=machine(),
        on=f"on CPU {', '.join(map(str, cpus))} alone" if cpus else "on all CPUs",
        matrices=len(set(table.groups)),
        most=MOST_ENTRIES,
        workloads=len(table.workloads),
        candidates=len(table.candidates),
        reference=table.candidates[0],
        looks=len(seen) / table.us.size,
        error=statistics.median(each.error for each in seen if each.error is not None),
    )
    known = hold_beside(table, with_rows).way(LEARNED)
    singles = (replace(line, chooses=best_on(table, line.name)) for line in standing.singles)
    return "\n".join(
        [
            "# Where one kernel is not best everywhere",
            "",
            head,
            "",
            fill_in(MEANT),
            "",
            "| way | share of the oracle | 95 % | worst | takes |",
            "|---|---|---|---|---|",
            *map(tell_row, standing.ways),
            "",
            fill_in(SHOWN, lead=lead, low=low, high=high, known=known),
            *tell_luck(seen),
            *tell_left_out(found.left_out),
            "",
            "Every candidate alone:",
            "",
            "| candidate | share of the oracle | 95 % | worst | best on |",
            "|---|---|---|---|---|",
            *map(tell_row, singles),
            "",
            "The tree that was learned from all workloads:",
            "",
            *(f"- {line}" for line in tell_tree(found.tree)),
            "",
            *told,
        ]
    )


def tell_luck(seen: list[Seen]) -> list[str]:
    """How well one sweep's best is the other's; nothing where there was one sweep only."""
    sweeps: tuple[list[Seen], list[Seen]] = ([], [])
    met: Counter[tuple[str, str]] = Counter()
    for each in seen:
        if each.ratio is not None and (at := met[each.workload, each.candidate]) < len(sweeps):
            sweeps[at].append(each)
            met[each.workload, each.candidate] += 1
    whole = {key for key, count in met.items() if count >= len(sweeps)}
    if len(whole) < len(met):
        return []
    first, second = (make_table(sweep)[0].regret for sweep in sweeps)
    rows = np.arange(len(first))
    lost = [b[rows, a.argmin(axis=1)].mean() for a, b in ((first, second), (second, first))]
    return ["", fill_in(LUCK, again=math.exp(-sum(lost) / len(lost)))]


def tell_left_out(left_out: LeftOut) -> list[str]:
    """What the table lacks, and why."""
    both = {**left_out.candidates, **left_out.workloads}
    return (
        ["", "Left out:", "", *(f"- {what}: {why}" for what, why in both.items())] if both else []
    )


def main() -> None:
    """Measures, learns, writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=2)
    parser.add_argument("--cpus", type=int, nargs="*", default=[], help="none: all of them")
    parser.add_argument("--graphs", type=Path, help="a folder of .mtx.gz files")
    parser.add_argument("--from", dest="record", type=Path, help="a record; nothing is measured")
    parser.add_argument("--judge", action="store_true", help="judge it, and export it")
    parser.add_argument("--out", type=Path, default=Path("docs/results/portfolio.md"))
    asked = parser.parse_args()
    cpus, record = tuple(asked.cpus), asked.record or asked.out.with_suffix(".jsonl")
    workloads, contenders = list_workloads(asked.graphs), list_contenders()
    if not asked.record:
        fill(record, asked.sweeps, workloads, contenders, cpus)
    seen = pick_looks(read_seen(record), workloads, contenders)
    found = learn_portfolio(registry.get(PROBLEM), seen, rule=RULE)
    told = judge(found, workloads, contenders, cpus) if asked.judge else []
    asked.out.write_text(page(found, seen, cpus, told))
    print(asked.out.read_text())


if __name__ == "__main__":
    main()
