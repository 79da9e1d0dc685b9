"""The tests of tests/gpu on a machine without a device: nothing that was not tried looks well."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.errors import ExitCode, PrerequisiteError
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.run.device import nvml
from kernelwright.tests.gpu.attempt import JAIL, REQUIRED, Attempt, asked_jail, is_weak_accepted

pytestmark = pytest.mark.jail

ROOT = Path(__file__).parents[4]


@pytest.fixture
def no_device() -> None:
    try:
        with nvml.open_nvml() as module:
            found = nvml.devices(module)
    except PrerequisiteError:
        return
    if found:
        pytest.skip("there is a device here")


@pytest.mark.usefixtures("no_device")
@pytest.mark.parametrize(("required", "status"), [("", 0), ("1", 5)])
def test_a_run_that_tried_nothing_says_so_aloud_and_fails_where_it_was_to(
    required: str, status: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "tests/gpu/test_device.py"],
        cwd=ROOT,
        env={**os.environ, REQUIRED: required},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout
    assert "NOT A SINGLE KERNEL WAS RUN" in done.stdout.splitlines()[-1]


@pytest.mark.usefixtures("no_device")
def test_first_contact_says_in_one_line_that_there_is_no_device(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "first_contact.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == ExitCode.PREREQUISITE
    assert len(done.stderr.splitlines()) == 1
    assert "nothing was tried: no NVIDIA GPU can be used here" in done.stderr
    assert not list(tmp_path.iterdir())


def test_its_steps_follow_each_other_and_one_that_hangs_is_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    contact = runpy.run_path(str(ROOT / "benchmarks" / "first_contact.py"))
    steps = [
        contact["Step"](name, ["/bin/sh", "-c", script], 0.1)
        for name, script in (
            ("fine", "echo a word"),
            ("failing", "echo no >&2; exit 3"),
            ("hanging", "sleep 60"),
            ("last", "test $TEST_REQUIRE_GPU = 1 && echo required"),
        )
    ]
    log = tmp_path / "log"
    assert contact["run"]("a device", steps, 0.2, log) == 1
    told = capsys.readouterr().out
    ways = [
        line.split()[1] for line in told.splitlines() if line.startswith("  ") and line[2] != " "
    ]
    assert ways == ["well", "status", "ended", "well"]
    assert told.strip() in log.read_text()
    assert "a word" in log.read_text()
    assert "required" in told


def test_what_its_steps_are_told_is_no_setting_of_the_workbench() -> None:
    """`doctor` and `run` refuse settings that they do not know."""
    done = subprocess.run(
        [sys.executable, "-m", "kernelwright", "doctor"],
        env={**os.environ, REQUIRED: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "unknown setting" not in done.stderr
    assert done.stdout


def test_a_jail_that_does_not_confine_is_for_who_asks_for_it_and_is_told() -> None:
    assert isinstance(asked_jail({JAIL: BareJail.name}), BareJail)
    assert is_weak_accepted({JAIL: BareJail.name})
    assert not is_weak_accepted({})
    tried = Attempt("NVIDIA H200", {BareJail.name})
    assert "WITHOUT A JAIL" in tried.sentence()
    assert "WITHOUT" not in Attempt("NVIDIA H200", {"landlock"}).sentence()
    assert f"{JAIL}=bare" in Attempt("NVIDIA H200").sentence()
