"""PyTorch modules as people write them, one campaign each; writes docs/results/modules.md.

    python benchmarks/modules.py [--seconds 30] [--out docs/results/modules.md] [NAME ...]

The modules are those of tests/public_styles: each is held against admission first; a campaign of an
admitted one begins with its naive kernel, without a model.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from machine import machine

STYLES = Path(__file__).parents[1] / "tests" / "public_styles"
ROWS: dict[str, dict[str, Any]] = tomllib.loads((STYLES / "modules.toml").read_text("utf-8"))
_STOPPED = 2
"""The exit status of a usage error, as of a module that cannot be traced."""


def call(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One command of ours, with both its streams."""
    command = [sys.executable, "-m", "kernelwright", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def find_refusal(name: str) -> str:
    """Why admission refuses a module; empty: it is admitted. Raises RuntimeError."""
    done = call("problems", "--check", str(STYLES / "modules" / f"{name}.py"), "--json")
    if done.returncode == _STOPPED:
        return done.stderr.partition("\n")[0].removeprefix("error: ")
    if not done.stdout:
        raise RuntimeError(f"{name}: {done.stderr}")
    checks = json.loads(done.stdout)["admissions"][0]["checks"]
    failed = [each for each in checks if not each["passed"]]
    return "; ".join(f"{each['name']}: {each['detail']}" for each in failed)


def campaign(name: str, seconds: int, home: str) -> dict[str, Any] | str:
    """The `run --json` document of a module's campaign, or why there is none."""
    file, kernel = STYLES / "modules" / f"{name}.py", STYLES / "module_kernels" / f"{name}.cpp"
    start = ("run", str(file), "--from", str(kernel), "--axes", ROWS[name]["axes"])
    done = call(*start, "--target", "cpu", "--max-time", f"{seconds}s", "--home", home, "--json")
    if not done.stdout:
        return " ".join(done.stderr.partition("error: ")[2].partition("\n\n")[0].split())
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row(name: str, seconds: int, home: str) -> str:
    """The line of the table for one module."""
    if refusal := find_refusal(name):
        return f"| {name} | | refused: {refusal} | | | | |"
    document = campaign(name, seconds, home)
    sizes = ROWS[name]["axes"].replace(",", " ")
    if isinstance(document, str):
        return f"| {name} | {sizes} | admitted | no campaign: {document} | | | |"
    best, count = document["best"], document["evaluated"]
    if best is None:
        found = ", ".join(f"{n} {status}" for status, n in document["by_status"].items())
        return f"| {name} | {sizes} | admitted | no winner ({found}) | | | {count} |"
    of = best["best_baseline"]
    gain = best["speedup"][of]
    return (
        f"| {name} | {sizes} | admitted | {best['status']} | "
        f"{gain['median']:.2f} [{gain['low']:.2f}, {gain['high']:.2f}] | {of} | {count} |"
    )


def page(rows: list[str], seconds: int) -> str:
    """The whole page."""
    return "\n".join(
        [
            "# PyTorch modules as problems",
            "",
            f"Made by `make modules` on {datetime.date.today().isoformat()}: {machine()}. Files in "
            "KernelBench's form, written by somebody who had not seen the tracer "
            "(`tests/public_styles/modules`). Each is admitted or refused by `problems --check`; "
            f"of each admitted one a campaign of {seconds} s goes on from a naive kernel, a plain "
            "loop on one thread, without a model: it searches the kernel's constants, where it "
            "has any. Speed-up: the winner's, against the best baseline, median and 95 % interval.",
            "",
            "| module | sizes | admission | winner | speed-up | against | candidates |",
            "|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def main() -> None:
    """Runs the campaigns one after the other and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(ROWS), metavar="NAME")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--out", type=Path, default=Path("docs/results/modules.md"))
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in ROWS]:
        parser.error(f"no module is named {', '.join(unknown)}; there are {', '.join(ROWS)}")
    rows = []
    with tempfile.TemporaryDirectory() as home:
        for name in asked.names:
            rows.append(row(name, asked.seconds, home))
            print(rows[-1], file=sys.stderr, flush=True)
            # Anew each time: an hour's figures are not lost with the last of them.
            asked.out.write_text(page(rows, asked.seconds))


if __name__ == "__main__":
    main()
