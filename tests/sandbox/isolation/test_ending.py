"""Trees of our own processes that are ended: nothing of them runs on, in whatever session it is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.sandbox.isolation.ending import end_tree
from kernelwright.sandbox.isolation.trusted import TrustedTree

BUSY = """\
import subprocess, sys, threading

def starts():
    while True:
        subprocess.Popen(["sleep", sys.argv[1]], start_new_session=True)

for _ in range(4):
    threading.Thread(target=starts).start()
print("started", file=sys.stderr, flush=True)
"""
"""Starts processes as fast as it can, on four threads."""

HEAVY = """\
import os, sys, time
memory = bytearray(os.urandom(1 << 20) * 300)
print("started", file=sys.stderr, flush=True)
time.sleep(1000)
"""
"""The kernel takes a while to give back what it holds."""

ORPHAN = """\
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", sys.argv[1]])
    os._exit(0)
os.wait()
print("started", file=sys.stderr, flush=True)
if sys.argv[2] == "stay":
    sys.stdin.read()
    import time
    time.sleep(1000)
os._exit(7)
"""
"""Leaves a process behind that is nobody's child any more."""


def running(mark: str) -> list[str]:
    """Commands with this word that have not ended; who has, and waits to be reaped, has none."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if mark in words and words[0] == "sleep":
            found.append(process.parent.name)
    return found


@pytest.fixture
def mark() -> Iterator[str]:
    """Seconds to sleep that nobody else sleeps; whoever still does afterwards is ended."""
    word = f"1000.{time.monotonic_ns()}"
    yield word
    for pid in running(word):
        os.kill(int(pid), signal.SIGKILL)


def started(source: str, *words: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", source, *words], stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    assert process.stderr.readline() == b"started\n"
    return process


@pytest.fixture
def trees() -> Iterator[list[TrustedTree]]:
    made: list[TrustedTree] = []
    yield made
    for tree in made:
        tree.close()


def trusted(trees: list[TrustedTree], mark: str, then: str) -> TrustedTree:
    """A tree that has left an orphan behind."""
    with tempfile.TemporaryFile() as words:
        command = [sys.executable, "-I", "-S", "-c", ORPHAN, mark, then]
        tree = TrustedTree(command, {"PATH": os.environ["PATH"]}, (), words.fileno())
        trees.append(tree)
        until = time.monotonic() + 30
        while os.pread(words.fileno(), 100, 0) != b"started\n":
            assert time.monotonic() < until
            time.sleep(0.01)
    return tree


def test_what_is_being_started_meanwhile_ends_too(mark: str) -> None:
    with started(BUSY, mark) as process:
        time.sleep(0.1)
        assert running(mark)
        end_tree(process.pid)
        assert running(mark) == []


def test_who_ends_a_tree_waits_until_nothing_of_it_runs() -> None:
    with started(HEAVY) as process:
        end_tree(process.pid)
        # Not reaped, and none of its memory is held any more.
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert "State:\tZ" in status, status


def test_what_left_its_session_and_lost_its_parents_ends_with_a_trusted_tree(
    mark: str, trees: list[TrustedTree]
) -> None:
    tree = trusted(trees, mark, "stay")
    until = time.monotonic() + 30
    while not running(mark):
        assert time.monotonic() < until
        time.sleep(0.01)
    tree.close()
    assert running(mark) == []


def test_what_a_trusted_process_leaves_behind_ends_with_it(
    mark: str, trees: list[TrustedTree]
) -> None:
    tree = trusted(trees, mark, "leave")
    assert tree.wait(30) == 7
    assert running(mark) == []
