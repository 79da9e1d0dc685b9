"""A user's program with a kernel and without it: what is found of it, and what is refused.

The programs print figures that follow from how they were started, so that no clock decides. They
import a `torch` of their own: what is held here is when `apply()` is called, and by whom.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelwright.tests.cli.conftest import Done

APPLY = """
import atexit, json, os

SERVED, MISSED = {served}, {missed}

def apply():
    os.environ["IS_APPLIED"] = "1"
    if path := os.environ.get("KW_APPLY_REPORT"):
        line = json.dumps(dict(served=SERVED, missed=MISSED))
        atexit.register(lambda: open(path, "a").write(line + chr(10)))
"""
PROGRAM = """
import os
print("took 100.0 ms of warming")
import torch
noise = 1 + int.from_bytes(os.urandom(1), "big") / 25600
print(f"took {({figures}[os.environ.get('IS_APPLIED', '0')]) * noise} ms")
"""
READ = "took ([0-9.]+) ms"
Ab = Callable[..., Done]


@pytest.fixture
def package(tmp_path: Path) -> Callable[..., Path]:
    """An exported package of which only what `ab` touches is there."""

    def make(
        served: int = 7, missed: dict[str, int] | None = None, status: str = "VERIFIED"
    ) -> Path:
        module = tmp_path / "out" / "kw_softmax_12345678"
        module.mkdir(parents=True)
        (module / "__init__.py").write_text("from .apply import apply\n")
        (module / "apply.py").write_text(APPLY.format(served=served, missed=missed or {}))
        (module / "record.json").write_text(json.dumps({"status": status}))
        return module.parent

    return make


@pytest.fixture
def program(tmp_path: Path) -> Callable[..., Path]:
    """A program whose figure is the first with the kernel, the second without."""

    def make(applied: float = 1.0, plain: float = 1.0, text: str = PROGRAM) -> Path:
        folder = tmp_path / "program"
        folder.mkdir()
        (folder / "torch.py").write_text("")
        figures = {"1": applied, "0": plain}
        path = folder / "main.py"
        path.write_text(text.replace("{figures}", repr(figures)))
        return path

    return make


@pytest.fixture
def ab(kw_here: Callable[..., Done]) -> Ab:
    def run(package: Path, *words: str) -> Done:
        return kw_here("ab", "--package", str(package), "--pairs", "5", *words)

    return run


@pytest.mark.parametrize(
    ("applied", "plain", "outcome", "code"),
    [
        (5.0, 9.0, "faster", 0),
        (9.0, 5.0, "slower", 1),
        (7.0, 7.0, "no difference", 1),
    ],
)
def test_the_outcome_follows_the_pairs(
    ab: Ab,
    package: Callable[..., Path],
    program: Callable[..., Path],
    applied: float,
    plain: float,
    outcome: str,
    code: int,
) -> None:
    path = program(applied, plain)
    words = ("--read", READ, "--json", "--", sys.executable, str(path))
    done = ab(package(missed={"it needs a gradient": 2}), *words)
    assert done.code == code, done.err
    found = done.document
    assert found["outcome"] == outcome
    assert (found["served"], found["missed"]) == (35, {"it needs a gradient": 10})
    assert found["gain"]["median"] == pytest.approx(plain / applied, rel=0.02)
    assert len(found["pairs"]) == 5
    assert "pair 5 of 5" in done.err


def test_of_a_rate_more_is_better(
    ab: Ab, package: Callable[..., Path], program: Callable[..., Path]
) -> None:
    words = ("--read", READ, "--more-is-better", "--", sys.executable, str(program(9.0, 5.0)))
    done = ab(package(), *words)
    assert (done.code, done.out.startswith("faster: the program is 1.")) == (0, True), done.out


def test_a_kernel_that_served_nothing_made_nothing_faster(
    ab: Ab, package: Callable[..., Path], program: Callable[..., Path]
) -> None:
    path = program(5.0, 9.0)
    done = ab(
        package(served=0, missed={"on cuda": 3}), "--read", READ, "--", sys.executable, str(path)
    )
    assert done.code == 1
    assert done.out.startswith("not used: the kernel served no call")
    assert "15 × on cuda" in done.out


def test_a_program_without_torch_is_told_so(ab: Ab, package: Callable[..., Path]) -> None:
    done = ab(package(), "--", sys.executable, "-c", "pass")
    assert (done.code, "imports no torch" in done.out) == (1, True)


def test_the_environments_own_sitecustomize_runs_too(
    ab: Ab,
    package: Callable[..., Path],
    program: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import os; os.environ['OWN'] = '1'\n")
    monkeypatch.setenv("PYTHONPATH", str(own))
    path = program(text="import os, torch\nassert os.environ['OWN'] == '1'\nprint('took 3 ms')\n")
    done = ab(package(), "--read", READ, "--", sys.executable, str(path))
    assert done.code == 1, done.err
    assert "calls served: 35" in done.out


def test_a_kernel_that_is_not_verified_is_said_to_be(
    ab: Ab, package: Callable[..., Path], program: Callable[..., Path]
) -> None:
    path = program(5.0, 9.0)
    done = ab(package(status="CORRECT"), "--read", READ, "--", sys.executable, str(path))
    assert (done.code, "is CORRECT, not VERIFIED" in done.err) == (0, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--", "no-such-program"), ("no-such-program cannot be started", "behind --")),
        (
            ("--", sys.executable, "-c", "import sys; sys.exit('gone wrong')"),
            ("gone wrong", "status 1 with"),
        ),
        (
            ("--read", "took ([0-9]+) s", "--", sys.executable, "-c", "print(3)"),
            ("nothing in what",),
        ),
        (("--read", "(.*)", "--", sys.executable, "-c", "print('x')"), ("no positive number",)),
        (("--read", "took", "--", "true"), ("has no group", "brackets")),
        (("--read", "(", "--", "true"), ("no regular expression",)),
        (("--more-is-better", "--", "true"), ("--read finds",)),
    ],
)
def test_what_cannot_be_compared_is_refused_with_a_remedy(
    ab: Ab, package: Callable[..., Path], words: tuple[str, ...], said: tuple[str, ...]
) -> None:
    done = ab(package(), *words)
    assert done.code == (3 if "no-such-program" in words else 2), done.err
    assert all(each in done.err for each in said), done.err
    assert done.out == ""


def test_a_folder_that_is_no_package_is_refused(
    ab: Ab, package: Callable[..., Path], tmp_path: Path
) -> None:
    done = ab(tmp_path / "nowhere", "--", "true")
    assert (done.code, "holds no exported package" in done.err) == (2, True)
    folder = package()
    next(folder.glob("kw_*/apply.py")).unlink()
    done = ab(folder, "--", "true")
    assert (done.code, "replaces no call of torch's" in done.err) == (2, True)
