"""Counters of a process from outside: those of the kernel here, those of hardware where it is."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from kernelwright.traces.records import Level
from kernelwright.verifier.profile import perf_events
from kernelwright.verifier.profile.perf_events import Counts, count_process, metrics_of

WORK = """
import sys, threading
sys.stdin.readline()
def work():
    for _ in range({rounds}):
        block = bytearray(1 << 20)
        block[::4096] = b"x" * 256
thread = threading.Thread(target=work); thread.start(); thread.join()
print("done", flush=True)
sys.stdin.readline()
"""


def counted(rounds: int) -> Counts:
    """Of a thread that is started while it is counted, and takes a new megabyte in each round."""
    with subprocess.Popen(
        [sys.executable, "-c", WORK.format(rounds=rounds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"MALLOC_MMAP_THRESHOLD_": "65536", "PATH": "/usr/bin:/bin"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        time.sleep(0.2)
        with count_process(process.pid) as counts:
            process.stdin.write("\n")
            process.stdin.flush()
            process.stdout.readline()
        process.stdin.write("\n")
    if "page_faults" not in counts.totals:
        pytest.skip(f"the kernel lets nobody count here: {counts.lack}")
    return counts


def test_threads_that_start_later_are_counted() -> None:
    """256 pages of each block are touched for the first time."""
    assert counted(40).totals["page_faults"] >= 40 * 256
    assert counted(1).totals["page_faults"] < 40 * 256


def test_hardware_counters_are_there_or_their_lack_has_a_reason() -> None:
    counts = counted(1)
    has_any = counts.totals.get("cycles", 0) > 0
    assert has_any != bool(counts.lack)


def test_rates_need_no_number_of_calls() -> None:
    totals = {"cycles": 4e6, "instructions": 10e6, "task_clock": 2e6, "cache_misses": 1e5}
    found = {m.name: m for m in metrics_of(Counts({**totals, "page_faults": 6.0}))}
    assert found["instructions_per_cycle"].value == 2.5
    assert found["llc_miss_gbs"].value == pytest.approx(3.2)
    assert found["page_faults_per_ms"].value == pytest.approx(3.0)
    assert "l1_miss_share" not in found
    assert {m.level for m in found.values()} == {Level.MEASURED}


def test_a_process_that_is_gone_has_no_counts() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    with count_process(process.pid) as counts:
        pass
    assert metrics_of(counts) == []


@pytest.mark.parametrize(("code", "words"), [(2, "shows none"), (13, "perf_event_paranoid")])
def test_reasons_say_what_helps(code: int, words: str) -> None:
    assert words in perf_events._explain(code)
