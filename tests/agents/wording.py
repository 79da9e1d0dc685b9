"""A copy of the rooms that word prompts, in which a test may edit what it likes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernelwright.agents.prompting import version


def copied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The copy, which from now on decides what the prompts' version is."""
    copy = tmp_path / "package"
    for room in version.WORDED_IN:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(version.PACKAGE / room, copy / room, ignore=ignored)
    for name in version.SHARED:
        (copy / name).parent.mkdir(exist_ok=True)
        shutil.copy(version.PACKAGE / name, copy / name)
    monkeypatch.setattr(version, "PACKAGE", copy)
    return copy


def reword(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Prompts say something else from now on."""
    edited = copied(monkeypatch, tmp_path) / "agents" / "prompting" / "history_text.py"
    text = edited.read_text("utf-8")
    assert "Do not repeat what was tried" in text
    edited.write_text(text.replace("Do not repeat", "Feel free to repeat"), "utf-8")
