"""The page of a suite: its campaigns as rows of one table, the newest of each workload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelwright.traces.events import CampaignStarted
from kernelwright.traces.store import Store
from kernelwright.traces.suites import average, find_suites, sum_up
from kernelwright.traces.view.app import create_app

SUITE = "sparse seconds=40 cpu cpp"


def of_suite(started: CampaignStarted, suite: str, **more: Any) -> CampaignStarted:
    return started.model_copy(update={**more, "config": {"request": {"suite": suite}}})


def client_of(home: Path) -> TestClient:
    return TestClient(create_app(home), base_url="http://127.0.0.1:8765")


def test_of_several_campaigns_on_one_workload_the_newest_counts(
    new_campaign: CampaignStarted,
) -> None:
    older, newer = of_suite(new_campaign, SUITE), of_suite(new_campaign, SUITE)
    found = find_suites(
        [
            ("a", older),
            ("b", new_campaign),
            ("c", of_suite(new_campaign, SUITE, problem="sddmm_csr")),
            ("d", of_suite(new_campaign, "mine")),
            ("e", newer),
        ]
    )
    assert found == {SUITE: ("e", "c"), "mine": ("d",)}


def test_a_row_has_the_winner_beside_every_baseline(sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store, store.sheet(sample.campaign) as sheet:
        row = sum_up(sheet)
    assert (row.task, row.status) == ("spmm_csr", "VERIFIED")
    assert row.gain is not None
    assert row.gain.low == pytest.approx(2.4, abs=0.05)
    assert list(row.baselines.values()) == sorted(row.baselines.values())
    assert row.best_baseline in row.baselines


def test_geometric_means() -> None:
    assert average([4.0, 1.0]) == pytest.approx(2.0)
    assert average([0.0]) is None
    assert average([]) is None


def test_the_page_shows_one_suite_and_names_the_others(
    sample: Any, new_campaign: CampaignStarted
) -> None:
    with Store.open(sample.home) as store:
        store.create(of_suite(new_campaign, "mine"))
        newest = store.create(of_suite(new_campaign, SUITE))
    client = client_of(sample.home)
    page = client.get("/suites").text
    assert f"<option selected>{SUITE}</option><option>mine</option>" in page
    assert "0 of 1 have a verified kernel" in page
    assert f"/c/{newest}" in page
    assert "<option selected>mine</option>" in client.get("/suites", params={"name": "mine"}).text
    assert client.get("/suites", params={"name": "other"}).status_code == 404
    assert 'href="/suites"' in client.get("/").text


def test_a_home_without_suites_says_how_to_run_one(sample: Any) -> None:
    assert "kernelwright suite sparse" in client_of(sample.home).get("/suites").text
