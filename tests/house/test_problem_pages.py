"""The pages of docs/problems are those that the code gives; every paper has its problems."""

from __future__ import annotations

import tomllib
from pathlib import Path

from kernelwright.benchmarks.problem_pages import write_pages
from kernelwright.kernelbench import registry

ROOT = Path(__file__).parents[2]


def test_the_pages_are_those_of_the_code(tmp_path: Path) -> None:
    written = write_pages(tmp_path, ROOT / "docs" / "results" / "suite-cpu.csv")
    kept = {path.name: path.read_text("utf-8") for path in (ROOT / "docs/problems").glob("*.md")}
    assert {path.name for path in written} == set(kept)
    stale = [path.name for path in written if path.read_text("utf-8") != kept[path.name]]
    assert stale == [], "make problem-pages"


def test_every_paper_has_a_problem_or_says_why_not() -> None:
    text = (ROOT / "benchmarks" / "papers.toml").read_text("utf-8")
    papers = tomllib.loads(text)["paper"]
    assert len({paper["name"] for paper in papers}) == len(papers) >= 37
    for paper in papers:
        known = set(paper["problems"]) & set(registry.names())
        assert known or paper.get("reason"), paper["name"]
