"""A real process that waits at its gate, frozen and thawed, with a thread that never rests."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from kernelwright.errors import SandboxError
from kernelwright.sandbox.run.gate import Gate
from kernelwright.sandbox.run.process import cpu_ns

pytestmark = pytest.mark.jail

WAITS = """
import mmap, sys, threading
gate, looks = (memoryview(mmap.mmap(int(fd), 4096, prot=int(p))).cast("I")
               for fd, p in zip(sys.argv[1:], "13"))
def works():
    while True:
        looks[8] = (looks[8] + 1) & 0xFFFF
threading.Thread(target=works, daemon=True).start()
turn = 0
while gate[0] != 7:
    turn += 1
    looks[0] = turn
looks[4] = gate[1]
"""


class Waiting:
    """A process at a gate."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.process = subprocess.Popen(
            [sys.executable, "-c", WAITS, *map(str, self.gate.fds)], pass_fds=self.gate.fds
        )
        self.gate.watch(self.process.pid)
        self.wait_for(lambda: self.gate._looks[0] and self.gate._looks[8])

    def wait_for(self, holds) -> None:
        until = time.monotonic() + 20
        while not holds():
            assert time.monotonic() < until
            time.sleep(0.001)

    def cpu_ns(self) -> int:
        return cpu_ns(self.process.pid)

    def words(self) -> list[int]:
        return self.gate._looks.tolist()


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    one = Waiting()
    yield one
    one.process.kill()
    one.process.wait()
    one.gate.close()


def test_no_thread_of_a_frozen_process_goes_on(waiting: Waiting) -> None:
    spent = waiting.gate.freeze(waiting.cpu_ns)
    before = waiting.words()
    time.sleep(0.1)
    assert waiting.words() == before
    assert waiting.cpu_ns() - spent < 1e6
    waiting.gate.thaw(lambda: None)
    assert waiting.words()[0] != before[0]
    waiting.wait_for(lambda: waiting.words()[8] != before[8])


def test_the_gate_opens_with_what_was_chosen(waiting: Waiting) -> None:
    waiting.gate.freeze(waiting.cpu_ns)
    waiting.gate.thaw(lambda: None)
    waiting.gate.open(7, 41)
    assert waiting.process.wait(20) == 0
    assert waiting.words()[4] == 41


def test_both_run_where_they_could_run_before(waiting: Waiting) -> None:
    pid = waiting.process.pid
    sets = os.sched_getaffinity(0), os.sched_getaffinity(pid)
    try:
        for theirs in ({min(sets[1])}, sets[1]):
            os.sched_setaffinity(pid, theirs)
            for _ in range(5):
                waiting.gate.freeze(waiting.cpu_ns)
                waiting.gate.thaw(lambda: None)
                assert (os.sched_getaffinity(0), os.sched_getaffinity(pid)) == (sets[0], theirs)
    finally:
        os.sched_setaffinity(0, sets[0])


def test_a_process_that_has_ended_holds_nobody_up(waiting: Waiting) -> None:
    waiting.process.kill()
    waiting.process.wait()
    waiting.gate.freeze(lambda: 5)
    waiting.gate.thaw(lambda: None)
    waiting.gate.open(7)
    with pytest.raises(SandboxError, match=str(waiting.process.pid)):
        Gate().watch(waiting.process.pid)


def test_only_its_own_words_can_be_written_by_the_process() -> None:
    gate = Gate()
    try:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.pwrite(gate.fds[0], b"1", 0)
        assert os.pwrite(gate.fds[1], b"1", 0) == 1
    finally:
        gate.close()
    gate.close()
