"""How much sooner a campaign is as good that begins with what an earlier one found.

    python benchmarks/transfer.py [--cases 5] [--seconds 60] [--out docs/results/transfer.md]
                                  [--seeds 12] [--spaces FILE FILE …]

One campaign on a first workload; then two on another one, in a home with the first one's points and
in an empty one. All right candidates of the two are timed head to head by another timer
(head_to_head.py); half of its processes choose, the other half tell. What is compared is after how
many evaluations each had a candidate within 2 % of the best of the one that began without. On
recorded spaces of one kernel on several machines it is played how many evaluations a search takes
that knows what one on another machine showed, beside one that knows nothing.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from machine import machine
from regret import is_right, time_apart

import kernelwright
from kernelwright.agents.books.past import LEARNED_FAST, LEARNED_OTHERS
from kernelwright.agents.search.expected_gain import ModelGuided
from kernelwright.agents.search.replay import MOST, play
from kernelwright.agents.search.told import Told
from kernelwright.kernelbench.recorded import RecordedSpace, read_space

CASES = (
    ("spmm_csr", "pubmed-128", "caida-64"),
    ("softmax", "4096x1024", "512x16384"),
    ("gspmm_reduce", "pubmed-max", "pubmed-mean"),
    ("gemm", "512", "1024x256x768"),
    ("spmm_csr", "pubmed-128", "enron-33"),
)
NEAR = 0.02
"""So close to the best counts as it."""
NEAR_BEST = 1.01
"""The same on recorded spaces, where nothing is noisy."""
PAST, BEGIN = 60, 3
"""Evaluations of a search that another one is told of, and of those that it begins with."""
EARLIER = 1000
"""Its seeds are others."""


@dataclass(frozen=True)
class Compared:
    """One case."""

    problem: str
    first: str
    second: str
    without: int | None
    """Evaluations until a candidate was near the best of the campaign that began without."""
    within: int | None
    """The same of the one that began with the first one's points."""
    evaluated: tuple[int, int]
    """Of both in all."""
    gain: float
    """The best of the one that began with them, over the best of the other, less one."""
    error: float

    @property
    def share(self) -> float:
        """Evaluations that it took, of those that the other took; not reached counts as all."""
        within = self.within or self.evaluated[1]
        return within / (self.without or self.evaluated[0])


def compare(problem: str, first: str, second: str, seconds: float) -> Compared:
    """Runs the three campaigns, and times the candidates of the last two."""
    with tempfile.TemporaryDirectory() as folder:
        asked = {"target": "cpu", "max_time": seconds}
        home = f"{folder}/home"
        kernelwright.optimize(problem, workload=first, home=home, seed=1, **asked)
        ends = [
            kernelwright.optimize(problem, workload=second, home=where, seed=2, **asked)
            for where in (f"{folder}/empty", home)
        ]
        right = [
            [c for c in done.candidates if is_right(done.history.entries[c.id])] for done in ends
        ]
        sources = list(dict.fromkeys(c.source for each in right for c in each))
        logs = time_apart(problem, second, sources, folder)
    places = {source: at for at, source in enumerate(sources)}
    columns = [[places[c.source] for c in each] for each in right]
    halves = [logs[half::2] for half in (0, 1)]
    # Who is the best is said by one half of the processes, and how good it is by the other.
    best = [
        np.array(
            [
                halves[1 - h][:, column[int(halves[h][:, column].mean(axis=0).argmin())]].mean()
                for h in (0, 1)
            ]
        )
        for column in columns
    ]
    target = float(best[0].mean()) + np.log1p(NEAR)
    reached = [
        next(
            (
                candidate.number
                for candidate, at in zip(each, column, strict=True)
                if logs[:, at].mean() <= target
            ),
            None,
        )
        for each, column in zip(right, columns, strict=True)
    ]
    apart = best[0] - best[1]
    return Compared(
        problem,
        first,
        second,
        reached[0],
        reached[1],
        (ends[0].history.evaluated, ends[1].history.evaluated),
        float(np.expm1(apart.mean())),
        float(apart.std(ddof=1) / np.sqrt(len(apart))),
    )


def line(found: Compared) -> str:
    """A case's line of the table."""
    told = ["not reached" if at is None else f"{at}" for at in (found.without, found.within)]
    return (
        f"| {found.problem} | {found.first} | {found.second} | {told[0]} of {found.evaluated[0]} | "
        f"{told[1]} of {found.evaluated[1]} | {found.share:.2f} | {found.gain:+.1%} ± "
        f"{found.error:.1%} |"
    )


@dataclass(frozen=True)
class Played:
    """Searches of one machine's recorded space."""

    first: str
    second: str
    alone: float
    """Median number of evaluations until one came within NEAR_BEST of the optimum; a miss counts
    all of a play."""
    within: float
    """The same of searches that knew what one on the first machine's showed."""


def play_all(paths: list[Path], seeds: int) -> list[Played]:
    """Of every two of the machines."""
    spaces = {path.name.split(".")[0]: read_space(path) for path in paths}
    return [
        _play_pair(first, second, spaces, seeds)
        for first, second in itertools.permutations(spaces, 2)
    ]


def _play_pair(first: str, second: str, spaces: dict[str, RecordedSpace], seeds: int) -> Played:
    there, here = spaces[first], spaces[second]
    limit = here.best_us * NEAR_BEST
    counts: tuple[list[int], list[int]] = ([], [])
    for seed in range(seeds):
        known = play(there, ModelGuided(there.space, EARLIER + seed), most=PAST)
        told = _move(known.asked, there, here)
        begin = [each.point for each in told[:BEGIN]]
        alone = ModelGuided(here.space, seed)
        knowing = ModelGuided(here.space, seed, begin, at_random=0, before=[told])
        for found, search in zip(counts, (alone, knowing), strict=True):
            found.append(play(here, search, until_us=limit).count_until(limit) or MOST)
    return Played(first, second, *(float(np.median(each)) for each in counts))


def _move(asked: Sequence[int], there: RecordedSpace, here: RecordedSpace) -> list[Told]:
    """What a campaign hands on (agents/books/past.py), by the numbers that points have here."""
    told = [
        Told(point, math.log(us) if (us := there.times_us[at]) else None)
        for at in asked
        if (point := here.space.find(there.space.at(at))) is not None
    ]
    told.sort(key=lambda each: math.inf if each.value is None else each.value)
    others = told[LEARNED_FAST:]
    return [*told[:LEARNED_FAST], *others[:: max(1, -(-len(others) // LEARNED_OTHERS))]]


def table(played: list[Played], seeds: int) -> list[str]:
    """The part of the page on recorded spaces."""
    shares = [each.within / each.alone for each in played]
    return [
        "",
        "## Recorded spaces",
        "",
        f"Searches of a recorded space by `model`, alone and told what {PAST} evaluations of a "
        f"search on another machine showed, {seeds} seeds each: median number of evaluations until "
        f"one came within {NEAR_BEST - 1:.0%} of the optimum. Geometric mean of the shares: "
        f"{np.exp(np.mean(np.log(shares))):.2f}.",
        "",
        "| first | second | alone | told | share |",
        "|---|---|---|---|---|",
        *(
            f"| {each.first} | {each.second} | {each.alone:.0f} | {each.within:.0f} | {share:.2f} |"
            for each, share in zip(played, shares, strict=True)
        ),
    ]


def main() -> None:
    """Runs all cases and writes the page after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=len(CASES))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("docs/results/transfer.md"))
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--spaces", type=Path, nargs="*", default=[])
    asked = parser.parse_args()
    found: list[Compared] = []
    recorded = table(play_all(asked.spaces, asked.seeds), asked.seeds) if asked.spaces else []
    print(*recorded, sep="\n", flush=True)
    for case in CASES[: asked.cases]:
        found.append(compare(*case, asked.seconds))
        print(line(found[-1]), flush=True)
        halved = sum(each.share <= 0.5 for each in found)
        lines = [
            "# What earlier campaigns are worth to a new one",
            "",
            f"Made by `make transfer`, {datetime.date.today().isoformat()}: {machine()}. Campaigns "
            f"of `tune` on `cpu`, {asked.seconds:.0f} s each. A second workload is searched in an "
            "empty home, and in one where a first workload was searched before; by another timer, "
            f"after how many evaluations each had a candidate within {NEAR:.0%} of the best that "
            "the empty home's found. At most half as many evaluations in "
            f"**{halved} of {len(found)}** cases.",
            "",
            "| problem | first | second | without | with | share | the best with, beside the best "
            "without |",
            "|---|---|---|---|---|---|---|",
            *map(line, found),
            *recorded,
        ]
        asked.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
