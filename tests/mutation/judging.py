"""Puts mutants before the referee, one after the other, and keeps what was said of each.

A mutant is looked at as a campaign does: screened, then in full what passes that, unless an
argument says that it is right. All of its answers are judged but those of timed calls: nothing is
timed, so that a busy machine can decide nothing.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP
from kernelwright.sandbox.builders import cpp
from kernelwright.sandbox.builders.model import BuildFailed
from kernelwright.traces.records import Depth, Status, Verdict
from kernelwright.verifier.clock.timed_sides import CandidateSide
from kernelwright.verifier.evaluation import evaluate
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands.cpu import CpuStand, MountedOnCpu
from kernelwright.verifier.stands.leased import Machine
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.stand import Stand
from kernelwright.verifier.stands.verdict_draft import Draft

from .explained import is_right
from .mutants import Mutant
from .originals import Original

REFUSED, SURVIVED = "refused", "survived"
SAME, TWICE, UNBUILT, UNJUDGED = "same machine code", "seen before", "does not build", "no verdict"
WORKLOAD = "tiny"
TARGET = "sm_90"


@dataclass(frozen=True)
class Finding:
    """What became of one mutant."""

    id: str
    problem: str
    language: str
    original: str
    operator: str
    line: int
    before: str
    after: str
    outcome: str
    status: str = ""
    depth: str = ""
    check: str = ""
    """What caught it: the check that failed, or the status where the process ended."""
    where: str = ""
    """The trial that it was caught on."""
    reason: str = ""
    seconds: float = 0.0

    @property
    def kernel(self) -> str:
        """The name of what it was made of."""
        return self.original

    @property
    def is_judged(self) -> bool:
        """Whether the referee said something of it."""
        return self.outcome in (REFUSED, SURVIVED)

    @property
    def counts(self) -> bool:
        """Whether it was refused, or survived and no argument says that it is right."""
        return self.outcome == REFUSED or (self.outcome == SURVIVED and not is_right(self))


def load_findings(file: Path) -> list[Finding]:
    """What a run kept, also one that was killed in the middle of a line."""
    if not file.exists():
        return []
    names = {field.name for field in fields(Finding)}
    found = []
    for line in file.read_text("utf-8").splitlines():
        try:
            row = json.loads(line)
        except json.JSONDecodeError:
            continue
        if set(row) <= names:
            found.append(Finding(**row))
    return found


class _AnswersOnly(MountedOnCpu):
    """A candidate that is tried and not timed."""

    def time(self, side: CandidateSide) -> None:
        """Nothing."""

    def goes_on(self) -> bool:
        """No further process is timed."""
        return False

    def conclude_times(self) -> Any:
        """None were taken."""
        return None


class _UntimedStand(CpuStand):
    """The CPUs, without a clock: what passes is SCREENED, since VERIFIED needs a measurement."""

    is_emulated = True

    def mount(self, draft: Draft, rng: np.random.Generator) -> MountedOnCpu:
        """As ever, but for its times."""
        mounted = super().mount(draft, rng)
        mounted.__class__ = _AnswersOnly
        return mounted


class Bench:
    """Judges mutants of one problem in one language."""

    def __init__(self, problem: str, language: str, folder: Path) -> None:
        workload = registry.workload_for(registry.get(problem), WORKLOAD)
        # Nothing is timed: two that judge at once need not wait for each other.
        self._turns = tempfile.TemporaryDirectory(prefix="kernelwright-mutants-")
        task = Task(
            problem=problem,
            workload=workload,
            cache_dir=str(folder),
            timing_lock=self._turns.name,
            **(
                {"baselines": ("torch eager",)}
                if language == CPP.name
                else {"target": TARGET, "languages": (language,)}
            ),
        )
        self._stand: Stand = open_stand(task, Machine(allowed=()))
        if isinstance(self._stand, CpuStand):
            self._stand.__class__ = _UntimedStand
            self._stand.wait_prepared()
        self._problem = registry.get(problem)
        self._originals: dict[str, str] = {}
        self._seen: set[str] = set()

    def close(self) -> None:
        self._stand.close()
        self._turns.cleanup()

    def judge(self, mutant: Mutant) -> Finding:
        """What becomes of it."""
        started = time.monotonic()
        found = self._describe_build(mutant) or self._ask(mutant)
        told = {
            "id": mutant.id,
            "problem": mutant.problem,
            "language": mutant.original.language.name,
            "original": mutant.original.name,
            "operator": mutant.operator,
            "line": mutant.line,
            "before": mutant.before,
            "after": mutant.after,
        }
        return Finding(**told, **found, seconds=round(time.monotonic() - started, 2))

    def _describe_build(self, mutant: Mutant) -> dict[str, str]:
        """The outcome, where the artefact alone tells it."""
        if mutant.original.language != CPP:
            return {}
        made = self._artefact(mutant.source)
        if not made:
            return {"outcome": UNBUILT}
        if made == self._artefact_of(mutant.original):
            return {"outcome": SAME}
        if made in self._seen:
            return {"outcome": TWICE}
        self._seen.add(made)
        return {}

    def _artefact_of(self, original: Original) -> str:
        if original.source not in self._originals:
            self._originals[original.source] = self._artefact(original.source)
        return self._originals[original.source]

    def _artefact(self, source: str) -> str:
        """Its hash; the build stays in the cache, where the evaluation finds it."""
        prototype = cpp.prototype(self._problem)
        built = cpp.build(self._stand.session.workshop, source, prototype, self._problem.name)
        return "" if isinstance(built, BuildFailed) else built.sha256

    def _ask(self, mutant: Mutant) -> dict[str, str]:
        verdict = self._evaluate(mutant, Depth.SCREEN)
        if verdict.status.is_pass and not is_right(mutant):
            verdict = self._evaluate(mutant, Depth.FULL)
        return describe(verdict)

    def _evaluate(self, mutant: Mutant, depth: Depth) -> Verdict:
        language = mutant.original.language.name
        order = Order(source=mutant.source, language=language, protocol=depth)
        return evaluate(self._stand, order)


def describe(verdict: Verdict) -> dict[str, str]:
    """A verdict in the words of a finding."""
    failed = next((check for check in verdict.checks if not check.passed), None)
    outcome = SURVIVED if verdict.status.is_pass else REFUSED
    if verdict.status in (Status.HARNESS_ERROR, Status.UNSUPPORTED):
        outcome = UNJUDGED
    if verdict.status is Status.BUILD_FAILED:
        outcome = UNBUILT
    check = failed.name if failed else str(verdict.status)
    return {
        "outcome": outcome,
        "status": str(verdict.status),
        "depth": str(verdict.protocol),
        "check": check if outcome == REFUSED else "",
        "where": failed.workload if failed else "",
        "reason": " ".join(verdict.reasons)[:300],
    }


def judge_all(
    queues: dict[tuple[str, str], list[Mutant]], quota: int, folder: Path, until: float
) -> Iterator[Finding]:
    """Of each problem and language a mutant in turn, until so many of each count.

    What a file in the folder already holds is not asked again.

    Args:
        until: when to stop, by time.monotonic().
    """
    cache = folder / "cache"
    cache.mkdir(parents=True, exist_ok=True)
    cache.chmod(0o755)
    benches: dict[tuple[str, str], Bench] = {}
    turns = {key: _Turn(folder, key, queue, quota) for key, queue in queues.items()}
    try:
        while turns and time.monotonic() < until:
            for key in list(turns):
                mutant = turns[key].next_one()
                if mutant is None:
                    del turns[key]
                    if key in benches:
                        benches.pop(key).close()
                    continue
                if key not in benches:
                    benches[key] = Bench(*key, cache)
                finding = benches[key].judge(mutant)
                turns[key].keep(finding)
                yield finding
                if time.monotonic() >= until:
                    break
    finally:
        for bench in benches.values():
            bench.close()


class _Turn:
    """The mutants of one problem and language that are still to be judged."""

    def __init__(self, folder: Path, key: tuple[str, str], queue: list[Mutant], quota: int) -> None:
        self._file = folder / f"{'-'.join(key)}.jsonl"
        known = load_findings(self._file)
        seen = {finding.id for finding in known}
        self._left = quota - sum(finding.counts for finding in known)
        self._queue = (mutant for mutant in queue if mutant.id not in seen)

    def next_one(self) -> Mutant | None:
        return next(self._queue, None) if self._left > 0 else None

    def keep(self, finding: Finding) -> None:
        self._left -= finding.counts
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(asdict(finding)) + "\n")
