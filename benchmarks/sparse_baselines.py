"""Our best SpMM recipe against torch, scipy and MKL prepared, matrix by matrix.

    python benchmarks/sparse_baselines.py [--tried 12] [--seed 0] [--out docs/results/...]

Recipes with drawn knobs are screened, and the best of them is judged in full. A prepared baseline
has its matrix ready before the timed call. Without the extra `mkl` its column stays empty.
"""

from __future__ import annotations

import argparse
import datetime
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from machine import machine

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Workload
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.traces.records import Depth, Measurement, Verdict
from kernelwright.verifier.process.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Order, Task

PROBLEM = "spmm_csr"
ASKED = (
    ("pubmed-128", 1),
    ("pubmed-128", 8),
    ("pubmed-128", 32),
    ("pubmed-128", 128),
    ("enron-33", 33),
    ("caida-64", 64),
    ("hub-33", 33),
)
"""Workload, and columns of the dense factor."""
AGAINST = ("torch eager", "scipy", "MKL prepared")


def draw_sources(facts: dict[str, float], tried: int, rng: random.Random) -> Iterator[str]:
    """Sources of all families, the default knobs of each first."""
    families = recipes_for(PROBLEM)
    spaces = [list(recipe.space(facts)) for recipe in families]
    for number in range(tried):
        recipe, space = families[number % len(families)], spaces[number % len(families)]
        is_first = number < len(families)
        yield recipe.render(recipe.first_knobs() if is_first else rng.choice(space))


def judge(referee: RefereeProcess, source: str, protocol: Depth) -> Verdict:
    """One evaluation."""
    return referee.evaluate(Order(source=source, language="cpp", protocol=protocol))


def best_of(workload: Workload, tried: int, seed: int, cache: str) -> Measurement:
    """The full measurement of the best that was screened."""
    with open_referee(Task(problem=PROBLEM, workload=workload, cache_dir=cache)) as referee:
        referee.prepare()
        times: dict[str, float] = {}
        for source in draw_sources(referee.facts, tried, random.Random(seed)):
            found = judge(referee, source, Depth.SCREEN).measurement
            if found and found.headline:
                times[source] = -found.headline.median
        verdict = judge(referee, min(times, key=lambda source: times[source]), Depth.FULL)
        if verdict.measurement is None:
            raise SystemExit(f"{workload.name}: {verdict.status}: {'; '.join(verdict.reasons)}")
        return verdict.measurement


def line(workload: Workload, found: Measurement) -> str:
    """The row of one workload."""
    cells = [f"{found.candidate.median_us:,.0f}"]
    for name in AGAINST:
        timing, gain = found.baselines.get(name), found.speedup.get(name)
        told = ""
        if timing and gain:
            interval = f"{gain.median:.2f} [{gain.low:.2f}, {gain.high:.2f}]"
            told = f"{timing.median_us:,.0f}, {interval}"
        cells.append(told)
    return f"| {workload.name}, N = {workload.axes['N']} | " + " | ".join(cells) + " |"


def page(lines: list[str], tried: int) -> str:
    """The whole page."""
    heads = " | ".join(f"{name}: µs, speed-up" for name in AGAINST)
    return "\n".join(
        [
            "# Sparse products against what a specialist would pick",
            "",
            f"Made by `make sparse-baselines` on {datetime.date.today().isoformat()}: {machine()}. "
            f"{PROBLEM}, float32; the best of {tried} recipes with drawn knobs, judged in full. "
            "Below 1 the library is faster. `MKL prepared` is its inspector–executor with the "
            "handle made outside of the timed call (`pip install 'kernelwright[mkl]'`).",
            "",
            f"| workload | ours, µs | {heads} |",
            "|---|---" + "|---" * len(AGAINST) + "|",
            *lines,
            "",
        ]
    )


def main() -> None:
    """Judges every workload; writes the page after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tried", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("docs/results/sparse-baselines.md"))
    asked = parser.parse_args()
    problem, lines = registry.get(PROBLEM), []
    with tempfile.TemporaryDirectory() as cache:
        for name, columns in ASKED:
            workload = registry.workload_for(problem, name, N=columns)
            lines.append(line(workload, best_of(workload, asked.tried, asked.seed, cache)))
            print(lines[-1], flush=True)
            asked.out.write_text(page(lines, asked.tried))


if __name__ == "__main__":
    main()
