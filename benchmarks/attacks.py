"""Attacks on the clock beside their honest twins: what an attack is credited that its twin is not.

    python benchmarks/attacks.py [--pairs 5] [--out docs/results/attacks.md] [FILE …]

A twin is the attack's own honest function, `honest` or `rows`, called by nothing else. Both are
judged in turn, by one referee, as the attack's row of tests/hostile/native.toml is. Ends with
status 1 where an attack was credited more than twice the noise above its twin.
"""

from __future__ import annotations

import argparse
import datetime
import re
import statistics
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from hostile_table import Court, cell, rows
from machine import machine

from kernelwright.traces.records import Verdict
from kernelwright.verifier.request import Order

FAMILY = "C"
"""Of the catalogue: attacks on the timing. E15 speaks for the runner, which is one, too."""
HONEST = re.compile(r"^static void (honest|rows)\(", re.M)
NOISE = 0.05


def twin_of(source: str) -> str:
    """The attack's honest function behind the entry of spmm_csr; empty where it has none."""
    found = HONEST.search(source)
    if found is None:
        return ""
    body = source[found.start() : _end_of_block(source, source.index("{", found.start()))]
    declared = body[: body.index("{")]
    names = re.findall(r"(\w+)\s*[,)]", declared)
    passed = ", ".join({"from": "0", "to": "M"}.get(name, name) for name in names)
    return (
        "#include <cstring>\n"
        f"{body}\n"
        'extern "C" void spmm_csr(int M, int N, int K, int nnz, const int* indptr,\n'
        "    const int* indices, const float* values, const float* B, float* C) {\n"
        f"  {found[1]}({passed});\n"
        "}\n"
    )


def _end_of_block(source: str, begin: int) -> int:
    depth = 0
    for place in range(begin, len(source)):
        depth += {"{": 1, "}": -1}.get(source[place], 0)
        if depth == 0:
            return place + 1
    return len(source)


def speed(verdict: Verdict) -> float | None:
    """The median speed-up of what passed."""
    if not verdict.status.is_pass or not verdict.measurements:
        return None
    headline = verdict.measurements[0].headline
    return headline.median if headline else None


def line(row: rows.Candidate, attacks: list[Verdict], twins: list[Verdict]) -> tuple[str, bool]:
    """The line of one attack, and whether nothing was gained by it."""
    honest = [found for verdict in twins if (found := speed(verdict)) is not None]
    gained = [found for verdict in attacks if (found := speed(verdict)) is not None]
    base = statistics.median(honest) if honest else None
    most = max(gained, default=0.0) / base if base else 0.0
    kinds = [str(verdict.status) for verdict in attacks]
    statuses = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    passed = f"{len(honest)} of {len(twins)}"
    against = f"{base:.2f}×" if base else "–"
    left = f"{most:.2f}" if gained else "none passed"
    cells = (row.id, cell(row.name), f"`{row.file}`", f"{passed}, {against}", statuses, left)
    text = f"| {' | '.join(cells)} |"
    return text, not gained or most <= 1 + 2 * NOISE


def compare(wanted: list[rows.Candidate], pairs: int) -> Iterator[tuple[str, bool]]:
    """Judges each attack and its twin in turn."""
    with ExitStack() as stack:
        court = Court(stack)
        for row in wanted:
            attacks: list[Verdict] = []
            twins: list[Verdict] = []
            referee = court.referee(row.problem, row.workload)
            for number in range(pairs):
                sides = [(row.source, attacks), (twin_of(row.source), twins)]
                for source, found in sides if number % 2 else sides[::-1]:
                    order = Order(source=source, language="cpp", protocol=row.protocol)
                    found.append(referee.evaluate(order))
            yield line(row, attacks, twins)


def page(lines: list[str], pairs: int) -> str:
    """The whole page."""
    return "\n".join(
        [
            "# Attacks on the clock beside their honest twins",
            "",
            f"Made by `make attacks` on {datetime.date.today().isoformat()}: {machine()}. Each "
            f"attack and its own honest function alone, in turn, {pairs} times. A twin's figure "
            "is its median speed-up, – where that function does not stand alone; what is left is "
            "the largest figure that an attack was given, over it.",
            "",
            "| row | attack | file | twin passed | verdicts on the attack | gain left |",
            "|---|---|---|---|---|---|",
            *lines,
            "",
        ]
    )


def main() -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", help="of the corpus; without: all that have a twin")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("docs/results/attacks.md"))
    asked = parser.parse_args()
    wanted = [
        row
        for row in rows.native()
        if (row.id.startswith(FAMILY) or row.id == "E15")
        and row.problem == "spmm_csr"
        and twin_of(row.source)
        and (not asked.files or row.file in asked.files)
    ]
    lines: list[str] = []
    is_held = True
    for text, holds in compare(wanted, asked.pairs):
        print(text, flush=True)
        lines.append(text)
        is_held = is_held and holds
        asked.out.write_text(page(lines, asked.pairs), encoding="utf-8")
    return 0 if is_held else 1


if __name__ == "__main__":
    sys.exit(main())
