"""The seven kinds of files that a Coder hands in: each has its status and leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.traces.records import Depth, Status

pytestmark = [pytest.mark.slow, pytest.mark.timed]

SEVEN = {
    "honest": Status.VERIFIED,
    "wrong": Status.INCORRECT,
    "out_of_bounds": Status.INCORRECT,
    "crash": Status.CRASHED,
    "endless_loop": Status.TIMED_OUT,
    "memory_hog": Status.RESOURCE,
    "stdout_flood": Status.RESOURCE,
}
HERE = Path(__file__).parent / "seven"


def below(pid: int) -> set[int]:
    """All descendants of a process."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            words = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        children.setdefault(int(words[1]), []).append(int(stat.parent.name))
    found: set[int] = set()
    frontier = [pid]
    while frontier:
        new = children.get(frontier.pop(), [])
        found.update(new)
        frontier.extend(new)
    return found


@pytest.mark.parametrize("name", SEVEN)
def test_each_file_has_its_status_and_leaves_no_process(court, name):
    referee = court.referee("spmm_csr")
    court.judge((HERE / "wrong.cpp").read_text())  # so that the baselines have started
    before = below(referee.pid)
    verdict = court.judge(
        (HERE / f"{name}.cpp").read_text(), protocol=Depth.FULL, expected=(SEVEN[name],)
    )
    assert verdict.status is SEVEN[name], verdict.reasons
    assert bool(verdict.reasons) is (name != "honest")
    assert below(referee.pid) <= before


def test_the_reason_names_where_it_wrote_out_of_bounds(court):
    verdict = court.judge((HERE / "out_of_bounds.cpp").read_text())
    assert "after C" in verdict.reasons[0]


def test_a_verdict_carries_what_it_rests_on(court):
    verdict = court.judge((HERE / "honest.cpp").read_text(), protocol=Depth.FULL)
    assert verdict.status is Status.VERIFIED, verdict.reasons
    assert sum(c.name.startswith("correct on") for c in verdict.checks) >= 30
    assert {c.workload for c in verdict.checks} >= {"tiny", "hub-33"}
    assert verdict.isolation is not None
    assert len(verdict.seed) == 32
    measurement = verdict.measurement
    assert measurement is not None
    assert measurement.pairs >= 30
    assert measurement.speedup["torch eager"].low <= measurement.speedup["torch eager"].median
    assert measurement.roofline is not None
    assert set(verdict.seconds) >= {"build", "start", "verify", "time"}
