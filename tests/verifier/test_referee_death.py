"""A referee that is killed in the middle: the candidate is evaluated again, the campaign lives."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from kernelwright.kernelbench.registry import get
from kernelwright.traces.records import Status, Verdict
from kernelwright.verifier.process.client import RefereeProcess
from kernelwright.verifier.request import Order, Task

pytestmark = pytest.mark.slow
SEVEN = Path(__file__).parent / "seven"


class Mortal(RefereeProcess):
    """A referee whose process is killed as its next evaluations begin."""

    deaths = 0

    def _evaluate(self, order: Order) -> Verdict:
        if self.deaths:
            self.deaths -= 1
            os.kill(self.pid, signal.SIGKILL)
        return super()._evaluate(order)


class Pressed(RefereeProcess):
    """A referee for which Ctrl-C is pressed once its process is there and nobody knows it yet."""

    born: int

    def _launch(self, theirs: socket.socket) -> subprocess.Popen[bytes]:
        process = super()._launch(theirs)
        Pressed.born = process.pid
        signal.raise_signal(signal.SIGINT)
        time.sleep(0)  # where it would be heard
        return process


def test_a_press_while_a_referee_is_started_leaves_none(shared_cache: Path) -> None:
    workload = get("spmm_csr").workload("tiny")
    # Whoever runs tests in the background has none that is heard.
    found = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            Pressed(Task(problem="spmm_csr", workload=workload, cache_dir=str(shared_cache)))
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, found)
    with pytest.raises(ProcessLookupError):
        os.kill(Pressed.born, 0)


def test_e4_a_killed_referee_is_replaced_once_and_then_told_of(shared_cache: Path) -> None:
    """E4: one death: evaluated again; two: a verdict says so, and the next candidate passes."""
    workload = get("spmm_csr").workload("tiny")
    task = Task(problem="spmm_csr", workload=workload, cache_dir=str(shared_cache))
    order = Order(source=(SEVEN / "wrong.cpp").read_text(), language="cpp")
    with Mortal(task) as referee:
        first = referee.pid
        referee.deaths = 1
        assert referee.evaluate(order).status is Status.INCORRECT
        assert referee.pid != first
        referee.deaths = 2
        lost = referee.evaluate(order)
        assert lost.status is Status.HARNESS_ERROR
        assert "ended twice" in lost.reasons[0]
        assert referee.evaluate(order).status is Status.INCORRECT
