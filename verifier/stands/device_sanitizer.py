# SPDX-License-Identifier: Apache-2.0
"""compute-sanitizer at promotion: four tools over a candidate's call, each a check of its own.

memcheck finds accesses outside of allocations and misaligned ones, racecheck races on shared
memory, initcheck global memory that is read before it is written, synccheck barriers that not all
threads reach. What racecheck only warns of may be meant so, by its documentation: it is told, and
no failure. They run a host program of ours (sandbox/run/device/replay.py) on a small workload.
What cannot be run is told as unchecked, never taken for clean; a program that ends early is not
clean.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ...sandbox.builders import toolchain
from ...sandbox.builders.diagnostics import clean
from ...sandbox.run.device.program import EXITS, STATUSES
from ...traces.records import Check, Status

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
FOUND = 86
"""The exit status that the sanitizer is told to leave with where it found something."""
_START_FAILED = 97
_PLACES = ("/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer")
_LONGEST = 200
_GONE_S = 10.0

_SUMMARY = re.compile(
    r"^=+ (?:ERROR SUMMARY: (?P<errors>\d+) errors?"
    r"|RACECHECK SUMMARY: (?P<hazards>\d+) hazards? displayed"
    r"(?: \((?P<grave>\d+) errors?, (?P<warned>\d+) warnings?\))?)",
    re.MULTILINE,
)
_REST = r"(?P<rest>(?:\n=+ {3,}[^\n]*)*)"
_FIRST = re.compile(
    r"^=+ (?P<what>(?:Error: Race reported|Race reported|Invalid|Misaligned|"
    r"Uninitialized|Barrier error|Program hit)[^\n]*)" + _REST,
    re.MULTILINE,
)
_WARNED = re.compile(r"^=+ (?P<what>Warning: Race reported[^\n]*)" + _REST, re.MULTILINE)
_PLACE = re.compile(
    r"\bat (?P<kernel>[^\n]+?)\+0x[0-9a-f]+(?: in (?P<file>[^\n:]+):(?P<line>\d+))?"
)
_DISTANCE = re.compile(
    r"(\d[\d,]*) bytes? (after|before) the nearest allocation[^\n]*?(?:of size ([\d,]+) bytes)?$",
    re.M,
)


def find(search: str | None = None) -> Path | None:
    """compute-sanitizer on the PATH (or on `search`), else in the toolkit; None: there is none."""
    own = toolchain.preferred_tool("compute-sanitizer") if search is None else None
    found = str(own) if own else shutil.which("compute-sanitizer", path=search)
    if found is None and search is None:
        known = (Path(place) / "compute-sanitizer" for place in _PLACES)
        found = next((str(p) for p in known if p.is_file() and os.access(p, os.X_OK)), None)
    return Path(found) if found else None


def command(sanitizer: Path, tool: str, host: Sequence[str]) -> list[str]:
    """The sanitizer over a host program."""
    return [
        str(sanitizer),
        "--tool",
        tool,
        "--error-exitcode",
        str(FOUND),
        "--print-limit",
        "10",
        "--show-backtrace",
        "no",
        *host,
    ]


def examine(
    sanitizer: Path,
    tool: str,
    host: Sequence[str],
    *,
    environment: Mapping[str, str],
    timeout_s: float = 120.0,
) -> Check | str:
    """Runs one tool: a check, or in a sentence why it stays unchecked."""
    process = subprocess.Popen(
        command(sanitizer, tool, host),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
        cwd="/",
        env={"PATH": "/usr/bin:/bin", "TMPDIR": "/tmp", **environment},
    )
    try:
        said, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        # One that hangs in the driver stays; the device's health probe will tell.
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=_GONE_S)
        return f"compute-sanitizer {tool}: not run to its end within {timeout_s:g} s"
    return read(tool, said, process.returncode)


def read(tool: str, said: str, code: int) -> Check | str:
    """What a finished run came to."""
    summary = _SUMMARY.search(said)
    # Where hazards are not told apart, all of them are errors.
    count = int(summary["errors"] or summary["grave"] or summary["hazards"]) if summary else 0
    if sentence := _sentence(said, _FIRST):
        return _check(tool, max(count, 1), sentence)
    if not count and code in (0, FOUND) and (warned := _sentence(said, _WARNED)):
        return _check(tool, 0, f"{tool} warns: {warned}")
    if count or code == FOUND:
        return _check(tool, max(count, 1), f"{max(count, 1)} errors without a place")
    if code == 0 and summary:
        return _check(tool, 0, "")
    if code in EXITS and STATUSES.get(code) is not Status.HARNESS_ERROR:
        words = (said.strip().splitlines() or [""])[-1]
        return _check(tool, 1, f"{EXITS[code]} {_clip(words)}")
    why = next((line for line in said.splitlines() if "Error" in line or "Unable" in line), "")
    return f"compute-sanitizer {tool}: not run, exit status {code} {_clip(why.strip('= '))}".strip()


def _check(tool: str, count: int, detail: str) -> Check:
    return Check(
        name=f"compute-sanitizer {tool}",
        passed=count == 0,
        figure=float(count),
        limit=0.0,
        detail=detail or f"{tool} saw nothing",
    )


def _sentence(said: str, reported: re.Pattern[str]) -> str:
    """The first report: `Invalid __global__ write of size 4 bytes in spmm_row at line 12, …`."""
    found = reported.search(said)
    if found is None:
        return ""
    report = found[0]
    words = [re.sub(r"\s+at .*", "", found["what"].partition(": ")[2] or found["what"])]
    places = list(_PLACE.finditer(report))
    if places:
        kernel = places[0]["kernel"].partition("(")[0].removeprefix("void ")
        lines = list(dict.fromkeys(place["line"] for place in places if place["line"]))
        words.append(f"in {kernel}")
        words += [f"at line{'s' * (len(lines) > 1)} {' and '.join(lines)}"] if lines else []
    if distance := _DISTANCE.search(report):
        words.append(f", {distance[1]} bytes {distance[2]} a tensor")
        words += [f"of {distance[3]} bytes"] if distance[3] else []
    return _clip(" ".join(words).replace(" ,", ","))


def _clip(words: str) -> str:
    kept = " ".join(clean(words).split())
    return kept if len(kept) <= _LONGEST else kept[:_LONGEST] + "…"
