"""What others take of the CPUs: a load that nobody else would tell of."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from kernelwright.kernelbench.machine import usable_cpus
from kernelwright.sandbox.run.process import cpu_ns
from kernelwright.verifier.clock.calm import Calm
from kernelwright.verifier.clock.others import OTHERS, TAKEN, Others
from kernelwright.verifier.clock.timing import Series, took_of

WORKED_NS = 300_000_000


@pytest.fixture
def busy() -> Iterator[int]:
    """A process that does nothing but run."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield process.pid
        process.kill()


def work(pid: int) -> None:
    """Until it has had so much of a CPU."""
    end = cpu_ns(pid) + WORKED_NS
    while cpu_ns(pid) < end:
        time.sleep(0.01)


def test_who_is_none_of_ours_is_seen(busy: int) -> None:
    cpus = usable_cpus()
    strange, known = Others(cpus, []), Others(cpus, [busy])
    started = time.monotonic()
    work(busy)
    took_s = time.monotonic() - started
    assert strange.share() - known.share() == pytest.approx(WORKED_NS / 1e9 / took_s, rel=0.2)


def test_only_the_cpus_that_are_timed_on_tell(busy: int) -> None:
    free, *others = usable_cpus()
    if not others:
        pytest.skip("one CPU is all there is")
    os.sched_setaffinity(busy, {others[0]})
    here, there = Others((free,), []), Others((others[0],), [])
    work(busy)
    assert there.share() > here.share() or here.share() > TAKEN  # whatever else runs here


def test_a_process_that_has_ended_leaves_it_untold(busy: int) -> None:
    found = Others(usable_cpus(), [busy])
    os.kill(busy, 9)
    os.waitid(os.P_PID, busy, os.WEXITED | os.WNOWAIT)
    assert found.share() >= 0.0
    assert Others(usable_cpus(), [2**22 + 1]).share() == 0.0


def test_a_block_beside_a_load_is_disturbed_from_the_first_on() -> None:
    calm, took = Calm(), {"library": 100.0}
    assert not calm.is_disturbed({**took, OTHERS: 0.9 * TAKEN})
    assert calm.is_disturbed({**took, OTHERS: 1.1 * TAKEN})
    calm.see({**took, OTHERS: 3.0})
    assert calm._seen.keys() == {"library"}


def test_it_is_no_side() -> None:
    found = Series()
    found.blocks.append({"candidate": [50.0] * 3, "library": [100.0] * 3, OTHERS: [0.5]})
    assert found.names == ["candidate", "library"]
    assert took_of(found.blocks[0]) == {"library": 100.0, OTHERS: 0.5}
