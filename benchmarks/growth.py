"""How an evaluation grows with the work: wall time and memory, from 10,000 to a million rows.

    python benchmarks/growth.py [--rows 10000 50000 ...] [--columns 128]

One right SpMM kernel on random rows of five entries with popular columns. Each size is judged by a
process of its own; the memory of it and all its descendants is added up four times a second, what
they share counted once.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from machine import machine
from side_by_side import judge

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Workload
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.verifier.process.client import open_referee
from kernelwright.verifier.request import Task

PROBLEM = "spmm_csr"
ROWS = (10_000, 50_000, 200_000, 500_000, 1_000_000)
ENTRIES = 5
GIB = 1 << 30


def workload(rows: int, columns: int) -> Workload:
    """A square pattern whose columns follow a power law, times a dense matrix."""
    return Workload(
        name=f"{rows} rows",
        kind="target",
        axes={"N": columns},
        generator={"law": "degree", "rows": rows, "nnz": ENTRIES * rows, "cv": 0.5},
    )


def evaluate(rows: int, columns: int) -> dict[str, float]:
    """Judges one size in this process: seconds by span, and in all."""
    recipe = recipes_for(PROBLEM)[0]
    source = recipe.render(recipe.first_knobs())
    with tempfile.TemporaryDirectory() as cache:
        task = Task(problem=PROBLEM, workload=workload(rows, columns), cache_dir=cache)
        begun = time.monotonic()
        with open_referee(task) as referee:
            judged = judge(referee, source)
        return {"wall": time.monotonic() - begun, "speedup": judged.gain.median}


def descendants(root: int) -> list[int]:
    """The process and all below it."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found, left = [], [root]
    while left:
        found.append(left.pop())
        left += children.get(found[-1], [])
    return found


def held(pid: int) -> int:
    """Proportional set size, in bytes: what is shared is divided among those who share it."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def measure(rows: int, columns: int) -> dict[str, float]:
    """Judges one size in a process of its own, and watches its memory."""
    command = [sys.executable, __file__, "--one", str(rows), "--columns", str(columns)]
    most, ended = [0, 0], threading.Event()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:

        def watch() -> None:
            while not ended.wait(0.25):
                each = [held(pid) for pid in descendants(process.pid)]
                most[0], most[1] = max(most[0], sum(each)), max(most[1], *each)

        watcher = threading.Thread(target=watch)
        watcher.start()
        said, _ = process.communicate()
        ended.set()
        watcher.join()
    if process.returncode:
        raise SystemExit(f"{rows} rows: exit status {process.returncode}")
    return {**json.loads(said.splitlines()[-1]), "all": most[0], "largest": most[1]}


def page(lines: list[str], columns: int) -> str:
    """The whole page."""
    return "\n".join(
        [
            "# How an evaluation grows",
            "",
            f"Made by `make growth` on {datetime.date.today().isoformat()}: {machine()}. "
            f"{PROBLEM}, {ENTRIES} entries a row, N = {columns}, judged in full by a referee "
            "of its own, from its start to the verdict.",
            "",
            "| rows | bytes of one call | wall | memory of all | memory of the largest process |",
            "|---|---|---|---|---|",
            *lines,
            "",
        ]
    )


def main() -> None:
    """Judges every size; writes the page after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=ROWS)
    parser.add_argument("--columns", type=int, default=128)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=Path("docs/results/growth.md"))
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(evaluate(asked.one, asked.columns)))
        return
    problem, lines = registry.get(PROBLEM), []
    for rows in asked.rows:
        axes = {"M": rows, "N": asked.columns, "K": rows, "nnz": ENTRIES * rows}
        found = measure(rows, asked.columns)
        lines.append(
            f"| {rows:,} | {problem.bytes_moved(axes) / 1e6:.0f} MB | {found['wall']:.1f} s | "
            f"{found['all'] / GIB:.1f} GiB | {found['largest'] / GIB:.1f} GiB |"
        )
        print(lines[-1], flush=True)
        asked.out.write_text(page(lines, asked.columns))


if __name__ == "__main__":
    main()
