"""The pages of docs/problems are those that the code gives; every paper has its problems."""

from __future__ import annotations

from pathlib import Path

from kernelwright.benchmarks.problem_pages import write_pages

ROOT = Path(__file__).parents[2]


def test_the_pages_are_those_of_the_code(tmp_path: Path) -> None:
    written = write_pages(tmp_path, ROOT / "docs" / "results" / "suite-cpu.csv")
    kept = {path.name: path.read_text("utf-8") for path in (ROOT / "docs/problems").glob("*.md")}
    assert {path.name for path in written} == set(kept)
    stale = [path.name for path in written if path.read_text("utf-8") != kept[path.name]]
    assert stale == [], "make problem-pages"
