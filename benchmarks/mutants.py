"""Makes wrong kernels of right ones and counts those that the referee refuses.

    python benchmarks/mutants.py [--count 1500] [--emulated 60] [--seed 0] [--workers N]
                                 [--seconds S] [--title WORDS] [--out docs/results/mutants.md]
                                 [PROBLEM …]

`--count` C++ mutants over all problems, `--emulated` of CUDA and as many of Triton, beside those
that are right by an argument, the same program or none. What was said of each is kept under
build/mutants, so that a run that was ended goes on where it was. Ends with status 1 where one
survived and nobody knows why.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from pathlib import Path

from mutants_page import head_of, page

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP, CUDA, TRITON, Language
from kernelwright.kernelbench.machine import usable_cpus
from kernelwright.tests.mutation.judging import Finding, judge_all, load_findings
from kernelwright.tests.mutation.mutants import Mutant, make_mutants
from kernelwright.tests.mutation.originals import originals

FOLDER = Path(__file__).resolve().parent.parent / "build" / "mutants"
SPARE = 4
"""Mutants made for each that is to be judged: some do not build, or are the same program."""

Key = tuple[str, str]


def draw(language: Language, problems: list[str], seed: int, most: int) -> dict[Key, list[Mutant]]:
    """The mutants of each problem, in the order in which they are judged."""
    made = make_mutants((o for o in originals(language, seed) if o.problem in problems), seed)
    return {(name, language.name): mutants[:most] for name, mutants in made.items()}


def work(queues: dict[Key, list[Mutant]], quota: int, folder: Path, seconds: float) -> None:
    """Judges the mutants of some problems; in a process of its own."""
    for finding in judge_all(queues, quota, folder, time.monotonic() + seconds):
        words = (finding.problem, finding.language, finding.operator, finding.outcome)
        print(*words, finding.check, f"{finding.seconds:.1f} s", sep=" | ", flush=True)


def judge_beside(queues: dict[Key, list[Mutant]], quota: int, asked: argparse.Namespace) -> None:
    """Deals problems to processes and waits for them."""
    if not queues or quota < 1:
        return
    folder, keys = FOLDER / str(asked.seed), list(queues)
    context = multiprocessing.get_context("spawn")
    workers = []
    for number in range(min(asked.workers, len(keys))):
        share = {key: queues[key] for key in keys[number :: asked.workers]}
        given = (share, quota, folder, asked.until - time.monotonic())
        workers.append(context.Process(target=work, args=given))
        workers[-1].start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit("a process that judged mutants failed; what it found is kept")


def parse() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", help="without: all")
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--emulated", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=len(usable_cpus()))
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--title", default="Mutants of right kernels", help="of the page")
    parser.add_argument("--out", type=Path, default=Path("docs/results/mutants.md"))
    asked = parser.parse_args()
    asked.until = time.monotonic() + asked.seconds
    counts = f"--count {asked.count} --emulated {asked.emulated}"
    asked.command = f"benchmarks/mutants.py {counts} PROBLEM…" if asked.problems else "make mutants"
    asked.problems = asked.problems or registry.names()
    return asked


def main() -> int:
    """Judges what is not judged yet, and writes the page of all."""
    asked = parse()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    planned = {CPP: asked.count, CUDA: asked.emulated, TRITON: asked.emulated}
    for language, count in planned.items():
        quota = -(-count // len(asked.problems))
        queues = draw(language, asked.problems, asked.seed, SPARE * quota)
        judge_beside(queues, quota, asked)
    found: list[Finding] = []
    for file in sorted((FOLDER / str(asked.seed)).glob("*.jsonl")):
        found += [each for each in load_findings(file) if each.problem in asked.problems]
    counts = {str(one): count for one, count in planned.items()}
    head = head_of(asked.title, asked.command, asked.seed)
    text, unexplained = page(head, found, counts)
    asked.out.write_text(text)
    print(text)
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
