"""The compiled runners: anew for every change of what they are made of, and for nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kernelwright.sandbox.builders.workshop import Workshop
from kernelwright.sandbox.isolation.bare import BareJail
from kernelwright.sandbox.run import binary

pytestmark = pytest.mark.jail


@pytest.mark.parametrize("made", [binary.runner_binary, binary.device_runner_binary])
def test_a_header_is_part_of_what_a_runner_is_made_of(
    made: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = tmp_path / "run"
    shutil.copytree(Path(binary.__file__).parent, sources)
    monkeypatch.setattr(binary, "_HERE", sources)
    monkeypatch.setattr(binary, "_NATIVE", sources / "runner.cpp")
    monkeypatch.setattr(binary, "_DEVICE", sources / "device" / "device_runner.cpp")
    assert callable(made)
    workshop = Workshop(BareJail(), tmp_path / "cache")
    first = made(workshop)
    assert made(workshop) == first
    with (sources / "wire.hpp").open("a") as header:
        header.write("// changed\n")
    assert made(workshop) != first


def test_candidates_do_not_find_the_runners_functions(tmp_path: Path) -> None:
    if shutil.which("nm") is None:
        pytest.skip("nm is not installed")
    runner = binary.runner_binary(Workshop(BareJail(), tmp_path))
    told = subprocess.run(
        ["nm", "--dynamic", "--demangle", "--defined-only", str(runner)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "main" in told
    assert "wire::" not in told
