"""What the referee sees inside of a C++ kernel that it timed: hot loop, faults, caches."""

from __future__ import annotations

import platform
import shutil
from typing import Any

import pytest

from kernelwright.kernelbench.problem import Structure
from kernelwright.sandbox.builders.model import Built
from kernelwright.traces.records import Measurement, Status, Timing
from kernelwright.verifier.profile.cpu import Host, Inside, profile
from kernelwright.verifier.profile.perf_events import Counts

SOFTMAX = """
#include <cmath>
extern "C" void softmax(int M, int N, const float* x, float* y) {
  for (int i = 0; i < M; ++i) {
    float top = -INFINITY, sum = 0;
    for (int j = 0; j < N; ++j) top = std::fmax(top, x[j]);
    for (int j = 0; j < N; ++j) sum += y[j] = std::exp(x[j] - top);
    for (int j = 0; j < N; ++j) y[j] /= sum;
    x += N;
    y += N;
  }
}
"""


def measured() -> Measurement:
    timing = Timing(median_us=100, low_us=99, high_us=101)
    return Measurement(workload="w", candidate=timing, threads=2)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="listings of x86-64 are read")
@pytest.mark.skipif(shutil.which("objdump") is None, reason="objdump is not installed")
def test_a_timed_kernel_has_a_hot_loop_with_its_lines(court: Any) -> None:
    verdict = court.judge(SOFTMAX, "softmax")
    assert verdict.status is Status.SCREENED
    assert verdict.profile.get("hot_instructions") > 2
    assert verdict.profile.get("hot_flops") > 0
    (remark, *_) = verdict.profile.remarks
    assert remark.startswith("hot loop at line")
    assert verdict.profile.get("working_set_mb") > 0


def test_lacks_have_their_reasons() -> None:
    inside = Inside(lack="objdump is not on PATH", counts=Counts(lack="this machine shows none"))
    found = profile(
        Built(b"", "", 0.0), Structure({"M": 4}), measured(), flops=1, moved=1, inside=inside
    )
    assert found.remarks == (
        "no instructions are known: objdump is not on PATH",
        "no hardware counters: this machine shows none",
    )


@pytest.mark.parametrize(
    ("moved", "place"),
    [(1e6, "second-level caches"), (9e6, "last-level cache"), (9e8, "memory alone")],
)
def test_the_cache_that_holds_a_call_is_named(moved: float, place: str) -> None:
    host = Host(100.0, 2 << 20, 32 << 20)
    found = profile(
        Built(b"", "", 0.0), Structure({"M": 4}), measured(), flops=1, moved=moved, host=host
    )
    assert f"fits into {place}" in found.remarks[0]


def test_counters_of_the_hardware_are_measured_figures() -> None:
    counts = Counts({"cycles": 2e6, "instructions": 3e6, "task_clock": 1e6, "page_faults": 5.0})
    found = profile(
        Built(b"", "", 0.0),
        Structure({"M": 4}),
        measured(),
        flops=1,
        moved=1,
        inside=Inside(counts=counts),
    )
    assert found.get("instructions_per_cycle") == 1.5
    assert found.get("page_faults_per_ms") == 5.0
