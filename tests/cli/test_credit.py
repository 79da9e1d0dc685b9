"""Nothing that is not VERIFIED has a credited figure: not in a record, a table, a file or a prompt.

The campaign here has a verified winner and a candidate that screened four times as fast.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from kernelwright.agents.prompting import parts
from kernelwright.agents.roles import Member
from kernelwright.agents.search.archive import score_of
from kernelwright.tests.cli import stored
from kernelwright.traces.events import EvaluationFinished, EvaluationStarted
from kernelwright.traces.history import derive
from kernelwright.traces.records import Depth, Speedup, Status, Verdict
from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app

from .conftest import Command

ESTIMATE = Speedup(median=8.4, low=8.1, high=8.7)


def screened() -> Verdict:
    """Candidate 3, by its screening eight times as fast as the best baseline."""
    found = stored.verdict(3, Status.SCREENED, Depth.SCREEN)
    timed = stored.measurement().model_copy(
        update={"speedup": {"scipy": ESTIMATE, "torch eager": ESTIMATE}}
    )
    return found.model_copy(update={"measurements": (timed,)})


@pytest.fixture
def campaign(private: dict[str, str]) -> str:
    home = Path(private["KERNELWRIGHT_HOME"])
    campaign = stored.fill(home)
    with Store.open(home) as store:
        store.append(campaign, EvaluationStarted(candidate=stored.IDS[2], protocol="screen"))
        store.append(campaign, EvaluationFinished(verdict=screened()))
    return campaign


@pytest.fixture
def client(campaign: str, private: dict[str, str]) -> TestClient:
    assert campaign
    return TestClient(
        create_app(Path(private["KERNELWRIGHT_HOME"])), base_url="http://127.0.0.1:8765"
    )


@pytest.mark.parametrize("status", list(Status))
def test_a_verdict_credits_only_where_it_is_verified(status: Status) -> None:
    found = stored.verdict(3, status, Depth.FULL)
    assert (found.credited is not None) == (status is Status.VERIFIED)
    assert (found.screen_estimate is not None) == (status is Status.SCREENED)


def test_the_search_still_ranks_by_the_screen_estimate() -> None:
    assert score_of(screened()) == ESTIMATE.low
    assert score_of(stored.verdict(2, Status.VERIFIED, Depth.CONFIRM)) == 0.75


def test_the_commands_tell_estimates_from_credit(kw_here: Command, campaign: str) -> None:
    rows = {
        row["number"]: row for row in kw_here("show", campaign, "--json").document["candidates"]
    }
    assert [rows[n]["credited"] for n in (1, 2, 3)] == [None, 0.75, None]
    assert [rows[n]["screen_estimate"] for n in (1, 2)] == [None, None]
    assert rows[3]["screen_estimate"] == ESTIMATE.model_dump()
    one = kw_here("show", f"{campaign}/3", "--json").document
    assert [v["credited"] for v in one["verdicts"]] == [None]
    table = kw_here("show", campaign).out
    assert "50 µs, screen estimate 8.40× (95 % 8.10–8.70) vs scipy" in " ".join(table.split())
    assert "not credited" in kw_here("show", f"{campaign}/3").out


def cells(page: str) -> dict[str, list[str]]:
    """The rows of the table of candidates: number → the text of its cells."""
    body = page.split('id="candidates"')[1].split("<tbody>")[1].split("</tbody>")[0]
    rows = {}
    for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL):
        found = re.findall(r"<td.*?>(.*?)</td>", row, re.DOTALL)
        texts = [" ".join(re.sub(r"<.*?>", "", each).split()) for each in found]
        # The viewer's begins with a box to tick, a report's has none.
        texts = texts if texts[0] else texts[1:]
        rows[texts[0].split()[0]] = texts
    return rows


def test_the_pages_tell_estimates_from_credit(client: TestClient, campaign: str) -> None:
    for page in (
        client.get(f"/c/{campaign}", params={"sort": "speedup"}).text,
        client.get(f"/c/{campaign}").text,
    ):
        rows = cells(page)
        assert rows["#2"][2:4] == ["0.75×", "0.80×"]
        assert rows["#3"][2:4] == ["–", "8.40× screen estimate"]
    by_gain = cells(client.get(f"/c/{campaign}", params={"sort": "speedup"}).text)
    assert list(by_gain) == ["#2", "#3", "#1"], "what is verified stands above what was screened"
    page = client.get(f"/c/{campaign}/3").text
    assert "screen estimate" in page
    assert not re.search(r"8\.\d+×? (is )?credited", page)


def test_the_csv_tells_estimates_from_credit(client: TestClient, campaign: str) -> None:
    text = client.get(f"/api/c/{campaign}/candidates.csv").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["credited"] for row in rows] == ["", "0.75", ""]
    assert [row["screen_estimate"] for row in rows] == ["", "", "8.4"]


def test_the_report_tells_estimates_from_credit(kw_here: Command, campaign: str) -> None:
    text = kw_here("report", campaign, "-o", "-").out
    assert "8.40× screen estimate" in text
    assert "0.75× credited" in text
    assert "8.10× credited" not in text
    assert cells(text)["#3"][2] == "–"


def test_a_prompt_tells_estimates_from_credit(campaign: str, private: dict[str, str]) -> None:
    with Store.open(Path(private["KERNELWRIGHT_HOME"]), read_only=True) as store:
        entry = derive(store.events(campaign)).entries[stored.IDS[2]]
    assert entry.verdict is not None
    shown = Member(stored.IDS[2], 3, stored.SOURCES[2], "cpp", "", {}, entry.verdict)
    words = parts.verdict(shown, "0/0")
    assert "Screen estimate of the speed-up against scipy: 8.400" in words
    assert "credited" not in words
