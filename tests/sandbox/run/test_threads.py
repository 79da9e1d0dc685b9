"""CPU time of the threads of a real process, told from outside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from kernelwright.sandbox.run.process import cpu_ns
from kernelwright.sandbox.run.threads import Threads

pytestmark = pytest.mark.jail

WORKS = """
import sys, threading, time
def works(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
    print("done", flush=True)
for line in sys.stdin:
    word, seconds = line.split()
    if word == "here":
        works(float(seconds))
    else:
        one = threading.Thread(target=lambda: (works(float(seconds)), time.sleep(60)), daemon=True)
        one.start()
"""
Asked = Callable[[str], None]


@pytest.fixture
def worker() -> Iterator[tuple[int, Asked]]:
    with subprocess.Popen(
        [sys.executable, "-c", WORKS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def ask(what: str) -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(what + "\n")
            process.stdin.flush()
            process.stdout.readline()
            time.sleep(0.05)
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(0.05)

        yield process.pid, ask
        process.kill()


def test_the_busiest_thread_is_told_and_not_their_sum(worker: tuple[int, Asked]) -> None:
    pid, ask = worker
    threads = Threads(pid)
    ask("here 0.2")
    threads.take_usage()
    before = cpu_ns(pid)
    for what, least in (("beside 0.3", 0.3), ("beside 0.1", 0.1), ("here 0.15", 0.15)):
        os.kill(pid, signal.SIGCONT)
        ask(what)
        assert least - 0.01 < threads.take_usage().busiest_ns / 1e9 < least + 0.06
    assert cpu_ns(pid) - before > 0.54e9
    assert threads.take_usage().busiest_ns == 0
    threads.close()
    threads.close()


def test_all_have_stopped_only_once_none_goes_on(worker: tuple[int, Asked]) -> None:
    pid, ask = worker
    threads = Threads(pid)
    assert not threads.have_stopped()
    ask("beside 0.01")
    assert threads.have_stopped()
    os.kill(pid, signal.SIGCONT)
    assert not threads.have_stopped()
    ask("beside 0.01")
    assert threads.have_stopped()
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert threads.have_stopped()
    threads.close()


def test_of_a_process_that_is_gone_nothing_is_told(worker: tuple[int, Asked]) -> None:
    pid, ask = worker
    threads = Threads(pid)
    ask("here 0.1")
    assert threads.take_usage().busiest_ns > 0
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert threads.take_usage().busiest_ns == 0
    threads.close()
