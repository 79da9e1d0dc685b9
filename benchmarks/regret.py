"""How much slower a campaign's winner is than the fastest of the campaign's own candidates.

    python benchmarks/regret.py [--problems spmm_csr,softmax,gspmm_reduce,gemm] [--seeds 5]
                                [--seconds 90] [--loaded] [--more] [--out docs/results/regret.md]
    python benchmarks/regret.py --home FOLDER [--seconds 90]

After each campaign every right candidate is built again and timed head to head by a timer that has
nothing of the referee (head_to_head.py), in several processes with fresh placements. With --loaded
a process that comes and goes disturbs the campaign, and not the timer. With --more the campaigns
that the page holds are not run again.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from coverage import load
from fairness import built
from head_to_head import rank
from machine import machine

import kernelwright
from kernelwright.kernelbench import registry
from kernelwright.traces.fold import Entry
from kernelwright.traces.records import Depth, Sureness
from kernelwright.verifier.request import Task
from kernelwright.verifier.stands.opening import open_stand

QUIET, LOADED = "quiet", "loaded"


@dataclass(frozen=True)
class Ended:
    """One campaign, and what the other timer says of it."""

    problem: str
    seed: int
    evaluated: int
    right: int
    winner: int
    best: int
    """Numbers of the winner, and of the candidate that is the fastest by the other timer."""
    regret: float
    """The winner's time over the fastest's, less one."""
    error: float
    """Standard error of its logarithm, from one process of the timer to the next."""
    per_minute: float
    confirming: float
    """Share of the budget that went to confirmations ahead of the race."""
    sureness: Sureness | None


def campaign(problem: str, seed: int, seconds: float, *, loaded: bool) -> Ended:
    """Runs it, then times its right candidates."""
    with tempfile.TemporaryDirectory() as home:
        with load(seed) if loaded else nullcontext():
            done = kernelwright.optimize(
                problem, target="cpu", max_time=seconds, seed=seed, home=home
            )
        return hold_against(done, seed, seconds)


def hold_against(done: kernelwright.Campaign, seed: int, seconds: float) -> Ended:
    """What the other timer says of a campaign on the usual workload."""
    entries, problem = done.history.entries, done.problem
    right = [each for each in done.candidates if is_right(entries[each.id])]
    usual = registry.get(problem).default_workload.name
    with tempfile.TemporaryDirectory() as folder:
        logs = time_apart(problem, usual, [each.source for each in right], folder)
    champion = next(at for at, each in enumerate(right) if each.id == done.history.champion)
    best = int(logs.mean(axis=0).argmin())
    apart = behind(logs, champion)
    history, finished = done.history, done.history.finished
    confirm_s = sum(
        sum(verdict.seconds.values())
        for entry in entries.values()
        for verdict in entry.verdicts
        if verdict.protocol is Depth.CONFIRM
    )
    return Ended(
        problem=problem,
        seed=seed,
        evaluated=history.evaluated,
        right=len(right),
        winner=right[champion].number,
        best=right[best].number,
        regret=float(np.expm1(apart.mean())),
        error=float(apart.std(ddof=1) / np.sqrt(len(apart))),
        per_minute=60.0 * history.evaluated / seconds,
        confirming=confirm_s / seconds,
        sureness=finished.sureness if finished else None,
    )


def behind(logs: np.ndarray, champion: int) -> np.ndarray:
    """ln(the champion's time / the fastest's) in each process of the timer.

    Who is the fastest is said by the other half of the processes: the luckiest of dozens would be
    taken for the fastest by the figures that say so.
    """
    halves = np.arange(len(logs)) % 2
    apart = np.empty(len(logs))
    for half in (0, 1):
        best = int(logs[halves != half].mean(axis=0).argmin())
        here = halves == half
        apart[here] = logs[here, champion] - logs[here, best]
    return apart


def is_right(entry: Entry) -> bool:
    """Whether it was judged, and nothing wrong was found."""
    return bool(entry.verdicts) and all(v.status.is_pass for v in entry.verdicts)


def time_apart(problem_name: str, workload: str, sources: list[str], folder: str) -> np.ndarray:
    """`rank` of sources on a workload, built as candidates are."""
    problem = registry.get(problem_name)
    task = Task(
        problem=problem_name,
        workload=problem.workload(workload),
        cache_dir=f"{folder}/timer",
        baselines=("torch eager",),
    )
    stand = open_stand(task)
    try:
        libraries = [Path(folder) / f"{number}.so" for number in range(len(sources))]
        with ThreadPoolExecutor(len(stand.session.workshop.cpus)) as pool:
            programs = pool.map(lambda source: built(stand.session, source), sources)
            for library, program in zip(libraries, programs, strict=True):
                library.write_bytes(program.built.artefact)
        structure, cpus = stand.session.stage.target, len(stand.session.workshop.cpus)
    finally:
        stand.close()
    return rank(problem, structure, libraries, cpus=cpus)


def line(found: Ended) -> str:
    """A campaign's line of the table."""
    sure = found.sureness
    told = f"{sure.chance:.0%}, {sure.regret_at_most:.1%}" if sure else "–"
    return (
        f"| {found.problem} | {found.seed} | {found.evaluated} | {found.right} | #{found.winner} | "
        f"#{found.best} | {found.regret:.1%} ± {found.error:.1%} | {told} | "
        f"{found.per_minute:.0f} | {found.confirming:.0%} | {datetime.date.today().isoformat()} |"
    )


HEADING = (
    "| problem | seed | evaluated | right | winner | fastest by the other timer | regret | the "
    "campaign's own word: chance, regret at most | candidates a minute | confirmations' share | "
    "day |"
)
WINNER, REGRET = 4, 6
"""Columns of the table."""
Rows = dict[tuple[str, int], str]
"""Lines of the table, by problem and seed."""


def section(name: str, rows: Rows) -> list[str]:
    """The table of one kind of machine, with what it comes to."""
    if not rows:
        return []
    found = [cells(row) for row in rows.values()]
    regrets = np.array([float(each[REGRET].partition("%")[0]) for each in found])
    firsts = sum(each[WINNER] == "#1" for each in found)
    return [
        f"## {name}",
        "",
        f"Median regret **{np.median(regrets):.1f}%**, worst **{regrets.max():.1f}%**, "
        f"{len(found)} campaigns; candidate #1 won {firsts}.",
        "",
        HEADING,
        "|" + "---|" * len(cells(HEADING)),
        *(rows[key] for key in sorted(rows, key=lambda key: (key[1], key[0]))),
        "",
    ]


def cells(row: str) -> list[str]:
    """What stands in a line of a table."""
    return [cell.strip() for cell in row.strip("|").split("|")]


def kept(page: Path, name: str) -> Rows:
    """The campaigns of the section that an earlier run wrote."""
    text = page.read_text() if page.exists() else ""
    lines = text.partition(f"## {name}\n")[2].partition("\n## ")[0].splitlines()
    found = [(cells(line), line) for line in lines if line.startswith("| ")]
    return {(each[0], int(each[1])): line for each, line in found if each[1].isdecimal()}


def main() -> None:
    """Runs all campaigns and writes the page after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", default="spmm_csr,softmax,gspmm_reduce,gemm")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=90.0)
    parser.add_argument("--loaded", action="store_true")
    parser.add_argument("--more", action="store_true", help="keep the campaigns of the page")
    parser.add_argument("--home", type=Path, help="tells its latest campaign, and writes nothing")
    parser.add_argument("--out", type=Path, default=Path("docs/results/regret.md"))
    asked = parser.parse_args()
    if asked.home:
        print(line(hold_against(kernelwright.open_home(asked.home)["@last"], 0, asked.seconds)))
        return
    name = LOADED if asked.loaded else QUIET
    rows = {each: kept(asked.out, each) for each in (QUIET, LOADED)}
    rows[name] = rows[name] if asked.more else {}
    for seed, problem in itertools.product(range(asked.seeds), asked.problems.split(",")):
        if (problem, seed) in rows[name]:
            continue
        found = campaign(problem, seed, asked.seconds, loaded=asked.loaded)
        rows[name][problem, seed] = line(found)
        print(line(found), flush=True)
        asked.out.write_text(page(rows, asked.seconds))


def page(rows: dict[str, Rows], seconds: float) -> str:
    """The whole page."""
    lines = [
        "# How much slower a winner is than the fastest candidate of its campaign",
        "",
        f"Made by `make regret`: {machine()}. Campaigns of `tune` on `cpu`, "
        f"{seconds:.0f} s each; afterwards all right candidates were timed head to "
        "head by another timer (benchmarks/head_to_head.py), in eight processes: half of "
        "them say who is the fastest, and the other half by how much.",
        "",
        *section(QUIET, rows[QUIET]),
        *section(LOADED, rows[LOADED]),
    ]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    main()
