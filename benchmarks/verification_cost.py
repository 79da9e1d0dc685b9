"""What a verdict costs: the seconds of an evaluation, and where they go; writes a page.

    python benchmarks/verification_cost.py [--problems spmm_csr ...] [--rounds 3] [--out PAGE]

Each problem's first recipe is judged on `tiny` and on the problem's default workload: a screening,
a whole evaluation as `eval` makes one, and confirmations beside a champion, which is its copy.
Every source is new to the build cache; the baselines are compiled before, and what that takes is
told apart; so are the headers that builds of a cache folder precompile once, on the third build.
Exits with 1 where a limit of LIMITS is not met.
"""

from __future__ import annotations

import argparse
import datetime
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Workload
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.sandbox.builders import precompiled
from kernelwright.sandbox.builders.cache import BuildCache
from kernelwright.sandbox.builders.compiler import find_compiler
from kernelwright.sandbox.builders.model import BuildVariant
from kernelwright.traces.records import Depth, Verdict
from kernelwright.verifier.process.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Order, Task

SPINE = (
    "spmm_csr",
    "spmv_csr",
    "gspmm_reduce",
    "sddmm_csr",
    "edge_softmax",
    "softmax",
    "softmax_backward",
    "layernorm",
    "rmsnorm",
    "bias_gelu",
    "gemm",
)
"""The problems of which the limits are asked; of others `--problems` tells."""
SPANS = ("build", "start", "verify", "sanitize", "fences", "load", "wait for baselines", "time")
EVAL_TINY_S = 6.0
CONFIRM_MEDIAN_S = 6.0
CONFIRM_MOST_S = 15.0


@dataclass(frozen=True)
class Cost:
    """One evaluation."""

    problem: str
    workload: str
    kind: str
    depth: Depth
    status: str
    seconds: dict[str, float]
    total: float

    def row(self) -> str:
        """A line of the table."""
        spans = " | ".join(f"{self.seconds.get(span, 0.0):.2f}" for span in SPANS)
        return (
            f"| {self.problem} | {self.workload} | {self.depth} | {spans} | {self.total:.2f} | "
            f"{self.status} |"
        )


def judge(referee: RefereeProcess, order: Order) -> tuple[Verdict, float]:
    """The verdict and the seconds it took in all."""
    start = time.monotonic()
    return referee.evaluate(order), time.monotonic() - start


def costs(name: str, workload: Workload, rounds: int) -> list[Cost]:
    """What evaluations of a problem's first recipe cost, and the preparation before them."""
    recipe = recipes_for(name)[0]
    source = recipe.render(recipe.first_knobs())
    found: list[Cost] = []
    with tempfile.TemporaryDirectory() as cache:
        task = Task(problem=name, workload=workload, cache_dir=cache)
        begun = time.monotonic()
        with open_referee(task) as referee:
            referee.prepare()
            for variant in BuildVariant:
                precompiled.expect_more(source, variant, find_compiler(), BuildCache(Path(cache)))
            # The first of each builds the runners and plants an error for the sanitizers.
            for depth in (Depth.SCREEN, Depth.FULL):
                judge(
                    referee,
                    Order(source=f"{source}// warm {depth}\n", language="cpp", protocol=depth),
                )
            print(f"{name} {workload.name}: ready in {time.monotonic() - begun:.1f} s", flush=True)
            for depth, champion, count in (
                (Depth.SCREEN, "", 1),
                (Depth.FULL, "", 1),
                (Depth.CONFIRM, source, rounds),
            ):
                for number in range(count):
                    order = Order(
                        source=f"{source}// {depth} {number}\n",
                        language="cpp",
                        protocol=depth,
                        champion=champion,
                    )
                    verdict, total = judge(referee, order)
                    found.append(
                        Cost(
                            name,
                            workload.name,
                            workload.kind,
                            depth,
                            str(verdict.status),
                            dict(verdict.seconds),
                            total,
                        )
                    )
                    print(found[-1].row(), flush=True)
    return found


def limits(found: list[Cost]) -> list[tuple[str, bool]]:
    """Each limit, what was found, and whether it is met."""
    evals = [c for c in found if c.depth is Depth.FULL and c.kind == "tiny"]
    confirmed = [c.total for c in found if c.depth is Depth.CONFIRM]
    slowest = max(evals, key=lambda cost: cost.total)
    median, most = statistics.median(confirmed), max(confirmed)
    return [
        (
            f"a whole evaluation on `tiny`: median "
            f"{statistics.median(c.total for c in evals):.1f} s, most {slowest.total:.1f} s "
            f"({slowest.problem}); at most {EVAL_TINY_S:g} s",
            slowest.total <= EVAL_TINY_S,
        ),
        (
            f"a confirmation beside a champion: median {median:.1f} s of {len(confirmed)}, at most "
            f"{CONFIRM_MEDIAN_S:g} s",
            median <= CONFIRM_MEDIAN_S,
        ),
        (f"the longest confirmation: {most:.1f} s of {CONFIRM_MOST_S:g} s", most <= CONFIRM_MOST_S),
    ]


def page(found: list[Cost]) -> str:
    """The whole page."""
    heads = " | ".join(SPANS)
    met = [f"- {words}: {'met' if holds else '**not met**'}" for words, holds in limits(found)]
    return "\n".join(
        [
            "# What a verdict costs",
            "",
            f"Made by `make verification-cost` on {datetime.date.today().isoformat()}: "
            f"{machine()}. Seconds, once the baselines are compiled, and the headers that a cache "
            "folder has precompiled from the third build on (1.1 to 1.4 s for each of two kinds of "
            "builds, once). Spans overlap: the sanitized build is made beside the plain one.",
            "",
            *met,
            "",
            f"| problem | workload | protocol | {heads} | in all | verdict |",
            "|---|---|---|" + "---|" * (len(SPANS) + 2),
            *(cost.row() for cost in found),
            "",
        ]
    )


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="+", default=SPINE, metavar="NAME")
    parser.add_argument("--rounds", type=int, default=3, help="confirmations of each")
    parser.add_argument("--out", type=Path, default=Path("docs/results/verification-cost.md"))
    asked = parser.parse_args()
    found: list[Cost] = []
    for name in asked.problems:
        problem = registry.get(name)
        tiny = next(w for w in problem.workloads if w.kind == "tiny")
        for workload in {w.name: w for w in (tiny, problem.default_workload)}.values():
            found += costs(name, workload, asked.rounds if workload is not tiny else 1)
            asked.out.write_text(page(found), encoding="utf-8")
    for words, holds in limits(found):
        print(f"{words}: {'met' if holds else 'NOT MET'}")
    return 0 if all(holds for _, holds in limits(found)) else 1


if __name__ == "__main__":
    sys.exit(main())
