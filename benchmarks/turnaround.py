"""Source to screened verdict on the tiny workload, and candidates per minute in a campaign.

    python benchmarks/turnaround.py [--candidates 24] [--campaign-seconds 60]

The floor is one run of the compiler: `build` is nearly all of it. Every source is new to the cache.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.traces.records import Depth
from kernelwright.verifier.process.client import open_referee
from kernelwright.verifier.request import Order, Task

PROBLEM = "spmm_csr"


def screened(count: int, cache: str) -> None:
    """Prints the medians of `count` screenings, split into their parts."""
    problem = registry.get(PROBLEM)
    workload = next(w for w in problem.workloads if w.kind == "tiny")
    with open_referee(Task(problem=PROBLEM, workload=workload, cache_dir=cache)) as referee:
        sources = [
            recipe.render(knobs)
            for recipe in recipes_for(PROBLEM)
            for knobs in [*recipe.space(referee.facts)][
                :: max(1, recipe.size(referee.facts) // count)
            ]
        ][: count + 1]
        parts: dict[str, list[float]] = {}
        for number, source in enumerate(sources):
            order = Order(source=source, language="cpp", protocol=Depth.SCREEN)
            start = time.monotonic()
            verdict = referee.evaluate(order)
            total = time.monotonic() - start
            if number == 0:
                continue  # waits for torch to be imported
            if not verdict.status.is_pass:
                print(f"{verdict.status}: {verdict.reasons}", file=sys.stderr)
            for name, seconds in {**verdict.seconds, "total": total}.items():
                parts.setdefault(name, []).append(seconds)
    print(f"source to screened verdict, {PROBLEM} {workload.name}, {count} candidates, median:")
    for name, values in parts.items():
        print(f"  {name:20s} {statistics.median(values):7.3f} s")


def campaign(workload: str, seconds: int) -> None:
    """Prints the candidates per minute of a campaign, and how its time was used."""
    with tempfile.TemporaryDirectory() as home:
        command = [
            sys.executable,
            "-m",
            "kernelwright",
            "run",
            PROBLEM,
            "--home",
            home,
            "--target",
            "cpu",
            "--workload",
            workload,
            "--max-time",
            f"{seconds}s",
            "--json",
        ]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    result = json.loads(done.stdout)
    pace = result["pace"]
    print(
        f"campaign on {workload}: {result['evaluated']} candidates in {result['wall_s']:.0f} s, "
        f"{pace['candidates_per_minute']:.0f} per minute, without the race "
        f"{pace['candidates_per_minute_of_search']:.0f}; an evaluation ran in "
        f"{pace['judged_share']:.0%} of the time, something was timed in {pace['timed_share']:.0%}"
    )


def main() -> None:
    """Runs both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=24)
    parser.add_argument("--campaign-seconds", type=int, default=60)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        screened(asked.candidates, str(Path(cache)))
    for workload in ("tiny", registry.get(PROBLEM).default_workload.name):
        campaign(workload, asked.campaign_seconds)


if __name__ == "__main__":
    main()
