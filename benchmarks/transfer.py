"""How much sooner a campaign is as good that begins with what an earlier one found.

    python benchmarks/transfer.py [--cases 5] [--seconds 60] [--out docs/results/transfer.md]

One campaign on a first workload; then two on another one, in a home with the first one's points and
in an empty one. All right candidates of the two are timed head to head by another timer
(head_to_head.py); half of its processes choose, the other half tell. What is compared is after how
many evaluations each had a candidate within 2 % of the best of the one that began without.
"""

from __future__ import annotations

import argparse
import datetime
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from machine import machine
from regret import is_right, time_apart

import kernelwright

CASES = (
    ("spmm_csr", "pubmed-128", "caida-64"),
    ("softmax", "4096x1024", "512x16384"),
    ("gspmm_reduce", "pubmed-max", "pubmed-mean"),
    ("gemm", "512", "1024x256x768"),
    ("spmm_csr", "pubmed-128", "enron-33"),
)
NEAR = 0.02
"""So close to the best counts as it."""


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


def main() -> None:
    """Runs all cases and writes the page after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=len(CASES))
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--out", type=Path, default=Path("docs/results/transfer.md"))
    asked = parser.parse_args()
    found: list[Compared] = []
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
        ]
        asked.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
