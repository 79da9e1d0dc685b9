"""What the documents point at is there."""

from __future__ import annotations

import re

from package_tree import ROOMS, ROOT

PATH = re.compile(rf"`((?:{'|'.join(ROOMS)}|tests|benchmarks|docs)/[\w./-]*)`")
TABLE = re.compile(r"^\| \d+ \| (.*?) \|", re.M)


def test_every_file_that_a_document_names_exists() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    named = {
        (page.name, path)
        for page in pages
        if page.name != "CHANGELOG.md"
        for path in PATH.findall(page.read_text("utf-8"))
    }
    assert len(named) > 40
    assert sorted((page, path) for page, path in named if not (ROOT / path).exists()) == []


def test_every_wing_has_its_row_in_the_plan() -> None:
    plan = (ROOT / "docs" / "design.md").read_text("utf-8")
    rows = set(re.findall(r"`([\w.]+)/?`", " ".join(TABLE.findall(plan))))
    for house in ("agents", "verifier"):
        for entry in (ROOT / house).iterdir():
            if entry.name.startswith("_"):
                continue
            assert entry.name in rows, f"{house}/{entry.name}"
