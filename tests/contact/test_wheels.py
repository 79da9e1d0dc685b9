"""What a machine must have for a first contact, and what is said where it has not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.benchmarks.contact import wheels
from kernelwright.benchmarks.contact.parts import PARTS

ROOT = Path(__file__).parents[2]


def test_every_part_says_what_it_needs_of_what_the_project_declares() -> None:
    assert list(wheels.NEEDS) == list(PARTS)
    named = {name for needed in wheels.NEEDS.values() for name in needed} | set(wheels.WITHOUT)
    assert named <= set(wheels.list_declared())


def test_what_is_missing_is_said_with_the_parts_that_cannot_be_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    absent = {"langgraph", "pytest", "triton"}
    monkeypatch.setattr(wheels, "is_here", lambda name: name not in absent)
    monkeypatch.setattr(wheels.shutil, "which", lambda _: None)
    assert wheels.list_missing("recipes") == ["langgraph"]
    assert wheels.list_missing("facts") == []
    said = wheels.describe_missing(("facts", "tests", "recipes"))
    assert "missing: langgraph; not begun without it: recipes" in said
    assert "missing: pytest; not begun without it: tests" in said
    assert any(line.startswith("missing: triton; ") for line in said)
    assert any(line.startswith("missing: g++; ") for line in said)
    assert len(said) == 4


def test_a_wheel_for_cuda_12_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "nvidia-cuda-nvrtc-cu12":
            return "12.9"
        raise wheels.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(wheels.metadata, "version", version)
    assert wheels.is_here("nvidia-cuda-nvrtc")
    assert not wheels.is_here("triton")


def test_a_python_with_nothing_names_what_is_missing_before_anything_is_begun(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-E", "-s", "-S", str(ROOT / "benchmarks" / "first_contact.py")],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    for name in wheels.EVERY_PART:
        assert re.search(rf"^missing: {re.escape(name)};", done.stderr, re.MULTILINE)
    assert "nothing was tried" in done.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_a_checkout_that_is_not_installed_is_found_and_by_what_it_starts(tmp_path: Path) -> None:
    text = (
        "import os, subprocess, sys\n"
        f"sys.path.insert(0, {str(ROOT / 'benchmarks')!r})\n"
        "from pathlib import Path\n"
        "from contact import wheels\n"
        f"wheels.place_package(Path({str(tmp_path)!r}))\n"
        "import kernelwright.errors\n"
        "print(Path(kernelwright.errors.__file__).resolve())\n"
        "words = [sys.executable, '-S', '-c', 'import kernelwright.errors']\n"
        "subprocess.run(words, check=True, cwd='/')\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", text], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(ROOT / "errors.py")
