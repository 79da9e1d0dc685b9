"""What a referee makes ready before the first candidate: waited for, told, and capped."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import PrerequisiteError
from kernelwright.kernelbench import registry
from kernelwright.traces.records import Depth
from kernelwright.verifier.baselines.process import BaselineProcess
from kernelwright.verifier.process.client import open_referee
from kernelwright.verifier.request import Order, Task
from kernelwright.verifier.stands.opening import open_stand
from kernelwright.verifier.stands.reference import (
    CALIBRATION_CALLS,
    CALIBRATION_S,
    LEAST_CALIBRATION_CALLS,
    first_time,
)

pytestmark = pytest.mark.slow


def task(cache: Path, **more: object) -> Task:
    cache.chmod(0o755)
    workload = registry.workload_for(registry.get("softmax"), "tiny")
    return Task.model_validate(
        {"problem": "softmax", "workload": workload, "cache_dir": str(cache), **more}
    )


@pytest.fixture
def stuck_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A g++ that never ends with what torch.compile gives it; tells who waits for it."""
    real = shutil.which("g++")
    assert real
    folder = tmp_path / "bin"
    folder.mkdir()
    waiting = tmp_path / "waiting"
    wrapper = folder / "g++"
    wrapper.write_text(
        "#!/bin/sh\n"
        f'case "$*" in *inductor*) echo $$ >> {waiting}; exec sleep 1000;; esac\n'
        f'exec {real} "$@"\n'
    )
    wrapper.chmod(wrapper.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return waiting


def is_running(pid: str) -> bool:
    """Whether it has not ended; one that has waits for the machine's first process to notice."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(") ")[2][0] not in "ZX"


def within(seconds: float, holds: Callable[[], object]) -> bool:
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.timed
def test_a_baseline_that_is_late_is_left_out_by_name_and_its_compiler_ends(
    tmp_path: Path, stuck_compiler: Path
) -> None:
    source = (Path(__file__).parents[1] / "honest" / "native" / "softmax_online.cpp").read_text()
    (tmp_path / "cache").mkdir()
    with open_referee(task(tmp_path / "cache", preparation_s=25.0)) as referee:
        found = referee.prepare()
        assert found is not None
        assert found.baselines == ("torch eager",)
        assert "not ready within 25 s (--max-preparation)" in found.missing["torch.compile"]
        assert set(found.seconds) == {"referee", "baselines"}
        again = referee.prepare()
        assert again is not None
        assert (again.baselines, again.seconds) == (("torch eager",), {})
        verdict = referee.evaluate(Order(source=source, language="cpp", protocol=Depth.SCREEN))
    assert verdict.measurement is not None, verdict.reasons
    assert verdict.measurement.missing == found.missing
    assert stuck_compiler.read_text()
    assert [pid for pid in stuck_compiler.read_text().split() if is_running(pid)] == []


@pytest.mark.heavy
def test_a_baseline_that_ends_its_process_is_left_out_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A library that crashes costs a line, not the campaign."""
    prepare = BaselineProcess._prepare

    def crash(self: BaselineProcess, name: str, *asked: Any) -> str:
        if name == "torch.compile":
            os.kill(self.pid, signal.SIGSEGV)
        return prepare(self, name, *asked)

    monkeypatch.setattr(BaselineProcess, "_prepare", crash)
    (tmp_path / "cache").mkdir()
    stand = open_stand(task(tmp_path / "cache"))
    try:
        found = stand.wait_prepared()
    finally:
        stand.close()
    assert found.baselines == ("torch eager",)
    assert "the baseline process failed" in found.missing["torch.compile"]


@pytest.mark.heavy
def test_a_compiler_of_a_baseline_does_not_outlive_a_referee_that_is_killed(
    tmp_path: Path, stuck_compiler: Path
) -> None:
    (tmp_path / "cache").mkdir()
    with open_referee(task(tmp_path / "cache", preparation_s=200.0)) as referee:
        assert within(120.0, lambda: stuck_compiler.exists() and stuck_compiler.read_text())
        os.kill(referee.pid, signal.SIGKILL)
        (compiler,) = stuck_compiler.read_text().split()
        # Whom nobody tells finds out by itself.
        assert within(30.0, lambda: not is_running(compiler))


@pytest.mark.heavy
def test_a_stand_that_is_closed_waits_for_no_compiler(tmp_path: Path, stuck_compiler: Path) -> None:
    """A dry run, and a source that does not build, need no baselines."""
    (tmp_path / "cache").mkdir()
    stand = open_stand(task(tmp_path / "cache", preparation_s=200.0))
    try:
        assert within(120.0, lambda: stuck_compiler.exists() and stuck_compiler.read_text())
    finally:
        begun = time.monotonic()
        stand.close()
    assert time.monotonic() - begun < 60.0
    assert [pid for pid in stuck_compiler.read_text().split() if is_running(pid)] == []


def test_nothing_that_is_ready_in_time_says_which_limit_to_raise(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    with (
        open_referee(task(tmp_path / "cache", preparation_s=0.01)) as referee,
        pytest.raises(PrerequisiteError, match="not ready within") as caught,
    ):
        referee.prepare()
    assert "--max-preparation" in caught.value.hint


def test_who_does_not_want_it_any_more_is_not_kept_waiting(tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    with open_referee(task(tmp_path / "cache")) as referee:
        assert referee.prepare(lambda: False) is None
        pid = referee.pid
    assert not Path(f"/proc/{pid}").exists()


def test_a_slow_baseline_is_called_less_often_for_a_first_idea_of_its_time() -> None:
    for us, calls in (
        (10.0, CALIBRATION_CALLS),
        (0.3 * CALIBRATION_S * 1e6, 4),
        (2 * CALIBRATION_S * 1e6, LEAST_CALIBRATION_CALLS),
    ):
        asked: list[float] = []

        def take(us: float = us, asked: list[float] = asked) -> float:
            asked.append(us)
            return us

        assert first_time(take) == us
        assert len(asked) == calls
