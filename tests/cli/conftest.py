"""The real command in a process of its own, with a private home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import kernelwright
from kernelwright.kernelbench import registry
from kernelwright.tests.cli.published import assert_published
from kernelwright.tests.jails import skip_for_want_of_one


@dataclass(frozen=True)
class Done:
    """How the command ended."""

    code: int
    out: str
    err: str
    args: tuple[str, ...]
    """Of the command that it was."""

    def __post_init__(self) -> None:
        skip_for_want_of_one(self.err)

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON document on stdout, which keeps its schema."""
        content = json.loads(self.out)
        assert isinstance(content, dict)
        assert_published(self.args, content)
        return content


Command = Callable[..., Done]


@pytest.fixture(autouse=True)
def no_own_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command in this process makes known is forgotten after its test."""
    monkeypatch.setattr(registry, "_own", {})


@pytest.fixture
def private(tmp_path: Path, shared_cache: Path) -> dict[str, str]:
    """An environment in which nothing of the user's is seen or touched."""
    (tmp_path / "work").mkdir()
    return environment(tmp_path, shared_cache)


COMPILED = "KERNELWRIGHT_MAX_PREPARATION"
"""A test that wants the compiled baseline takes this away: it takes a minute to be ready."""


def environment(tmp_path: Path, cache: Path) -> dict[str, str]:
    """What the command may see: private folders, and this package."""
    kept = {
        key: os.environ[key] for key in ("PATH", "LANG", "LD_LIBRARY_PATH") if key in os.environ
    }
    return {
        **kept,
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "KERNELWRIGHT_HOME": str(tmp_path / "home"),
        "KERNELWRIGHT_CACHE_DIR": str(cache),
        "KERNELWRIGHT_TIMING_LOCK": os.environ["KERNELWRIGHT_TIMING_LOCK"],
        COMPILED: "20s",
        "PYTHONPATH": str(Path(kernelwright.__file__).parent.parent),
        "PYTHONWARNINGS": "error",
        "COLUMNS": "120",
    }


@pytest.fixture
def kw(private: dict[str, str], tmp_path: Path) -> Command:
    """Runs `kernelwright ARGS…` and gives its exit status and both streams."""

    def run(*args: str, env: Mapping[str, str] | None = None, timeout: float = 240) -> Done:
        done = subprocess.run(
            [sys.executable, "-m", "kernelwright", *args],
            env={**private, **(env or {})},
            cwd=tmp_path / "work",
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr, args)

    return run


@pytest.fixture
def kw_here(
    private: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Command:
    """The same in this process: for what ends before anything is started."""
    from kernelwright.cli import main

    for name in [name for name in os.environ if name.startswith("KERNELWRIGHT_")]:
        monkeypatch.delenv(name)
    for name, value in private.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path / "work")

    def run(*args: str) -> Done:
        code = main(args)
        streams = capsys.readouterr()
        return Done(code, streams.out, streams.err, args)

    return run
