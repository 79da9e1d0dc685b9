"""Every target with a few inputs, the same ones each time; `make fuzz` tries others for long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import kernelwright
from kernelwright.tests.fuzz.catalogue import TARGETS
from kernelwright.tests.fuzz.target import Target, run


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name.replace(" ", "-"))
def test_nothing_but_what_is_allowed_comes_out(target: Target) -> None:
    run(target)


def test_a_check_that_fails_is_seen() -> None:
    def refuse(drawn: tuple[list[bytes], bool]) -> None:
        assert not drawn[1]

    frames = TARGETS[0]
    with pytest.raises(AssertionError):
        run(Target("broken", frames.strategy, refuse), 50)


def test_the_long_run_ends_in_time() -> None:
    command = [sys.executable, "-m", "kernelwright.tests.fuzz.run"]
    done = subprocess.run(
        [*command, "--seconds", "0.5", "--only", "settings"],
        capture_output=True, text=True, timeout=120, check=False,
        env={"PYTHONPATH": str(Path(kernelwright.__file__).parent.parent), "PATH": "/usr/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "settings: " in done.stdout
