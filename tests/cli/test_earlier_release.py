"""A store that an earlier version wrote opens everywhere and tells the same."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelwright.errors import ExitCode
from kernelwright.tests.cli.conftest import Command
from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app

KEPT = Path(__file__).with_name("earlier") / "0.1.0-november.tar.gz"
BY_RECIPES, KILLED = "20261123-171145-822eb8e", "20261123-171356-5972b38"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "earlier"
    with tarfile.open(KEPT) as kept:
        kept.extractall(folder, filter="data")
    return folder


def told(home: Path, name: str) -> Any:
    """What the earlier version printed."""
    return json.loads((home / name).read_text("utf-8"))


def lost(before: Any, after: Any, at: str = "") -> list[str]:
    """Where `after` differs from `before`; what it says besides is no loss."""
    if isinstance(before, dict) and isinstance(after, dict):
        return [
            each
            for key, value in before.items()
            for each in (
                lost(value, after[key], f"{at}.{key}") if key in after else [f"{at}.{key} is gone"]
            )
        ]
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = zip(before, after, strict=True)
        return [each for n, (b, a) in enumerate(pairs) for each in lost(b, a, f"{at}[{n}]")]
    return [] if before == after else [f"{at}: {before!r} became {after!r}"]


def test_list_tells_the_same(home: Path, kw_here: Command) -> None:
    done = kw_here("list", "--json", "--home", str(home))
    assert done.code == 0, done.err
    before = told(home, "list.json") | {"home": str(home)}
    assert lost(before, json.loads(done.out)) == []
    assert len(before["campaigns"]) == 8


def test_show_tells_the_same_of_every_campaign(home: Path, kw_here: Command) -> None:
    files = sorted((home / "shown").iterdir())
    assert len(files) == 16
    for file in files:
        campaign, _, kind = file.name.removesuffix(".json").partition(".")
        more = ["--calls"] if kind == "calls" else []
        done = kw_here("show", campaign, *more, "--json", "--home", str(home))
        assert done.code == 0, done.err
        assert lost(told(home, f"shown/{file.name}"), json.loads(done.out)) == []
        assert kw_here("show", campaign, *more, "--home", str(home)).code == 0


def test_every_page_and_report_opens(home: Path, kw_here: Command, tmp_path: Path) -> None:
    client = TestClient(create_app(home), base_url="http://127.0.0.1")
    with Store.open(home, read_only=True) as store:
        campaigns = store.campaigns()
    assert len(campaigns) == 8
    for campaign in campaigns:
        for path in (f"/c/{campaign}", f"/c/{campaign}/trace"):
            assert client.get(path).status_code == 200, path
        report = tmp_path / "report.html"
        done = kw_here("report", campaign, "-o", str(report), "--home", str(home))
        assert done.code == 0, done.err
        assert campaign in report.read_text("utf-8")


def test_a_campaign_of_another_version_of_its_workflow_is_not_resumed(
    home: Path, kw_here: Command
) -> None:
    for campaign in (BY_RECIPES, KILLED):
        done = kw_here("run", "--resume", campaign, "--max-evals", "40", "--home", str(home))
        assert done.code == ExitCode.USAGE
        assert campaign in done.err
        assert "evolve/" in done.err
        assert "start a new campaign" in done.err


@pytest.mark.heavy
@pytest.mark.slow
def test_an_old_champion_is_audited(home: Path, kw: Command) -> None:
    done = kw("audit", BY_RECIPES, "--home", str(home), "--json")
    assert done.code in (ExitCode.DONE, ExitCode.NOT_MET), done.err
    found = json.loads(done.out)
    assert BY_RECIPES in done.out
    assert found
