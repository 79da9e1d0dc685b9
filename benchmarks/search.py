"""Searches of knobs on recorded spaces, side by side: evaluations until one comes close.

    python benchmarks/search.py [--seeds 100] [--within 1] [--peers a,b] [--out PAGE] FILE …

A play counts the distinct points that it evaluated until one took at most so many percent more than
the optimum; one that did not in 400 counts 400. Kernel Tuner's strategies play behind the same
interface, where it is installed (pip install 'kernelwright[tuner]'), with the settings they come
with.
"""

from __future__ import annotations

import argparse
import datetime
import os
import statistics
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from machine import machine

from kernelwright import extras
from kernelwright.agents.search.replay import MOST, play
from kernelwright.agents.search.strategy import make_strategy
from kernelwright.kernelbench.recorded import RecordedSpace, read_space

UNMODELLED = "model, without the machine's"
"""Our search where nothing tells it what a machine would take for a point."""
TOLD_AFTER = (20, 40, 60, 80)
OURS = ("model", UNMODELLED, "genetic", "random")
PEERS = (
    "adaptive_tabu_greywolf",
    "hybrid_vndx",
    "genetic_algorithm",
    "diff_evo",
    "pso",
    "simulated_annealing",
    "greedy_ils",
    "mls",
    "random_sample",
)


@cache
def read(path: str) -> RecordedSpace:
    return read_space(Path(path))


def evaluations(path: str, strategy: str, seed: int, within: float) -> int:
    """Of one play."""
    recorded = read(path)
    limit, space = recorded.best_us * (1 + within / 100), recorded.space
    if strategy == UNMODELLED:
        strategy, space = "model", replace(space, modelled=None)
    played = play(recorded, make_strategy(strategy, space, seed), until_us=limit)
    return played.count_until(limit) or MOST


def table(paths: list[str], strategies: list[str], seeds: int, within: float) -> dict[str, list]:
    """By strategy: for each space the counts of all seeds."""
    found: dict[str, list[list[int]]] = {}
    # Of processes of their own, which read how many threads a product may take as they start.
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"))
    spawned = get_context("spawn")
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), spawned) as pool:
        for strategy in strategies:
            plays = [
                [pool.submit(evaluations, path, strategy, seed, within) for seed in range(seeds)]
                for path in paths
            ]
            found[strategy] = [[each.result() for each in row] for row in plays]
            print(strategy, [statistics.median(row) for row in found[strategy]], flush=True)
    return found


def tell_behind(path: str, seeds: int) -> str:
    """How far the best that `model` has tried lies behind the optimum as it goes on."""
    recorded = read(path)
    plays = [
        play(recorded, make_strategy("model", recorded.space, seed), most=max(TOLD_AFTER))
        for seed in range(seeds)
    ]
    told = []
    for count in TOLD_AFTER:
        ratios = [each.best_us[:count][-1] / recorded.best_us for each in plays]
        told.append(f"{statistics.mean(ratios) - 1:.2%} ({max(ratios) - 1:.1%}) after {count}")
    return (
        f"{recorded.name}: how far the best that `model` tried is behind the optimum, in the mean "
        f"of {seeds} seeds (at most): {', '.join(told)}."
    )


def tell_modelled(recorded: RecordedSpace) -> str:
    """How far the model of the machine leads by itself."""
    order = np.argsort(recorded.space.modelled, kind="stable")
    times = np.array([np.inf if us is None else us for us in recorded.times_us])
    shares = [
        f"{times[order[: max(1, len(order) // share)]].min() / recorded.best_us - 1:.1%} among "
        f"1/{share}"
        for share in (100, 40, 20)
    ]
    return (
        f"{recorded.name}: by how much the fastest of the points that are modelled as fastest is "
        f"slower than the optimum: {', '.join(shares)} of the space."
    )


def mean_of(counts: list[list[int]]) -> float:
    return statistics.geometric_mean(statistics.median(row) for row in counts)


def page(paths: list[str], found: dict[str, list], seeds: int, within: float) -> str:
    """The results, as Markdown."""
    spaces = [read(path) for path in paths]
    names = [f"{s.name} {s.device.replace('NVIDIA ', '')}" for s in spaces]
    peers = [name for name in found if name.startswith("kernel_tuner:")]
    made = "make search" if peers else "make search-cpu"
    versions = f", kernel_tuner {version('kernel_tuner')}" if peers else ""
    lines = [
        "# Searches on recorded spaces",
        "",
        f"`{made}`, {datetime.date.today()}, {machine()}{versions}.",
        "",
        f"Distinct evaluations until a point within {within:g} % of the optimum was found, in the "
        f"median over {seeds} seeds;",
        f"a play without one in {MOST} counts {MOST}. In brackets: quartiles; how many had none.",
        "",
        f"| strategy | {' | '.join(names)} | geometric mean |",
        "|---|" + "---|" * (len(names) + 1),
    ]
    for name, counts in sorted(found.items(), key=lambda item: mean_of(item[1])):
        cells = [
            "{:.0f} ({:.0f}–{:.0f}; {})".format(
                statistics.median(row),
                *statistics.quantiles(row, n=4)[::2],
                sum(count >= MOST for count in row),
            )
            for row in counts
        ]
        lines.append(f"| `{name}` | {' | '.join(cells)} | {mean_of(counts):.0f} |")
    lines.append("")
    if peers:
        best = min(peers, key=lambda name: mean_of(found[name]))
        share = mean_of(found["model"]) / mean_of(found[best])
        by_space = [
            statistics.median(found["model"][at])
            / min(statistics.median(found[name][at]) for name in peers)
            for at in range(len(paths))
        ]
        lines.append(
            f"`model` against `{best}`, the best of Kernel Tuner's here: {share:.2f}; against the "
            f"best of them on each space: {', '.join(f'{each:.2f}' for each in by_space)}."
        )
    early = [
        f"{sum(count <= len(space.space) // 10 for count in row)} of {seeds}"
        for space, row in zip(spaces, found["model"], strict=True)
    ]
    lines += ["", f"`model` was there after a tenth of the space: {', '.join(early)}."]
    for path, space in zip(paths, spaces, strict=True):
        if space.space.modelled is not None:
            lines += ["", tell_modelled(space), "", tell_behind(path, seeds)]
    points = ", ".join(f"{len(space.space):,}" for space in spaces)
    lines += ["", f"Points of the spaces: {points}. Ratios below 1 are fewer evaluations.", ""]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--within", type=float, default=1.0)
    parser.add_argument("--peers", default=",".join(PEERS), help="of Kernel Tuner's strategies")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    is_modelled = any(read(path).space.modelled is not None for path in asked.files)
    strategies = [name for name in OURS if is_modelled or name != UNMODELLED]
    if extras.list_missing("tuner"):
        print("without Kernel Tuner: pip install 'kernelwright[tuner]'", flush=True)
    else:
        strategies += [f"kernel_tuner:{name}" for name in asked.peers.split(",") if name]
    found = table(asked.files, strategies, asked.seeds, asked.within)
    content = page(asked.files, found, asked.seeds, asked.within)
    print(content)
    if asked.out:
        asked.out.write_text(content, "utf-8")


if __name__ == "__main__":
    main()
