"""docs/own-operator.md, word by word: its lines are run and its files are written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.tests.jails import no_jail, skip_for_want_of_one
from kernelwright.traces.records import Status

from .conftest import COMPILED
from .following import DOCS, Reader, read_section

PAGE = DOCS / "own-operator.md"
EMPTY, MODULE = "## From an empty folder\n", "## From a PyTorch module\n"
COMMANDS = 5
"""From an empty folder to an exported kernel."""

pytestmark = [pytest.mark.slow, pytest.mark.timed]


def assert_exported(reader: Reader, problem: str) -> None:
    """The last campaign's winner is verified, timed beside PyTorch, and its package works."""
    best = reader.home["@last"].champion
    assert best is not None
    assert best.verdict is not None
    assert (best.verdict.problem, best.status) == (problem, Status.VERIFIED)
    assert best.verdict.measurement is not None
    assert "torch eager" in best.verdict.measurement.speedup
    package = next((reader.folder / f"{problem}_kernel").glob("kw_*"))
    env = {**reader.env, "PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(package)}
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
    return read_section(PAGE, section).split("\n### ")


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
    assert_exported(reader, "swi")


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
    assert_exported(reader, "norm_relu")
