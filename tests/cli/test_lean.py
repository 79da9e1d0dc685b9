"""What a command says where a package or the system is not what it needs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kernelwright import extras
from kernelwright.errors import ExitCode, PrerequisiteError

HIDDEN = """
import sys
class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named '{{name}}'", name=name)
sys.meta_path.insert(0, Hide())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in {names!r} else found(name)
from kernelwright.cli import main
sys.exit(main({arguments!r}))
"""
ELSEWHERE = """
import subprocess, sys, sysconfig
import platformdirs, pydantic, typer
sysconfig.get_config_vars()
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
sys.platform = {platform!r}
from kernelwright.cli import main
sys.exit(main(["run", "softmax"]))
"""


def run(code: str, home: str) -> subprocess.CompletedProcess[str]:
    own = {"KERNELWRIGHT_HOME": home, "HOME": home, "OPENAI_API_KEY": "none"}
    environment = {"PATH": os.environ["PATH"], **own}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )


@pytest.mark.parametrize(
    ("names", "arguments", "extra"),
    [
        (("fastapi", "plotly"), ["view"], "view"),
        (("plotly",), ["report", "@last"], "view"),
        (("openai",), ["run", "softmax", "--model", "openai/some", "--max-usd", "1"], "llm"),
    ],
)
def test_a_command_says_which_extra_is_missing(
    tmp_path: object, names: tuple[str, ...], arguments: list[str], extra: str
) -> None:
    done = run(HIDDEN.format(names=names, arguments=arguments), str(tmp_path))
    assert done.returncode == ExitCode.PREREQUISITE, done.stderr
    first, _, hint = done.stderr.partition("\n\n")
    assert all(name in first for name in names)
    assert hint == f"hint: pip install 'kernelwright[{extra}]'\n"


@pytest.mark.slow
def test_what_needs_no_extra_runs_without_any(tmp_path: object) -> None:
    names = tuple(name for every in extras.EXTRAS.values() for name in every)
    done = run(HIDDEN.format(names=names, arguments=["problems", "softmax"]), str(tmp_path))
    assert done.returncode == 0, done.stderr
    dry = ["run", "softmax", "--target", "cpu", "--dry-run"]
    done = run(HIDDEN.format(names=names, arguments=dry), str(tmp_path))
    assert done.returncode == 0, done.stderr


def test_an_extra_that_is_there_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extras.EXTRAS, "view", ("json",))
    extras.require("view", "the viewer")
    monkeypatch.setitem(extras.EXTRAS, "view", ("json", "no_such_package"))
    with pytest.raises(PrerequisiteError, match="the viewer needs no_such_package, which is not"):
        extras.require("view", "the viewer")


@pytest.mark.parametrize(("platform", "name"), [("win32", "Windows"), ("darwin", "macOS")])
def test_another_system_is_refused_in_a_sentence(
    tmp_path: object, platform: str, name: str
) -> None:
    done = run(ELSEWHERE.format(platform=platform), str(tmp_path))
    assert done.returncode == ExitCode.PREREQUISITE
    assert done.stderr.startswith("error: Kernelwright runs kernels in Linux sandboxes")
    assert f"this is {name}" in done.stderr
    assert "Traceback" not in done.stderr
