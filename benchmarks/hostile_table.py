"""Judges every hostile candidate on this machine; writes the table docs/results/hostile.md.

python benchmarks/hostile_table.py [--out docs/results/hostile.md] [ID …]

Ends with status 1 where one of them got a status that its row does not allow.
"""

from __future__ import annotations

import argparse
import datetime
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from kernelwright.kernelbench import registry
from kernelwright.traces.records import Status, Verdict
from kernelwright.verifier.process.client import RefereeProcess, open_referee
from kernelwright.verifier.request import Order, Task

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "hostile"
sys.path.insert(0, str(CORPUS))
import rows  # noqa: E402
from machine import machine  # noqa: E402

RETRIED = (Status.SUSPECT, Status.TIMED_OUT)
"""A machine that is busy with something else can cause these; a second look tells."""


class Court:
    """Opens a referee for each problem and workload that is asked for."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._cache = stack.enter_context(tempfile.TemporaryDirectory())
        os.chmod(self._cache, 0o755)
        self._open: dict[tuple[str, str], RefereeProcess] = {}
        self.mechanism = ""

    def judge(self, row: rows.Candidate) -> Verdict:
        """The verdict on a row's candidate, asked twice where the machine may have spoken."""
        referee = self.referee(row.problem, row.workload)
        order = Order(source=row.source, language="cpp", protocol=row.protocol)
        verdict = referee.evaluate(order)
        if verdict.status in RETRIED and verdict.status not in row.statuses:
            verdict = referee.evaluate(order)
        return verdict

    def referee(self, problem: str, workload: str) -> RefereeProcess:
        """An open one of this workload."""
        if (problem, workload) not in self._open:
            task = Task(
                problem=problem,
                workload=registry.workload_for(registry.get(problem), workload),
                cache_dir=self._cache,
                baselines=("torch eager",),
            )
            referee = self._stack.enter_context(open_referee(task))
            self._open[problem, workload] = referee
            self.mechanism = referee.isolation.mechanism
        return self._open[problem, workload]


def is_as_expected(row: rows.Candidate, verdict: Verdict) -> bool:
    """Whether status and reason are those of the row."""
    reasons = " ".join(verdict.reasons)
    return verdict.status in row.statuses and any(words in reasons for words in row.check)


def cell(text: str) -> str:
    """Text that cannot break a table, its head only."""
    text = " ".join(text.replace("|", "\\|").replace("`", "'").split())
    return text if len(text) <= 110 else text[:109] + "…"


def table(found: list[tuple[rows.Candidate, Verdict]]) -> Iterator[str]:
    """The candidates' table."""
    yield "| row | cheat or failure | file | status | as it must be | what was seen |"
    yield "|---|---|---|---|---|---|"
    for row, verdict in found:
        mark = "yes" if is_as_expected(row, verdict) else "**no**"
        yield (
            f"| {row.id} | {cell(row.name)} | `{row.file}` | {verdict.status} | {mark} | "
            f"{cell(' '.join(verdict.reasons))} |"
        )


def others() -> Iterator[str]:
    """Rows that are shown by a test, and rows that wait for a GPU."""
    yield "| row | cheat or failure | why there is no candidate | shown by |"
    yield "|---|---|---|---|"
    for name, module in (("impossible", "test_impossible"), ("problems", "test_problem_rows")):
        for row in rows.shown(name):
            yield f"| {row.id} | {cell(row.name)} | {row.why} | `{module}.{row.test}` |"
    for device in rows.device():
        yield (
            f"| {device.id} | {cell(device.name)} | needs a GPU: {device.why} | "
            f"`tests/gpu/test_hostile_gpu.py` with `gpu/{device.file}` |"
        )


def main() -> int:
    """Judges the candidates one after the other and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("ids", nargs="*", help="rows of the catalogue; without: all")
    parser.add_argument("--out", type=Path, default=Path("docs/results/hostile.md"))
    asked = parser.parse_args()
    wanted = [row for row in rows.native() if not asked.ids or row.id in asked.ids]
    found: list[tuple[rows.Candidate, Verdict]] = []
    with ExitStack() as stack:
        court = Court(stack)
        for row in wanted:
            found.append((row, court.judge(row)))
            print(f"{row.id:4} {row.file:36} {found[-1][1].status}", file=sys.stderr)
        mechanism = court.mechanism
    right = sum(is_as_expected(row, verdict) for row, verdict in found)
    passed = sum(verdict.status.is_pass for _, verdict in found)
    lines = [
        "# Hostile candidates",
        "",
        f"Made by `make hostile` on {datetime.date.today().isoformat()}. {len(found)} candidates "
        f"were judged: {passed} passed, {right} got the status and the reason that their row "
        "in `tests/hostile/native.toml` asks for.",
        "",
        f"Machine: {machine()}, sandbox {mechanism}.",
        "",
        *table(found),
        "",
        "## Rows without a native candidate",
        "",
        *others(),
    ]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text("\n".join(lines) + "\n")
    return 0 if right == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
