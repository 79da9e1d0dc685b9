# SPDX-License-Identifier: Apache-2.0
"""A user's own program with an exported kernel in the library's place, and without it, in turns.

What a kernel gains beside a library is not what a program gains by it: calls go another way, and
most of a program's time is often elsewhere. Each run is a process of its own; the two sides of a
pair follow each other, in an order that changes from pair to pair, and pairs are what is resampled.
"""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np

from ..errors import PrerequisiteError, UsageError
from ..traces.records import Speedup
from ..verifier.clock.statistics import speedup
from ..verifier.clock.turns import Turns

HOOK = Path(__file__).parent / "hook"
LEAST_PAIRS = 5
PAIRS = 10
_TAIL = 2000
"""Characters of a failed program's stderr that are shown."""


class Outcome(StrEnum):
    """What may be said of the program with the kernel."""

    FASTER = "faster"
    SAME = "no difference"
    SLOWER = "slower"
    UNUSED = "not used"
    """The kernel served no call: whatever the times are, they are not its."""


@dataclass(frozen=True)
class Package:
    """An exported package, not necessarily installed."""

    folder: Path
    """Its parent: what goes on PYTHONPATH."""
    module: str
    status: str
    """Of the verdict that it left the house with."""


@dataclass(frozen=True)
class Program:
    """What is run, and where its figure comes from."""

    command: tuple[str, ...]
    figure: re.Pattern[str] | None = None
    """Its first group in what the program prints, the last match; None: seconds of the process."""
    is_rate: bool = False
    """Whether more is better."""


@dataclass(frozen=True)
class Ran:
    """One run."""

    figure: float
    served: int = 0
    missed: Mapping[str, int] | None = None
    """By reason; None where no process reported."""


@dataclass(frozen=True)
class Comparison:
    """The pairs, and what they say."""

    pairs: tuple[tuple[Ran, Ran], ...]
    """With the kernel, without it."""
    gain: Speedup
    """By how much the program is faster with it, with a 95 % interval."""

    @property
    def outcome(self) -> Outcome:
        """One word for it."""
        if not self.served:
            return Outcome.UNUSED
        if self.gain.low > 1.0:
            return Outcome.FASTER
        return Outcome.SLOWER if self.gain.high < 1.0 else Outcome.SAME

    @property
    def served(self) -> int:
        """Calls of the library that the kernel served, in all runs."""
        return sum(ran.served for ran, _ in self.pairs)

    @property
    def missed(self) -> dict[str, int]:
        """Calls that went to the library, by reason, in all runs."""
        found: Counter[str] = Counter()
        for ran, _ in self.pairs:
            found.update(ran.missed or {})
        return dict(found)

    @property
    def is_reported(self) -> bool:
        """Whether some process loaded the kernel and ended in order."""
        return any(ran.missed is not None for ran, _ in self.pairs)


def find_package(place: Path) -> Package:
    """The package in a folder that `export` made.

    Raises:
        UsageError: there is none, or none that can stand in for a call of torch's.
    """
    found = sorted(place.glob("kw_*/record.json")) if place.is_dir() else []
    if not found:
        raise UsageError(
            f"{place} holds no exported package",
            hint="name the folder that `kernelwright export ID -o DIR` made of a C++ winner",
        )
    module = found[0].parent
    if not (module / "apply.py").is_file():
        raise UsageError(
            f"the package {module.name} replaces no call of torch's: none means the same as its "
            "operator, so that a program has to call it by itself",
            hint="call it in the program behind a flag, and time the program both ways",
        )
    record = json.loads(found[0].read_text("utf-8"))
    return Package(place.resolve(), module.name, str(record.get("status", "")))


def compare(
    program: Program,
    package: Package,
    *,
    pairs: int = PAIRS,
    seed: int = 0,
    turns: Turns,
    tell: Callable[[int, Ran, Ran], None] = lambda *_: None,
) -> Comparison:
    """Runs the program 2·`pairs` times, after one run of each side that does not count.

    Args:
        turns: Of this machine: nobody else times while a run lasts.
        tell: Is told each pair: its number, with the kernel, without it.

    Raises:
        UsageError: the program fails, or prints no figure.
        PrerequisiteError: the program is not there.
    """
    rng = np.random.default_rng(seed)
    for is_applied in (True, False):
        _run(program, package, is_applied=is_applied, turns=turns)
    done: list[tuple[Ran, Ran]] = []
    for number in range(1, pairs + 1):
        order = (True, False) if rng.random() < 0.5 else (False, True)
        sides = {side: _run(program, package, is_applied=side, turns=turns) for side in order}
        done.append((sides[True], sides[False]))
        tell(number, *done[-1])
    times = [[_seconds(program, ran)] for ran, _ in done]
    without = [[_seconds(program, ran)] for _, ran in done]
    return Comparison(tuple(done), speedup(times, without, rng))


def _seconds(program: Program, ran: Ran) -> float:
    return 1.0 / ran.figure if program.is_rate else ran.figure


def _run(program: Program, package: Package, *, is_applied: bool, turns: Turns) -> Ran:
    with tempfile.TemporaryDirectory(prefix="kernelwright-ab-") as folder:
        report = Path(folder) / "applied.jsonl"
        environment = _environment(package, report, is_applied=is_applied)
        turns.wait()
        try:
            began = time.perf_counter()
            done = subprocess.run(
                program.command, env=environment, capture_output=True, text=True, errors="replace"
            )
            seconds = time.perf_counter() - began
        except OSError as error:
            raise PrerequisiteError(
                f"{program.command[0]} cannot be started: {error.strerror}",
                hint="give the program behind --, as it is started in this folder",
            ) from error
        finally:
            turns.give_back()
        if done.returncode != 0:
            side = "with" if is_applied else "without"
            raise UsageError(
                f"the program ended with status {done.returncode} {side} the kernel; the end of "
                f"what it said:\n{done.stderr[-_TAIL:].rstrip()}",
                hint=f"run it by itself: {' '.join(program.command)}",
            )
        figure = seconds if program.figure is None else _read_figure(program, done.stdout)
        return Ran(figure, *_read_report(report))


def _environment(package: Package, report: Path, *, is_applied: bool) -> dict[str, str]:
    """Both sides start alike; `KW_APPLY` is what tells a program that calls `apply()` itself."""
    known = dict(os.environ)
    for name in ("KW_APPLY_MODULE", "KW_APPLY_REPORT"):
        known.pop(name, None)
    before = [known["PYTHONPATH"]] if known.get("PYTHONPATH") else []
    known["PYTHONPATH"] = os.pathsep.join([str(HOOK), str(package.folder), *before])
    known["KW_APPLY"] = "1" if is_applied else "0"
    if is_applied:
        known |= {"KW_APPLY_MODULE": package.module, "KW_APPLY_REPORT": str(report)}
    return known


def _read_figure(program: Program, printed: str) -> float:
    assert program.figure is not None
    found = list(program.figure.finditer(printed))
    text = found[-1].group(1) if found else ""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0):
        said = f"it gave {text!r}" if found else "nothing in what the program printed matches"
        raise UsageError(
            f"--read {program.figure.pattern!r} finds no positive number: {said}",
            hint="its first group is the number: --read 'took ([0-9.]+) ms'",
        )
    return value


def _read_report(report: Path) -> tuple[int, dict[str, int] | None]:
    """Served, and missed by reason; of all processes that the program started."""
    if not report.exists():
        return 0, None
    lines = [json.loads(line) for line in report.read_text("utf-8").splitlines()]
    missed: Counter[str] = Counter()
    for line in lines:
        missed.update(line["missed"])
    return sum(line["served"] for line in lines), dict(missed)
