"""The second part: the GPU tests, file after file, in the order of what they teach.

Each file has a process of its own, so that one that hangs costs no other; each test is kept as it
ends (reporting.py).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from . import processes
from .reporting import RECORDS
from .work import Work

ROOT = Path(__file__).parent.parent.parent
TEACHES = {
    "device": "what the device is, and that it is well",
    "runs": "that kernels are run as they should be: answers, poison, guards, clocks, hangs",
    "hostile_gpu": "that cheats which need a device are caught there",
    "tools": "that Nsight Compute and compute-sanitizer work",
    "judged": "that whole evaluations come to the right verdicts",
}
SHARE = 0.6
"""Of what is left of the part's time, that one file may take."""
FAILED, NOTHING_RUN = 1, 5
"""pytest's statuses: a test failed; no test was there, or no kernel run (tests/gpu/conftest.py)."""


def collect(work: Work) -> None:
    """All files that an earlier run did not come to the end of."""
    for name in work.sizes.files:
        unit = f"file {name}"
        if work.is_kept(unit):
            continue
        if not work.has_time(unit):
            continue
        last = name == work.sizes.files[-1]
        timeout_s = work.left_s if last else SHARE * work.left_s
        log = work.folder / f"{name}.log"
        with log.open("wb") as said:
            process = processes.start(command(name), said, environment(work), ROOT)
            ended = processes.wait(process, timeout_s)
        words = log.read_text(errors="replace")
        print(words, flush=True)
        told = {"seconds": round(ended.seconds, 1), "exit_status": ended.status}
        if is_told_by_tests(work, name, ended):
            work.keep(unit, **told)
        else:
            work.fail(unit, words, ended.status, is_late=ended.is_late, **told)


def is_told_by_tests(work: Work, name: str, ended: processes.Ended) -> bool:
    """Whether a file came to its end, so that its tests tell what it came to.

    Of a file alone it may be true that it gave no kernel to a device itself, and yet tried it: the
    referee did. A file of which all was skipped tried nothing.
    """
    of = f"tests/gpu/test_{name}.py::"
    tests = {u: r["outcome"] for u, r in work.records.of(work.part).items() if u.startswith(of)}
    if ended.status == FAILED:
        return "failed" in tests.values()
    return ended.status == 0 or (ended.status == NOTHING_RUN and "passed" in tests.values())


def command(name: str) -> list[str]:
    """pytest over one file, with the settings of a checkout that is not installed."""
    words = [sys.executable, "-m", "pytest", f"tests/gpu/test_{name}.py"]
    words += ["-c", "tests/gpu/pytest.ini", "--rootdir", ".", "-p", "no:cacheprovider"]
    return [*words, "--tb=short", "-q", "-p", "contact.reporting"]


def environment(work: Work) -> dict[str, str]:
    """Every row, a device required, and where the tests are kept."""
    before = os.environ.get("PYTHONPATH", "")
    places = [before, str(ROOT / "benchmarks")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, places)),
        "TEST_REQUIRE_GPU": "1",
        "TEST_ALL": "1",
        RECORDS: str(work.records.folder),
    }
