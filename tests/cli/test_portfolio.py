"""`portfolio`: from two kernels and two workloads to one that is verified and leaves."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.tests.portfolio.conftest import kernel_cache, run
from kernelwright.tests.traces.export.conftest import Run, module_of

from .conftest import Command

__all__ = ["kernel_cache", "run"]


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """One kernel of each family."""
    found = []
    for recipe in recipes_for("spmm_csr"):
        file = tmp_path / f"{recipe.family}.cpp"
        file.write_text(recipe.render(recipe.first_knobs()))
        found.append(str(file))
    return found


@pytest.mark.heavy
@pytest.mark.slow
@pytest.mark.timed
def test_two_kernels_become_one(kw: Command, files: list[str], tmp_path: Path, run: Run) -> None:
    asked = ("portfolio", "spmm_csr", *files, "--workloads", "tiny,hub-33:3", "-o", "made")
    done = kw(*asked, "--json", timeout=900)
    assert done.code == 0, done.err
    ways = {each["name"]: each for each in done.document["ways"]}
    assert set(ways) == {"fixed best", "learned", "oracle"}
    assert ways["fixed best"]["share"] <= ways["oracle"]["share"] == 1.0
    # Two workloads are too few for a split.
    (name,) = done.document["kernels"]
    assert done.document["leaves"] == [f"always: {name}"]
    made = tmp_path / "work" / "made"
    assert json.loads((made / "portfolio.json").read_text()).items() <= done.document.items()
    lines = (made / "seen.jsonl").read_text().splitlines()
    assert len(lines) == 4
    assert f"{name} on " in done.err
    assert "VERIFIED, kept as campaign" in done.err

    again = kw(*asked, "--max-time", "1s", timeout=900)
    assert again.code == 0, again.err
    assert (made / "seen.jsonl").read_text().splitlines() == lines

    left = kw("export", "@best", "-o", "package")
    assert left.code == 0, left.err
    folder = tmp_path / "work" / "package"
    tested = run(sys.executable, "-m", module_of(folder), "selftest", path=folder)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "spmm_csr_kernel_1: worst error" in tested.stdout


def test_what_cannot_be_is_told_before_anything_starts(
    kw_here: Command, files: list[str], tmp_path: Path
) -> None:
    workloads = ("--workloads", "tiny,hub-33")
    refused = [
        ((*files, "--workloads", "tiny"), "is one workload"),
        ((files[0], *workloads), "1 candidate is no portfolio"),
        ((files[0], "none.cpp", *workloads), "cannot read the source none.cpp"),
        ((*files, "--workloads", "tiny,nowhere"), "nowhere"),
    ]
    for words, told in refused:
        done = kw_here("portfolio", "spmm_csr", *words, "-o", "made")
        assert done.code == 2, done.err
        assert told in done.err
        assert not (tmp_path / "work" / "made").exists()
