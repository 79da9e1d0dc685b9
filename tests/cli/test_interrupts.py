"""Ctrl-C on a real terminal: once in order, twice at once, and nothing is left running."""

from __future__ import annotations

import ctypes
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kernelwright.cli.carry_out import remembered_presses
from kernelwright.tests.agents.endpoint import Endpoint, Turn
from kernelwright.traces.history import History, derive
from kernelwright.traces.outcome import why_no_winner
from kernelwright.traces.store import Store

from .conftest import environment

pytestmark = pytest.mark.slow

RUN = ("run", "softmax", "--target", "cpu", "--workload", "tiny", "--max-time", "200s")
SLOW_RUN = tuple("4096x1024" if word == "tiny" else word for word in RUN)
"""One evaluation takes seconds: it has not ended between two presses."""
_PR_SET_CHILD_SUBREAPER = 36
LONG_S = 150.0
"""More than anything here takes, on the busiest machine."""


class Terminal:
    """A command that runs in a terminal of its own, and what it shows there."""

    def __init__(self, folder: Path, cache: Path, *args: str, **more: str) -> None:
        (folder / "work").mkdir()
        self.home = folder / "home"
        environ = {**environment(folder, cache), "TERM": "xterm-256color", "COLUMNS": "150", **more}
        self._screen, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kernelwright", *args],
            env=environ,
            cwd=folder / "work",
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._shown = bytearray()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def text(self) -> str:
        """Everything shown so far, without what moves the cursor."""
        words = bytes(self._shown).decode(errors="replace")
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", words)

    def wait_for(self, pattern: str) -> None:
        """Until the screen showed it."""
        deadline = time.monotonic() + LONG_S
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline, self.text[-2000:]
            assert self.process.poll() is None, self.text[-2000:]
            time.sleep(0.02)

    def press(self) -> None:
        """Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def end(self, timeout_s: float = LONG_S) -> int:
        """Waits for its end."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout_s)
        assert self.process.poll() is not None, self.text[-2000:]
        self._reader.join(5.0)
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.end()
        os.close(self._screen)

    def history(self) -> History:
        """Of its one campaign."""
        with Store.open(self.home, read_only=True) as store:
            (campaign,) = store.campaigns()
            return derive(store.events(campaign))

    def _read(self) -> None:
        with suppress(OSError):
            while part := os.read(self._screen, 1 << 16):
                self._shown += part


@pytest.fixture
def orphans() -> Iterator[Callable[[], list[str]]]:
    """What outlives the process that started it comes to us: gives the commands of those."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    others = set(_children())
    yield lambda: _living_children(others)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _living_children(others: set[str]) -> list[str]:
    """After a moment in which the killed may vanish; the others are no concern of the test."""
    deadline = time.monotonic() + 2.0
    while found := {pid: words for pid, words in _children().items() if pid not in others}:
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return list(found.values())


def _children() -> dict[str, str]:
    """By their process ids."""
    return {pid.name: words for pid in Path("/proc").glob("[0-9]*") if (words := _child(pid))}


def _child(process: Path) -> str:
    try:
        state, parent = (process / "stat").read_text().rpartition(") ")[2].split()[:2]
        if parent != str(os.getpid()):
            return ""
        if state == "Z":
            os.waitpid(int(process.name), os.WNOHANG)
            return ""
        return (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


@pytest.fixture
def opened(tmp_path: Path, shared_cache: Path) -> Iterator[Callable[..., Terminal]]:
    terminals: list[Terminal] = []

    def run(*args: str, cache: Path = shared_cache, **more: str) -> Terminal:
        terminals.append(Terminal(tmp_path, cache, *args, **more))
        return terminals[-1]

    yield run
    for terminal in terminals:
        terminal.close()


Opened = Callable[..., Terminal]
Orphans = Callable[[], list[str]]


# A busy machine may leave no candidate that is confirmed.
@pytest.mark.timed
@pytest.mark.parametrize("moment", [r"screen of #1", r"confirm of #\d+"])
def test_the_second_press_ends_everything_at_once_and_says_how_to_go_on(
    opened: Opened, orphans: Orphans, moment: str
) -> None:
    terminal = opened(*SLOW_RUN)
    terminal.wait_for(moment)
    terminal.press()
    terminal.wait_for("stopping after this: .*; Ctrl-C again stops at once")
    terminal.press()
    assert terminal.end(timeout_s=5.0) == 130
    assert orphans() == []
    history = terminal.history()
    assert f"resume   kernelwright run --resume {history.campaign}" in terminal.text
    assert bytes(terminal._shown).rstrip().endswith(history.campaign.encode())
    assert b"\x1b[?25h" in terminal._shown
    assert "Traceback" not in terminal.text, terminal.text


@pytest.mark.timed
def test_the_first_press_says_what_it_waits_for_with_a_clock_that_moves(opened: Opened) -> None:
    terminal = opened(*RUN)
    terminal.wait_for(r"confirm of #\d+")
    terminal.press()
    terminal.wait_for(r"stopping after this: confirm of #\d+, 1s")
    if "champion #" not in terminal.text:
        with suppress(AssertionError):
            terminal.wait_for(r"stopping after this: confirm of #\d+, [2-9]s")
    assert terminal.end() == 130
    history = terminal.history()
    assert history.finished is not None
    assert history.finished.stopped_by == "interrupted"
    assert all(not entry.cut_off for entry in history.entries.values())


def test_a_press_while_baselines_are_prepared_ends_it_in_order(
    opened: Opened, orphans: Orphans, tmp_path: Path
) -> None:
    cache = tmp_path / "cold"
    cache.mkdir(mode=0o755)
    terminal = opened(*RUN, cache=cache)
    terminal.wait_for(r"not counted yet  preparing the baselines")
    terminal.press()
    assert terminal.end() == 130
    assert orphans() == []
    why = why_no_winner(terminal.history())
    assert why == (
        "no candidate was evaluated: it was interrupted while the baselines were prepared"
    )
    assert f"no verified winner: {why}" in terminal.text


def test_a_press_before_there_is_a_campaign_leaves_nothing(
    opened: Opened, orphans: Orphans, tmp_path: Path
) -> None:
    cache = tmp_path / "cold"
    cache.mkdir(mode=0o755)
    terminal = opened(*RUN, cache=cache)
    terminal.wait_for("starting the referee")
    terminal.press()
    assert terminal.end() == 130
    assert orphans() == []
    assert "Traceback" not in terminal.text, terminal.text


def test_a_press_that_a_finalizer_swallows_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pressing:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)
            time.sleep(0)

    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)
    before = signal.getsignal(signal.SIGINT)
    with remembered_presses() as pressed:
        Pressing()
        assert pressed == [signal.SIGINT]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_press_in_a_call_says_so_and_the_second_does_not_wait_for_the_model(
    opened: Opened, orphans: Orphans
) -> None:
    with Endpoint(lambda _request: Turn("late", delay_s=LONG_S)) as server:
        terminal = opened(
            *RUN, "--model", "openai/m", "--workflow", "forge", OPENAI_BASE_URL=server.url
        )
        terminal.wait_for(r"asking openai/m \(write\)")
        terminal.press()
        terminal.wait_for(r"stopping after this: asking openai/m \(write\)")
        terminal.press()
        assert terminal.end(timeout_s=5.0) == 130
    assert orphans() == []
    assert "resume   kernelwright run --resume" in terminal.text


def test_a_refusing_endpoint_is_told_with_its_words_and_the_next_attempt(opened: Opened) -> None:
    error = {"message": "overloaded, come back later", "type": "x", "param": None, "code": None}
    with Endpoint(lambda _request: Turn(status=503, error=error)) as server:
        terminal = opened(
            *RUN,
            "--model",
            "openai/m",
            "--workflow",
            "forge",
            "--model-patience",
            "4s",
            OPENAI_BASE_URL=server.url,
        )
        terminal.wait_for("no answer: server error: .*overloaded, come back later.*; again in ")
        terminal.wait_for(r"waiting for the next attempt in \d")
        assert terminal.end() == 4
    campaign = terminal.history().campaign
    assert f"kernelwright run --resume {campaign}" in " ".join(terminal.text.split())
