"""The tests of tests/gpu on a machine without a device: nothing that was not tried looks well."""

from __future__ import annotations

import os
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


def test_what_its_parts_are_told_is_no_setting_of_the_workbench() -> None:
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
