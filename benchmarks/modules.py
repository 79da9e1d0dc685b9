"""PyTorch modules as people write them, one campaign each; writes docs/results/modules.md.

    python benchmarks/modules.py [--seconds 30] [--note WORDS] [--out PAGE] [NAME ...]

The modules are those of tests/public_styles: each is held against admission first; of an admitted
one `forge` runs a campaign, whose Coder is an endpoint that plays a script (scripted_coder.py).
Where modules are named, the others keep their lines of the page.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from machine import machine

from kernelwright.tests.public_styles.scripted_coder import (
    MODEL,
    ROWS,
    Asked,
    ScriptedCoder,
    choose_first,
    name_kernel,
)

STYLES = Path(__file__).parents[1] / "tests" / "public_styles"
_STOPPED = 2
"""The exit status of a usage error, as of a module that cannot be traced."""


class Campaign(NamedTuple):
    """What became of one."""

    document: dict[str, Any]
    """That of `run --json`."""
    repairs: int
    """Questions for a repair."""


def call(*arguments: str, base_url: str = "") -> subprocess.CompletedProcess[str]:
    """One command of ours, with both its streams."""
    command = [sys.executable, "-m", "kernelwright", *arguments]
    named = {"OPENAI_BASE_URL": base_url} if base_url else {}
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | named
    )


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


def campaign(name: str, seconds: int, home: str) -> Campaign | str:
    """A module's campaign, or why there is none."""
    file = STYLES / "modules" / f"{name}.py"
    start = (
        "run",
        str(file),
        "--workflow",
        "forge",
        "--model",
        MODEL,
        "--axes",
        ROWS[name]["axes"],
    )
    limits = ("--target", "cpu", "--max-time", f"{seconds}s", "--home", home, "--json")
    with ScriptedCoder(name) as coder:
        done = call(*start, *limits, base_url=coder.url)
        repairs = coder.asked[Asked.REPAIR]
    if not done.stdout:
        return " ".join(done.stderr.partition("error: ")[2].partition("\n\n")[0].split())
    return Campaign(json.loads(done.stdout), repairs)


def row(name: str, seconds: int, home: str) -> str:
    """The line of the table for one module."""
    if refusal := find_refusal(name):
        return f"| {name} | | refused: {refusal} | | | | | | |"
    found = campaign(name, seconds, home)
    told = f"| {name} | {ROWS[name]['axes'].replace(',', ' ')} | admitted | {choose_first(name)}"
    if isinstance(found, str):
        return f"{told} | no campaign: {found} | | | | |"
    document, counted = found.document, f"{found.document['evaluated']} | {found.repairs} |"
    best = document["best"]
    if best is None:
        statuses = ", ".join(f"{n} {status}" for status, n in document["by_status"].items())
        return f"{told} | no winner ({statuses}) | | | {counted}"
    of = best["best_baseline"]
    gain = best["speedup"][of]
    return (
        f"{told} | {best['status']}, {name_kernel(name, best['candidate'])} | "
        f"{gain['low']:.2f} ({gain['median']:.2f}) | {of} | {counted}"
    )


def read_rows(kept: Path) -> dict[str, str]:
    """The lines of a page that stands already, by module."""
    lines = kept.read_text("utf-8").splitlines() if kept.exists() else []
    found = {line.split("|")[1].strip(): line for line in lines if line.startswith("| ")}
    return {name: found[name] for name in ROWS if name in found}


def page(rows: Iterable[str], seconds: int, note: str) -> str:
    """The whole page."""
    return "\n".join(
        [
            "# PyTorch modules as problems",
            "",
            f"Made by `make modules` on {datetime.date.today().isoformat()}: {machine()}. {note}"
            "Files in KernelBench's form, written by somebody who had not seen the tracer "
            "(`tests/public_styles/modules`). Each is admitted or refused by `problems --check`; "
            f"of each admitted one `run FILE --workflow forge --max-time {seconds}s --model "
            f"{MODEL}` runs a campaign. No model stands behind that name: it is an endpoint of "
            "OpenAI's protocol that plays a script (`tests/public_styles/scripted_coder.py`). Its "
            "first kernel is wrong, does not build, or is right; a repair is a hand-written plain "
            "loop on one thread, an optimisation the same with threads, vectors and blocks. The "
            "figures say what workflow and referee make of such answers, and nothing of any model. "
            "Credited: the lower end of the 95 % interval of the winner's speed-up against the "
            "fastest baseline, in brackets its median. Repairs: questions for one.",
            "",
            "| module | sizes | admission | first kernel | winner | credited (median) | against "
            "| candidates | repairs |",
            "|---|---|---|---|---|---|---|---|---|",
            *rows,
            "",
        ]
    )


def main() -> None:
    """Runs the campaigns one after the other and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=list(ROWS), metavar="NAME")
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--note", default="", help="what else the machine did, for the page")
    parser.add_argument("--out", type=Path, default=Path("docs/results/modules.md"))
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in ROWS]:
        parser.error(f"no module is named {', '.join(unknown)}; there are {', '.join(ROWS)}")
    rows, note = read_rows(asked.out), asked.note and f"{asked.note} "
    with tempfile.TemporaryDirectory() as home:
        for name in asked.names:
            rows[name] = row(name, asked.seconds, home)
            print(rows[name], file=sys.stderr, flush=True)
            # Anew each time: an hour's figures are not lost with the last of them.
            lines = (rows[name] for name in ROWS if name in rows)
            asked.out.write_text(page(lines, asked.seconds, note))


if __name__ == "__main__":
    main()
