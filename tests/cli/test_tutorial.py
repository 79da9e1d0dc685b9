"""The tutorial of docs/own-operator.md, word by word: its lines are run and its files are written,
in their order, in an empty folder of a user who has done nothing before."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.tests.jails import no_jail, skip_for_want_of_one
from kernelwright.traces.records import Status
from kernelwright.workbench.home import Home

from .conftest import COMPILED, environment

PAGE = Path(__file__).parents[2] / "docs" / "own-operator.md"
EMPTY, MODULE = "## From an empty folder\n", "## From a PyTorch module\n"
SHELL = "bash"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.M | re.S)
_NAME = re.compile(r"`([\w.]+\.\w+)`[^`]*$")
_EXIT = re.compile(r"# exit status (\d+)")
COMMANDS = 5
"""From an empty folder to an exported kernel."""

pytestmark = [pytest.mark.slow, pytest.mark.timed]


class Reader:
    """Who follows the page, with the command on the path and nothing else."""

    def __init__(self, home: Path, cache: Path) -> None:
        self.folder = home / "work"
        self.folder.mkdir()
        bin_folder = home / "bin"
        bin_folder.mkdir()
        command = bin_folder / "kernelwright"
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m kernelwright "$@"\n')
        command.chmod(0o755)
        self.env = environment(home, cache)
        self.env["PATH"] = f"{bin_folder}:{self.env['PATH']}"
        self.home = Home(Path(self.env["KERNELWRIGHT_HOME"]))

    def follow(self, text: str) -> list[str]:
        """Writes each file and runs each line, in their order; the lines."""
        lines: list[str] = []
        for block in _BLOCK.finditer(text):
            kind, content = block.groups()
            if kind != SHELL:
                name = _NAME.search(text[: block.start()].rstrip())
                assert name, f"no name before: {content}"
                (self.folder / name[1]).write_text(content, "utf-8")
                continue
            for line in content.splitlines():
                self.run(line)
                lines.append(line)
        return lines

    def run(self, line: str) -> None:
        """One line as it stands; it ends with the status that it names, else with 0."""
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self.folder,
            env=self.env,
            capture_output=True,
            text=True,
            check=False,
        )
        expected = _EXIT.search(line)
        status = int(expected[1]) if expected else 0
        assert done.returncode == status, (line, done.stderr[-3000:], done.stdout[-3000:])

    def assert_exported(self, problem: str) -> None:
        """The last campaign's winner is verified, timed beside PyTorch, and its package works."""
        best = self.home["@last"].champion
        assert best is not None
        assert best.verdict is not None
        assert (best.verdict.problem, best.status) == (problem, Status.VERIFIED)
        assert best.verdict.measurement is not None
        assert "torch eager" in best.verdict.measurement.speedup
        package = next((self.folder / f"{problem}_kernel").glob("kw_*"))
        env = {**self.env, "PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(package)}
        ran = subprocess.run(
            [sys.executable, "-m", package.name, "selftest"],
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr


def parts(section: str) -> list[str]:
    """A section, cut at its headings."""
    page = PAGE.read_text("utf-8")
    assert page.count(section) == 1
    return page.partition(section)[2].partition("\n## ")[0].split("\n### ")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path) -> Reader:
    """Has followed the first part."""
    skip_for_want_of_one(no_jail())
    found = Reader(tmp_path_factory.mktemp("tutorial"), shared_cache)
    lines = found.follow(parts(EMPTY)[0])
    assert len(lines) == COMMANDS
    assert all(line.startswith("kernelwright ") for line in lines)
    return found


def test_from_an_empty_folder_to_an_exported_kernel(reader: Reader) -> None:
    reader.assert_exported("swi")


def test_cuda_as_it_is_published(reader: Reader) -> None:
    assert reader.follow(parts(EMPTY)[1])
    (judged,) = reader.home["@last"].candidates
    assert judged.status is Status.SCREENED
    assert judged.verdict is not None
    assert judged.verdict.emulated


@pytest.mark.heavy
def test_a_pytorch_module_as_it_stands(tmp_path: Path, shared_cache: Path) -> None:
    skip_for_want_of_one(no_jail())
    reader = Reader(tmp_path, shared_cache)
    del reader.env[COMPILED]
    (part,) = parts(MODULE)
    assert [line.split()[1] for line in reader.follow(part)] == ["problems", "eval", "export"]
    judged = reader.home["@last"]
    assert judged.history.file == "norm_relu.cpp"
    assert judged.champion is not None
    assert judged.champion.verdict is not None
    assert judged.champion.verdict.measurement is not None
    assert "torch.compile" in judged.champion.verdict.measurement.speedup
    reader.assert_exported("norm_relu")
