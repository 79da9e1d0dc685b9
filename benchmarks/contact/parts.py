"""The parts of a first contact in their order, and how one is run: in a process of its own.

A part that exceeds its time is killed with all that it has started; what it had found is kept,
since it stands in the records by then, and the next part goes on.
"""

from __future__ import annotations

import datetime
import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from . import processes, wheels
from .causes import UNKNOWN, Cause, explain
from .records import ENDS, Record, Records, Scene
from .work import CAUSE, LEFT_OUT, Sizes, Work

PROGRAM = Path(__file__).parent.parent / "first_contact.py"
EARLY = 0.95
"""Of its time, after which a part begins nothing more: so it ends by itself."""
WELL, WITH_FAILURES, OUT_OF_TIME = "well", "with failures", "out of time"
HAS_FAILURES, HAS_LEFT_OUT = 9, 10
"""A part's statuses where it ended by itself, and something in it failed or time was over."""
ENDINGS = {0: WELL, HAS_FAILURES: WITH_FAILURES, HAS_LEFT_OUT: OUT_OF_TIME}


class Part(NamedTuple):
    """One part: where it is written, and what it is there for."""

    module: str
    function: str
    says: str


PARTS = {
    "facts": Part("facts", "collect", "what the device is, and with what it is worked with"),
    "tests": Part("suite", "collect", "the GPU tests, in the order of what they teach"),
    "canary": Part("canary", "collect", "what the jails enforce of a job that has a device"),
    "recipes": Part("kernels", "collect_recipes", "recipes against every baseline"),
    "fairness": Part("kernels", "collect_fairness", "whether a kernel is credited beside its copy"),
    "emulation": Part("kernels", "collect_emulation", "emulated counts against the hardware's"),
    "model": Part("kernels", "collect_model", "modelled times against measured ones"),
}


def collect(part: str, records: Records, minutes: float) -> int:
    """A part in this process; its status."""
    scene, sizes = records.asked() or _nothing_asked()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # What runs in a jail has another user's rights.
        folder.chmod(0o755)
        ends = time.monotonic() + EARLY * 60 * minutes
        work = Work(part, records, scene, Sizes.read(sizes), folder, ends)
        of = PARTS[part]
        module = importlib.import_module(f"contact.{of.module}")
        does: Callable[[Work], None] = getattr(module, of.function)
        does(work)
    if work.left_out or LEFT_OUT in work.known:
        records.add(part, LEFT_OUT, units=work.left_out)
    if work.left_out:
        return HAS_LEFT_OUT
    return HAS_FAILURES if _failures(records, part) else 0


def run(
    part: str,
    records: Records,
    minutes: float,
    hear: Callable[[subprocess.Popen[bytes] | None], None],
) -> Record:
    """A part in a process of its own, at most so long; how it ended.

    Args:
        hear: Is told the process as long as there is one, so that it can be ended from elsewhere.
    """
    if missing := wheels.list_missing(part):
        cause = explain("\n".join(f"No module named {name}" for name in missing))
        return _end(records, part, f"not begun: {', '.join(missing)} missing", 0.0, cause)
    log = records.folder / f"{part}.log"
    command = [sys.executable, str(PROGRAM), "--collect", part, "--out", str(records.folder)]
    command += ["--minutes-per-part", str(minutes)]
    with log.open("wb") as said:
        process = processes.start(command, said, _environment(), PROGRAM.parent.parent)
        hear(process)
        ended = processes.wait(process, 60 * minutes)
        hear(None)
    words = log.read_text(errors="replace")
    if ended.is_late:
        how = f"cut off after {60 * minutes:.0f} s"
    elif ended.status in ENDINGS:
        how = ENDINGS[ended.status]
        return _end(records, part, how, ended.seconds, next(iter(_failures(records, part)), None))
    else:
        how = f"status {ended.status}"
    cause = explain(words, ended.status, is_late=ended.is_late)
    return _end(records, part, how, ended.seconds, cause)


def tell_end(records: Records, part: str) -> str:
    """How a part came to its end by itself; empty: it did not yet."""
    how = str(records.of(ENDS).get(part, {}).get("how", ""))
    return how if how in (WELL, WITH_FAILURES) else ""


def forget(records: Records, part: str) -> None:
    """All that is known of a part, before it is run again from its beginning."""
    records.forget(part)
    records.add(ENDS, part, how="to be run again", seconds=0.0)


def _failures(records: Records, part: str) -> list[Cause]:
    """Causes that are known ahead of those that are not."""
    found = [Cause(**r[CAUSE]) for r in records.of(part).values() if CAUSE in r]
    return sorted(found, key=lambda cause: cause.name == UNKNOWN)


def _end(records: Records, part: str, how: str, seconds: float, cause: Cause | None) -> Record:
    told: Record = {"how": how, "seconds": round(seconds, 1)}
    told["date"] = datetime.date.today().isoformat()
    if cause:
        told[CAUSE] = cause._asdict()
    records.add(ENDS, part, **told)
    return told


def _environment() -> dict[str, str]:
    """Who asks for no jail has accepted it; every part says so."""
    accepted = {"KERNELWRIGHT_ACCEPT_WEAK_ISOLATION": "true"}
    return {**os.environ, **(accepted if os.environ.get("KERNELWRIGHT_JAIL") == "bare" else {})}


def _nothing_asked() -> tuple[Scene, Record]:
    raise SystemExit("a part is begun by first_contact.py, which writes down what was asked")
