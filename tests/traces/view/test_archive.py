"""The archive: the elites of each island after each generation, and the best of each family."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelwright.errors import UnknownNameError
from kernelwright.running import run_campaign
from kernelwright.tests.agents.asked import PlayedModel, as_it_says
from kernelwright.tests.agents.played import PlayedReferee
from kernelwright.tests.agents.workflows import staged
from kernelwright.traces.decisions import IslandsStood
from kernelwright.traces.events import Decided
from kernelwright.traces.history import derive
from kernelwright.traces.index import grade
from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app
from kernelwright.traces.view.archive_page import archive_page


@pytest.fixture
def evolved(tmp_path: Path) -> tuple[Path, str]:
    """Three generations on two islands, played."""
    options = {"proposals": 4, "evaluated": 2, "islands": 2}
    with Store.open(tmp_path) as store:
        result = run_campaign(
            staged.request("evolve", 3, options=options),
            store,
            PlayedReferee(fate=as_it_says, noise=0.001),
            players=staged.seats(PlayedModel(slots=3)),
        )
    return tmp_path, result.campaign


def test_the_grid_is_what_was_recorded_after_each_generation(evolved: tuple[Path, str]) -> None:
    home, campaign = evolved
    with Store.open(home, read_only=True) as store, store.sheet(campaign) as sheet:
        stood = [
            (event.payload.place.round, event.payload.decision.islands)
            for event in store.events(campaign)
            if isinstance(event.payload, Decided)
            and isinstance(event.payload.decision, IslandsStood)
        ]
        assert len(stood) >= 2
        for generation, islands in stood:
            page = archive_page(sheet, generation)
            found = {
                (row.niche, island): elite.candidate
                for row in page.niches
                for island, elite in enumerate(row.elites)
                if elite
            }
            assert found == {
                (niche, island): name
                for island, of in enumerate(islands)
                for niche, name in of.items()
            }
            best = [min(grade(e.verdict) for e in row.elites if e) for row in page.niches]
            assert best == sorted(best)
        assert archive_page(sheet) == archive_page(sheet, stood[-1][0])
        with pytest.raises(UnknownNameError, match="77"):
            archive_page(sheet, 77)


def test_families_are_told_with_their_best(sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store, store.sheet(sample.campaign) as sheet:
        page = archive_page(sheet)
        entries = list(derive(store.events(sample.campaign)).entries.values())
    assert (page.generations, page.niches) == ((), ())
    assert {row.family for row, _ in page.families} == {entry.family for entry in entries}
    for row, best in page.families:
        mine = [entry for entry in entries if entry.family == row.family]
        assert row.proposed == len(mine)
        passed = [e for e in mine if e.verdict and e.verdict.status.is_pass]
        assert row.passed == len(passed)
        first = min(mine, key=lambda entry: (*grade(entry.verdict), entry.number))
        assert best.candidate == first.candidate
    ranks = [grade(best.verdict) for _, best in page.families]
    assert ranks == sorted(ranks)


def test_the_pages(evolved: tuple[Path, str], sample: Any) -> None:
    home, campaign = evolved
    with TestClient(create_app(home), base_url="http://127.0.0.1:8765") as client:
        page = client.get(f"/c/{campaign}/archive").text
        assert "Islands after generation" in page
        assert "island 1" in page
        assert client.get(f"/c/{campaign}/archive?generation=99").status_code == 404
        assert client.get(f"/c/{campaign}/archive?generation=0").status_code in (200, 404)
    with TestClient(create_app(sample.home), base_url="http://127.0.0.1:8765") as client:
        page = client.get(f"/c/{sample.campaign}/archive").text
        assert "keeps no islands" in page
        assert "nnz-balanced" in page
