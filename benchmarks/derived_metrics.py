"""Counters that `metrics derive` chooses from a device's record, beside CudaForge's and all.

    python benchmarks/derived_metrics.py [RECORD.jsonl] [--out docs/results/metrics-derived.md]

No GPU is needed: kernels and Nsight Compute's counters stand in the record that
`benchmarks/model.py record --counters full` made. What a choice is worth is told without a model
of language: the logarithm of the time is regressed on the counters of all problems but one (ridge),
and the order of that one's kernels is foretold.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from machine import machine
from scipy.stats import spearmanr

from kernelwright.kernelbench import registry
from kernelwright.verifier.profile.derive import CLOCKS, Derived, MeasuredSample, derive
from kernelwright.verifier.profile.metrics import load_packaged

RECORD = Path(__file__).parent / "records" / "h200-2026-11-27.jsonl"
TARGET = "sm_90"
RIDGE = 1.0
"""Of standardised logarithms: with more counters than kernels nothing else is determined."""
TIME = "gpu__time_duration.sum"


def read_samples(path: Path) -> list[MeasuredSample]:
    """The kernels that were timed and counted, each once; counters of several launches added up
    where they are sums, else of the longest."""
    found: dict[str, MeasuredSample] = {}
    for text in path.read_text("utf-8").splitlines():
        one = json.loads(text)
        if not one.get("us") or not one.get("launches"):
            continue
        figures = max(one["launches"], key=lambda each: each["figures"].get(TIME, 0.0))
        tags = tuple(registry.get(one["problem"]).tags)
        found[one["candidate"]] = MeasuredSample(
            one["problem"], one["target"], tags, one["us"], figures["figures"]
        )
    return list(found.values())


def foretell(samples: Sequence[MeasuredSample], names: Sequence[str]) -> dict[str, float]:
    """Spearman's correlation of foretold and measured times, by the problem that was left out."""
    usable = [name for name in names if all(name in one.metrics for one in samples)]
    tasks = sorted({one.task for one in samples})
    found = {}
    for task in tasks:
        inside = [one for one in samples if one.task != task]
        outside = [one for one in samples if one.task == task]
        if len(outside) < 3 or not usable:
            continue
        x, y = _features(inside, usable), np.log([one.time_us for one in inside])
        mean, spread = x.mean(0), x.std(0)
        spread[spread == 0] = 1.0
        z = (x - mean) / spread
        weights = np.linalg.solve(z.T @ z + RIDGE * np.eye(len(usable)), z.T @ (y - y.mean()))
        said = (_features(outside, usable) - mean) / spread @ weights
        took = [one.time_us for one in outside]
        found[task] = float(spearmanr(said, took).statistic) if said.std() > 0 else 0.0
    return found


def _features(samples: Sequence[MeasuredSample], names: Sequence[str]) -> np.ndarray:
    return np.log1p(np.abs([[one.metrics[name] for name in names] for one in samples]))


def row(name: str, count: int, by_task: Mapping[str, float], tasks: Sequence[str]) -> str:
    """A line of the table."""
    cells = [f"{by_task[task]:+.2f}" if task in by_task else "" for task in tasks]
    mean = float(np.mean(list(by_task.values()))) if by_task else 0.0
    return f"| {name} | {count} | {' | '.join(cells)} | {mean:+.2f} |"


def page(result: Derived, rows: list[str], tasks: Sequence[str], samples: int, shared: int) -> str:
    """The whole page."""
    kept = [
        f"| `{one.name}` | {one.strength:.2f} | "
        + ", ".join(f"{task} {r:+.2f}" for task, r in one.r.items())
        + " |"
        for one in result.ranked
        if one.name in result.kept
    ]
    left_out = "; ".join(f"{task}: {why}" for task, why in result.left_out.items()) or "none"
    return "\n".join(
        [
            "# Counters chosen from a record",
            "",
            f"Made by `python benchmarks/derived_metrics.py` on {datetime.date.today().isoformat()}"
            f": {machine()}. {samples} kernels of our recipes, timed and counted on an NVIDIA H200 "
            "(`benchmarks/records`), by the method of `kernelwright metrics derive`. Problems that "
            f"say nothing: {left_out}.",
            "",
            f"Kept are {len(kept)} counters, {shared} of them among CudaForge's 24:",
            "",
            "| counter | mean of r | r with the logarithm of the time, by problem |",
            "|---|---|---|",
            *kept,
            "",
            "What a choice foretells: clocks (durations, cycles) are in none of them. The time is "
            "regressed on the counters of all other problems (ridge, logarithms), and Spearman's "
            "correlation told for the kernels of the one that was left out. The derived choice is "
            "made anew without it each time.",
            "",
            f"| choice | counters | {' | '.join(tasks)} | mean |",
            f"|---|---|{'---|' * len(tasks)}---|",
            *rows,
            "",
            "CudaForge reports that 24 chosen counters beat all of them as a Judge's food (1.767 "
            "against 1.414). That is a claim about a model of language that reads them; no such "
            "model was asked here, and a few kernels of four problems decide nothing about it. "
            "What a campaign's Judge is fed can be compared by running it twice, with `--counters "
            "cudaforge` and `--counters full`.",
            "",
        ]
    )


def derived_without(samples: Sequence[MeasuredSample]) -> dict[str, float]:
    """Foretold with the counters that the other problems choose."""
    found = {}
    for task in sorted({one.task for one in samples}):
        chosen = derive([one for one in samples if one.task != task]).kept
        found |= {t: r for t, r in foretell(samples, chosen).items() if t == task}
    return found


def main() -> int:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("record", nargs="?", type=Path, default=RECORD)
    parser.add_argument("--out", type=Path, default=Path("docs/results/metrics-derived.md"))
    asked = parser.parse_args()
    samples = read_samples(asked.record)
    result = derive(samples)
    every = sorted({n for one in samples for n in one.metrics if not CLOCKS.search(n)})
    catalogue = load_packaged()
    forge = catalogue.names(TARGET, "cudaforge")
    named = {"all": every, "CudaForge's": [n for n in forge if not CLOCKS.search(n)]}
    told = {name: foretell(samples, names) for name, names in named.items()}
    tasks = sorted(told["all"])
    rows = [row(name, len(named[name]), told[name], tasks) for name in named]
    rows.append(row("derived", len(result.kept), derived_without(samples), tasks))
    shared = len(set(result.kept) & set(forge))
    asked.out.write_text(page(result, rows, tasks, len(samples), shared), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
