# SPDX-License-Identifier: Apache-2.0
"""Whether two programs gain by an exported SpMM, and whether `ab` says so.

python benchmarks/ab.py GRAPH.mtx.gz [--seconds 90] [--pairs 12] [--out docs/results/ab.md]
A campaign on the graph ends in a package; `kernelwright ab` then runs two programs with it and
without it: a network on that graph, and one in which the product hardly matters.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from machine import machine

PROGRAM = Path(__file__).parent / "programs" / "gnn.py"
READ = "([0-9.]+) ms an inference"
COMMAND = (sys.executable, "-m", "kernelwright")


def run(*words: str, home: Path) -> str:
    """What a command printed; it is a mistake here if it could not be carried out."""
    done = subprocess.run(
        [*COMMAND, *words], capture_output=True, text=True, env=environment(home), check=False
    )
    if done.returncode not in (0, 1):
        raise SystemExit(done.stderr)
    return done.stdout


def environment(home: Path) -> dict[str, str]:
    """Ours, with a home of its own."""
    return {**os.environ, "KERNELWRIGHT_HOME": str(home)}


def compare(package: Path, home: Path, pairs: int, *words: str, read: str | None) -> dict[str, Any]:
    """The document of one `ab`."""
    figure = ("--read", read) if read else ()
    told = run(
        *("ab", "--package", str(package), "--pairs", str(pairs), *figure, "--json", "--"),
        *(sys.executable, str(PROGRAM), *words),
        home=home,
    )
    found: dict[str, Any] = json.loads(told)
    return found


def main() -> None:
    """Writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("graph", type=Path)
    parser.add_argument("--seconds", type=int, default=90)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--out", type=Path, default=Path("docs/results/ab.md"))
    given = parser.parse_args()
    graph = str(given.graph.resolve())
    with tempfile.TemporaryDirectory() as folder:
        home, package = Path(folder) / "home", Path(folder) / "package"
        limit = f"{given.seconds}s"
        sizes = ("--matrix", graph, "--axes", "N=128", "--max-time", limit, "--target", "cpu")
        run("run", "spmm_csr", *sizes, home=home)
        run("export", "@last@best", "-o", str(package), home=home)
        record = json.loads(next(package.glob("kw_*/record.json")).read_text("utf-8"))
        rows = {
            "two layers on the graph": (READ, ()),
            "the same, seconds of the whole process": (None, ()),
            "mostly elsewhere": (READ, ("--dense", "--often", "6")),
        }
        found = {
            name: compare(package, home, given.pairs, graph, *words, read=read)
            for name, (read, words) in rows.items()
        }
    given.out.write_text(write_page(record, found, given.graph.name, given.pairs), "utf-8")


def write_page(record: dict[str, Any], found: dict[str, Any], graph: str, pairs: int) -> str:
    """The table of outcomes beside what the kernel was credited with."""
    measured = record["measurements"][0]
    gain = measured["speedup"][measured["best_baseline"]]
    lines = [
        "# A program with a kernel and without it",
        "",
        f"Made by `make ab GRAPH=…/{graph}` on {datetime.date.today()}: {machine()}. "
        f"`spmm_csr` on {graph} with 128 columns, {record['status']}: by itself "
        f"{gain['median']:.2f} times as fast as {measured['best_baseline']} (95 % interval "
        f"{gain['low']:.2f} to {gain['high']:.2f}). `kernelwright ab` ran "
        f"`benchmarks/programs/gnn.py` with it and without it, {pairs} pairs each.",
        "",
        "| program | outcome | with the kernel it is … times as fast | 95 % | served | missed |",
        "|---|---|---|---|---|---|",
    ]
    for name, each in found.items():
        ratio = each["gain"]
        interval = f"{ratio['low']:.3f}–{ratio['high']:.3f}"
        lines.append(
            f"| {name} | **{each['outcome']}** | {ratio['median']:.3f} | {interval} | "
            f"{each['served']} | {sum(each['missed'].values())} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
