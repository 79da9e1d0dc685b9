"""A campaign for each problem on this machine; writes the table docs/results/cpu.md.

python benchmarks/cpu_results.py [--seconds 45] [--out docs/results/cpu.md] [PROBLEM …]
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from machine import machine

from kernelwright.kernelbench import registry

NARROW = ("gemm_f16", "gemm_bf16", "gemm_int8")
"""Precisions of a problem that are of interest by themselves."""


def campaign(problem: str, seconds: int, home: str) -> dict[str, Any]:
    """The `run --json` document of one campaign."""
    command = [
        sys.executable,
        "-m",
        "kernelwright",
        "run",
        problem,
        "--home",
        home,
        "--target",
        "cpu",
        "--max-time",
        f"{seconds}s",
        "--json",
    ]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def row(document: dict[str, Any]) -> list[str]:
    """Table rows of one campaign, a line per baseline."""
    best = document["best"]
    name, workload = document["problem"], document.get("workload", "")
    if best is None:
        return [f"| {name} | {workload} | no VERIFIED candidate | | | | {document['evaluated']} |"]
    roofline = f"{best['roofline']:.2f}" if best["roofline"] else ""
    rows = []
    for baseline, s in best["speedup"].items():
        ratio = f"{s['median']:.2f} [{s['low']:.2f}, {s['high']:.2f}]"
        rows.append(
            f"| {name} | {workload} | {best['status']} | {best['latency_us']:.0f} | {roofline} | "
            f"{baseline}: {ratio} | {document['evaluated']} |"
        )
    return rows


def main() -> None:
    """Runs the campaigns one after the other and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problems", nargs="*", default=[*registry.names(), *NARROW])
    parser.add_argument("--seconds", type=int, default=45)
    parser.add_argument("--out", type=Path, default=Path("docs/results/cpu.md"))
    asked = parser.parse_args()
    lines = [
        "# Recipes on a CPU",
        "",
        f"Made by `make results` on {datetime.date.today().isoformat()}: one campaign of "
        f"{asked.seconds} s for each problem with the offline recipe Coder, on its default "
        "workload, and for `gemm` in three precisions. Speed-ups are medians with 95 % intervals "
        "from the confirming run; figures below 1 mean that the baseline is faster.",
        "",
        f"Machine: {machine()}.",
        "",
        "| problem | workload | status | median µs | roofline share | speed-up against | "
        "candidates |",
        "|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as home:
        for problem in asked.problems:
            document = campaign(problem, asked.seconds, home)
            lines += row(document)
            print("\n".join(row(document)), file=sys.stderr)
            asked.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
