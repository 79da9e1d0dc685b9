"""Where the time of a verdict goes, for a small candidate under each protocol.

    python benchmarks/verification_cost.py [--problem spmm_csr] [--record]

A promotion may cost at most ten seconds more than a screening, besides the timing, whose length is
chosen. Every candidate is new to the build cache. Exits with 1 where a limit is not met.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.traces.records import Depth, Verdict
from kernelwright.verifier.process.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Order, Task

LIMIT_S = 10.0
SANITIZE_S = 4.0
SPANS = ("build", "start", "verify", "sanitize", "fences", "load", "wait for baselines", "time")


def judged(referee: RefereeProcess, source: str, protocol: Depth) -> tuple[Verdict, float]:
    """The verdict and the seconds it took in all."""
    start = time.monotonic()
    verdict = referee.evaluate(Order(source=source, language="cpp", protocol=protocol))
    return verdict, time.monotonic() - start


def row(name: str, verdict: Verdict, total: float) -> str:
    """One line of the table."""
    cells = [f"{verdict.seconds.get(span, 0.0):>9.2f}" for span in SPANS]
    return f"{name:9}{''.join(cells)}{total:>9.2f}  {verdict.status}"


def checking(verdict: Verdict, total: float) -> float:
    """The seconds that were not spent on timing or on waiting for the baselines to start."""
    return total - verdict.seconds.get("time", 0.0) - verdict.seconds.get("wait for baselines", 0.0)


def costs(problem_name: str, *, with_record: bool) -> bool:
    """Prints a line per protocol; whether the limits are met."""
    problem = registry.get(problem_name)
    workload = next(w for w in problem.workloads if w.kind == "tiny")
    protocols = [p for p in Depth if with_record or p is not Depth.RECORD]
    recipe = recipes_for(problem_name)[0]
    source = recipe.render(recipe.first_knobs())
    spent: dict[Depth, float] = {}
    print(f"{problem_name} {workload.name}, recipe {recipe.family}; seconds")
    print(f"{'protocol':9}" + "".join(f"{span[:8]:>9}" for span in SPANS) + f"{'total':>9}")
    with tempfile.TemporaryDirectory() as cache:
        task = Task(problem=problem_name, workload=workload, cache_dir=cache)
        with open_referee(task) as referee:
            # The first of each starts the baselines, builds the runners and plants an error.
            for protocol in (Depth.SCREEN, Depth.FULL):
                judged(referee, f"{source}// warm up {protocol}\n", protocol)
            slowest = 0.0
            for protocol in protocols:
                verdict, total = judged(referee, f"{source}// {protocol}\n", protocol)
                print(row(protocol, verdict, total))
                for missing in verdict.unchecked:
                    print(f"          not checked: {missing}")
                spent[protocol] = checking(verdict, total)
                slowest = max(slowest, verdict.seconds.get("sanitize", 0.0))
    over = max(spent[Depth.FULL], spent[Depth.CONFIRM]) - spent[Depth.SCREEN]
    print(f"promotion over screening, without timing: {over:.2f} s (at most {LIMIT_S:g} s)")
    print(f"sanitizers: {slowest:.2f} s (at most {SANITIZE_S:g} s)")
    return over <= LIMIT_S and slowest <= SANITIZE_S


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problem", default="spmm_csr", choices=registry.names())
    parser.add_argument("--record", action="store_true", help="the protocol with 300 trials, too")
    asked = parser.parse_args()
    return 0 if costs(asked.problem, with_record=asked.record) else 1


if __name__ == "__main__":
    sys.exit(main())
