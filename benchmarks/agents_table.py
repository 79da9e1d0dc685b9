"""Writes the table of docs/results/agents.md from the recorded campaigns of the test suite.

    python benchmarks/agents_table.py

What stands in the page outside of the two marks is left as it is.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from kernelwright.tests.agents.recorded.file import read
from kernelwright.traces.events import Event, ModelReplied, ModelRequested
from kernelwright.traces.fold import Entry
from kernelwright.traces.history import History, derive
from kernelwright.traces.store import Store

ROOT = Path(__file__).resolve().parent.parent
CAMPAIGNS = ROOT / "tests" / "agents" / "recorded" / "campaigns"
PAGE = ROOT / "docs" / "results" / "agents.md"
BEGIN, END = "<!-- begin: benchmarks/agents_table.py -->", "<!-- end -->"
HEAD = (
    "campaign",
    "problem",
    "target",
    "workflow",
    "calls (Coder + Judge)",
    "tokens",
    "candidates: µs",
    "result",
)


def table() -> str:
    """The table in Markdown, a line for each campaign."""
    lines = [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD)]
    with tempfile.TemporaryDirectory() as home, Store.open(Path(home)) as store:
        for path in sorted(CAMPAIGNS.glob("*.json")):
            events = store.events(read(path, store))
            lines.append(f"| {' | '.join((path.stem, *_cells(events)))} |")
    return "\n".join(lines)


def page(text: str) -> str:
    """The page with the table in its place."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


def _cells(events: list[Event]) -> tuple[str, ...]:
    history = derive(events)
    started = history.started
    asked = {p.call: p for e in events if isinstance(p := e.payload, ModelRequested)}
    replied = [p for e in events if isinstance(p := e.payload, ModelReplied)]
    judge = sum(asked[p.call].model == started.judge_model for p in replied)
    return (
        f"{started.problem} {started.workload}",
        f"{started.target}, {started.language}",
        started.workflow,
        f"{len(replied) - judge} + {judge}",
        f"{sum(p.tokens for p in replied):,}",
        " → ".join(_outcome(entry) for entry in history.entries.values()),
        _result(history),
    )


def _outcome(entry: Entry) -> str:
    verdict = entry.verdict
    if verdict is None:
        return "not evaluated"
    if verdict.modelled_us is not None:
        return f"{verdict.modelled_us:.1f} modelled"
    if verdict.measurement is not None and verdict.status.is_pass:
        return f"{verdict.measurement.candidate.median_us:.0f}"
    return str(verdict.status)


def _result(history: History) -> str:
    best = history.best
    if best is None or best.verdict is None or best.verdict.measurement is None:
        return "SCREENED (emulated), no speed-up claimed" if history.leader else "none"
    measured = best.verdict.measurement
    gain = measured.speedup[measured.best_baseline]
    return (
        f"{best.verdict.status}: {gain.median:.2f} [{gain.low:.2f}, {gain.high:.2f}] against "
        f"{measured.best_baseline}"
    )


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
