"""What shells are offered, asked as their scripts ask it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.agents.workflows.workflow import WORKFLOWS
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.languages import LANGUAGES
from kernelwright.tests.traces.conftest import write_campaign


def offered(line: str, home: Path) -> list[str]:
    """What is offered at the end of a line, by the protocol of Typer's script for Bash."""
    words = line.split(" ")
    done = subprocess.run(
        [sys.executable, "-m", "kernelwright"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={
            **os.environ,
            "_KERNELWRIGHT_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(len(words) - 1),
            "KERNELWRIGHT_HOME": str(home),
        },
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("kernelwright run spm", [n for n in registry.names() if n.startswith("spm")]),
        ("kernelwright eval softmax_b", ["softmax_backward"]),
        ("kernelwright problems tiny_", ["tiny_mlp_fused"]),
        ("kernelwright run softmax --language ", list(LANGUAGES)),
        ("kernelwright run softmax --target sm_9", ["sm_90"]),
        ("kernelwright run softmax --workload ti", ["tiny"]),
        ("kernelwright run nothing --workload ti", []),
        ("kernelwright suite spa", ["sparse"]),
        ("kernelwright schema show-c", ["show-candidate", "show-calls", "show-call"]),
    ],
)
def test_names_are_offered(tmp_path: Path, line: str, expected: list[str]) -> None:
    assert offered(line, tmp_path / "nothing") == expected
    assert not (tmp_path / "nothing").exists()


def test_workflows_are_offered(tmp_path: Path) -> None:
    assert offered("kernelwright run softmax --workflow ", tmp_path) == list(WORKFLOWS)


def test_campaigns_of_the_home_are_offered(tmp_path: Path) -> None:
    sample = write_campaign(tmp_path / "home")
    for command in ("show", "report", "view", "export", "audit", "bundle", "delete"):
        found = offered(f"kernelwright {command} ", tmp_path / "home")
        assert {"@last", sample.campaign} <= set(found), command
    assert offered(f"kernelwright show {sample.campaign[:9]}", tmp_path / "home") == [
        sample.campaign
    ]


def test_a_home_that_cannot_be_read_offers_what_is_known(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "kernelwright.sqlite").write_bytes(b"no store at all" * 100)
    assert offered("kernelwright show ", home) == ["@last"]
