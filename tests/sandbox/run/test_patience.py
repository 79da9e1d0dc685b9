"""An answer that is late because other processes had the CPU is waited for; another one is not."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kernelwright.sandbox.frames import FrameError, FrameKind, receive_patiently
from kernelwright.sandbox.run.threads import Threads

ANSWERS = """
import socket, struct, sys, time
channel = socket.socket(fileno=int(sys.argv[1]))
how, seconds = sys.argv[2], float(sys.argv[3])
channel.recv(1)
if how == "works":
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass
else:
    time.sleep(seconds)
channel.send(struct.pack("<IIQQ", 3, 7, 0, 0))
time.sleep(60)
"""
WORK_S = 0.6
DEADLINE_S = 0.9
"""Enough for the work alone, and not beside two others that want the same CPU."""
Started = Callable[[str, float], tuple[socket.socket, Callable[[], float]]]


@pytest.fixture
def crowded() -> Iterator[Started]:
    """Starts a process on a CPU that two others want all the time."""
    with ExitStack() as stack:
        cpu = {min(os.sched_getaffinity(0))}

        def run(*command: str, **more: Any) -> subprocess.Popen[bytes]:
            started = subprocess.Popen([sys.executable, "-c", *command], **more)
            stack.callback(started.wait)
            stack.callback(started.kill)
            os.sched_setaffinity(started.pid, cpu)
            return started

        def start(how: str, seconds: float) -> tuple[socket.socket, Callable[[], float]]:
            here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            stack.callback(here.close)
            with there:
                told = (ANSWERS, str(there.fileno()), how, str(seconds))
                process = run(*told, pass_fds=[there.fileno()])
            threads = Threads(process.pid)
            stack.callback(threads.close)
            for _ in range(2):
                run("while True: pass")
            here.send(b"!")
            threads.take_usage()
            return here, lambda: threads.take_usage().waited_ns / 1e9

        yield start


def test_a_busy_machine_is_nothing_that_it_could_help(crowded: Started) -> None:
    channel, stood_s = crowded("works", WORK_S)
    frame = receive_patiently(channel, DEADLINE_S, stood_s).frame
    assert (frame.kind, frame.nonce) == (FrameKind.DONE, 7)


@pytest.mark.parametrize("how", ["works", "sleeps"])
def test_what_takes_too_long_by_itself_is_late(crowded: Started, how: str) -> None:
    channel, stood_s = crowded(how, 60.0)
    with pytest.raises(FrameError) as error:
        receive_patiently(channel, DEADLINE_S, stood_s)
    assert error.value.is_late
