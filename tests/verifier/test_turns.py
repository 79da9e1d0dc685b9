"""One timing at a time: real processes that take turns, are killed, and are named to who waits."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import CPP
from kernelwright.kernelbench.skeleton import skeleton
from kernelwright.traces.records import Status, Verdict
from kernelwright.verifier.clock.turns import WAITED, Turns, find_other
from kernelwright.verifier.request import Order

TIMES = """
import sys, time
from pathlib import Path
from kernelwright.verifier.clock.turns import Turns
turns = Turns(Path(sys.argv[1]))
turns.wait()
print("timing", flush=True)
time.sleep(600)
"""
BETWEEN = """
import subprocess, sys
one = subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdout=subprocess.PIPE, text=True)
print(one.stdout.readline().strip(), one.pid, flush=True)
sys.stdin.read()
one.kill()
"""


@contextmanager
def somebody(place: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that times, for as long as it is left alone."""
    with subprocess.Popen(
        [sys.executable, "-c", TIMES, str(place)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "timing\n"
            yield process
        finally:
            process.kill()


def test_who_times_is_waited_for_however_it_ends(tmp_path: Path) -> None:
    with Turns(tmp_path) as ours, somebody(tmp_path) as other:
        assert ours.holder() == other.pid
        waiting = threading.Thread(target=ours.wait)
        waiting.start()
        time.sleep(0.3)
        assert waiting.is_alive()
        other.kill()
        waiting.join(20)
        assert not waiting.is_alive()
        ours.give_back()
        assert ours.holder() == 0


def test_turns_at_other_places_are_others(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").touch()
    with somebody(tmp_path / "a"), Turns(tmp_path / "b") as ours:
        ours.wait()
        assert find_other(tmp_path / "b") == 0


def test_only_what_is_not_ours_is_somebody_else(tmp_path: Path) -> None:
    assert find_other(tmp_path) == 0
    with somebody(tmp_path):
        assert find_other(tmp_path) == 0
    with subprocess.Popen(
        [sys.executable, "-c", BETWEEN, TIMES, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as between:
        assert between.stdin is not None
        assert between.stdout is not None
        word, pid = between.stdout.readline().split()
        assert word == "timing"
        assert find_other(tmp_path) == int(pid)
        between.stdin.close()


def test_a_place_that_is_none_is_said_with_the_setting(tmp_path: Path) -> None:
    with pytest.raises(PrerequisiteError, match="nowhere") as caught:
        Turns(tmp_path / "nowhere")
    assert "KERNELWRIGHT_TIMING_LOCK" in (caught.value.hint or "")


def waits(pid: int) -> bool:
    """Whether a process waits for a lock (proc(5))."""
    lines = [line.split() for line in Path("/proc/locks").read_text("ascii").splitlines()]
    return any(words[1] == "->" and words[5] == str(pid) for words in lines)


def test_an_evaluation_waits_for_another_timing_and_says_so(court, turns: Path) -> None:
    referee = court.referee("softmax")
    order = Order(source=skeleton(registry.get("softmax"), CPP), language="cpp")
    found: list[Verdict] = []
    with somebody(turns) as other:
        asking = threading.Thread(target=lambda: found.append(referee.evaluate(order)))
        asking.start()
        until = time.monotonic() + 60
        while not waits(referee.pid):
            assert asking.is_alive()
            assert time.monotonic() < until
            time.sleep(0.01)
        assert not found
        time.sleep(0.2)
        other.kill()
        asking.join(120)
    assert found[0].status in (Status.SCREENED, Status.SUSPECT)
    assert found[0].seconds[WAITED] > 0.1
