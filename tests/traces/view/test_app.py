"""The viewer's pages and its JSON, asked over HTTP without a browser."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelwright.traces.events import CampaignStarted, CandidateProposed, payload_adapter
from kernelwright.traces.history import derive
from kernelwright.traces.records import Status, Verdict
from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app


def client_of(home: Path) -> TestClient:
    return TestClient(create_app(home), base_url="http://127.0.0.1:8765")


@pytest.fixture
def client(sample: Any) -> Iterator[TestClient]:
    with client_of(sample.home) as client:
        yield client


def figures_of(page: str) -> list[dict[str, Any]]:
    """The figures that a page carries for its script."""
    texts = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return [json.loads(text) for text in texts]


def test_the_list_shows_each_campaign_with_its_best(
    client: TestClient, sample: Any, write_sample: Callable[..., Any]
) -> None:
    running = write_sample(is_finished=False)
    page = client.get("/").text
    assert page.index(running.campaign) < page.index(sample.campaign)
    assert "2.40×" in page
    assert "2.40–2.54" in page
    assert "finished" in page
    assert "cut off" in page
    with Store.open(sample.home) as store, store.lease(running.campaign):
        assert "running" in client.get("/").text


def test_the_list_can_be_searched_and_sorted(
    client: TestClient, sample: Any, new_campaign: CampaignStarted
) -> None:
    with Store.open(sample.home) as store:
        other = store.create(new_campaign.model_copy(update={"problem": "attention"}))
    found = client.get("/", params={"q": "CPU attent"}).text
    assert other in found
    assert sample.campaign not in found
    assert "No campaign matches" in client.get("/", params={"q": "zzz"}).text
    by_speedup = client.get("/", params={"sort": "speedup"}).text
    assert by_speedup.index(sample.campaign) < by_speedup.index(other)
    refused = client.get("/", params={"sort": "colour"})
    assert refused.status_code == 404
    assert "speedup" in refused.text


def test_the_campaign_chart_has_every_evaluated_candidate(client: TestClient, sample: Any) -> None:
    page = client.get(f"/c/{sample.campaign}").text
    (figure,) = figures_of(page)
    points = [t for t in figure["data"] if t["mode"] == "markers"]
    assert {trace["name"] for trace in points} == {status.value for status in Status}
    assert sorted(x for trace in points for x in trace["x"]) == list(range(1, 17))
    assert len({trace["marker"]["symbol"] for trace in points}) == len(Status)
    (line,) = [t for t in figure["data"] if t["mode"] == "lines"]
    assert line["line"]["shape"] == "hv"
    assert line["x"][:-1] == [2, 4, 7, 15]
    assert line["y"] == sorted(line["y"])
    # Every point has its row in the table.
    for name in sample.candidates:
        assert f'href="/c/{sample.campaign}/{name}"' in page


def test_candidates_can_be_filtered_and_sorted(client: TestClient, sample: Any) -> None:
    address = f"/c/{sample.campaign}"
    only = client.get(address, params={"status": "CRASHED"}).text
    assert "1 of 18 candidates" in only
    assert (
        f'<td class="nowrap"><a href="/c/{sample.campaign}/{sample.candidates[5]}">#6</a>' in only
    )
    assert ">#7</a>" not in only.split("<tbody>")[1].split("</tbody>")[0]
    best_first = client.get(address, params={"sort": "speedup"}).text.split("<tbody>")[1]
    assert best_first.index(">#15</a>") < best_first.index(">#7</a>") < best_first.index(">#2</a>")


def test_a_candidate_shows_everything_that_was_found(client: TestClient, sample: Any) -> None:
    page = html.unescape(client.get(f"/c/{sample.campaign}/@best").text)
    for words in (
        "Verified in a fresh process: 2.47× (95 % 2.40–2.54) against torch eager",
        "full → VERIFIED, confirm → VERIFIED",
        "G1 condition-scaled error",
        "4.1e-08",
        "7.8e-06",
        "torch.compile",
        "scipy",
        "minimum detectable difference",
        "1.2 %",
        "1.003",
        "of a floor of 410 µs",
        "GFLOP/s",
        "modelled",
        "load imbalance",
        "19 unchanged lines",
        "schedule",
        "vectorised with 32-byte",
        "treat the figure with care",
        "Not checked: sanitizers: not run, libasan is not installed",
    ):
        assert words in page
    assert (
        len(figures_of(client.get(f"/c/{sample.campaign}/@best").text)) == 3
    )  # two workloads and the roofline


@pytest.mark.parametrize("number", range(1, 19))
def test_every_kind_of_candidate_has_a_page(client: TestClient, sample: Any, number: int) -> None:
    reply = client.get(f"/c/{sample.campaign}/{number}")
    assert reply.status_code == 200
    assert f"Candidate #{number} " in reply.text


def test_words_of_candidates_never_become_markup(client: TestClient, sample: Any) -> None:
    for number in ("5", "@best"):
        page = client.get(f"/c/{sample.campaign}/{number}").text
        assert sample.hostile not in page
        assert "<img" not in page
        assert "<script>document" not in page
        assert html.escape("</script><script>document", quote=False) in page
    assert sample.hostile in client.get(f"/api/c/{sample.campaign}/5/source").text


def test_hostile_names_are_escaped_in_charts_and_tables(
    tmp_path: Path, new_campaign: CampaignStarted, sample: Any
) -> None:
    bad = "<b onmouseover=alert(1)>\"'&"
    with Store.open(sample.home, read_only=True) as store:
        verdict = next(
            e.payload.verdict
            for e in store.events(sample.campaign)
            if e.payload.kind == "evaluation.finished" and e.payload.verdict.measurements
        )
    stored = verdict.model_dump(mode="json")
    stored["measurements"] = stored["measurements"][:1]
    measurement = stored["measurements"][0]
    for side in ("baselines", "speedup"):
        measurement[side][bad] = measurement[side].pop("torch eager")
    measurement["best_baseline"] = bad
    with Store.open(tmp_path / "other") as store:
        campaign = store.create(new_campaign.model_copy(update={"problem": bad, "workload": bad}))
        candidate = store.put_blob("int x;")
        stored["candidate"] = candidate
        proposal = CandidateProposed(
            candidate=candidate,
            number=1,
            language="cpp",
            family=bad,
            operator=bad,
            knobs={bad: bad},
            note=bad,
        )
        store.append(campaign, proposal)
        finished = {"kind": "evaluation.finished", "verdict": Verdict.model_validate(stored)}
        store.append(campaign, payload_adapter.validate_python(finished))
    with client_of(tmp_path / "other") as client:
        for address in ("/", f"/c/{campaign}", f"/c/{campaign}/1"):
            page = client.get(address).text
            assert "<b onmouseover" not in page
            for figure in figures_of(page):
                assert "<b onmouseover" not in json.dumps(figure)


def test_the_json_is_what_is_stored(client: TestClient, sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store:
        events = store.events(sample.campaign)
    given = client.get(f"/api/c/{sample.campaign}/events").json()
    assert given == [event.model_dump(mode="json") for event in events]
    later = client.get(f"/api/c/{sample.campaign}/events", params={"after": events[-2].seq}).json()
    assert [event["seq"] for event in later] == [events[-1].seq]
    candidate = client.get(f"/api/c/{sample.campaign}/2").json()
    verdicts = [Verdict.model_validate(verdict) for verdict in candidate["verdicts"]]
    assert [verdict.protocol for verdict in verdicts] == ["full", "confirm"]
    (row,) = client.get("/api/campaigns").json()["campaigns"]
    assert (row["best"], row["evaluated"], row["state"]) == (sample.champion, 16, "finished")
    assert row["speedup"]["low"] == pytest.approx(2.396, abs=1e-3)


def test_the_page_of_reasons_answers_all_five_questions(client: TestClient, asked: Any) -> None:
    del client
    with TestClient(create_app(asked.home), base_url="http://127.0.0.1") as own:
        page = own.get(f"/c/{asked.campaign}/why").text
    for words in (
        "The way to #",
        "what a Judge had said",
        "Where time went",
        "What evaluations did",
    ):
        assert words in page
    assert "Spent on models" in page
    assert "How far candidates came" in page


def test_a_campaign_without_a_winner_has_its_reasons_too(
    client: TestClient, sample: Any, new_campaign: CampaignStarted
) -> None:
    with Store.open(sample.home) as store:
        empty = store.create(new_campaign)
    reply = client.get(f"/c/{empty}/why")
    assert reply.status_code == 200
    assert "Nothing was recorded of it." in reply.text
    assert "The way to" not in reply.text


def test_candidates_are_held_against_each_other(client: TestClient, sample: Any) -> None:
    names = [f"{sample.campaign}/{which}" for which in ("@best", "2", "5")]
    page = client.get("/compare", params={"of": names}).text
    assert "3 candidates" in page
    assert page.count('</h2>\n<p class="sub"><span class="pass">+') == 2
    assert "time of a call" in page
    assert sample.hostile not in page


def test_the_tree_has_every_candidate_behind_its_parent(client: TestClient, sample: Any) -> None:
    page = client.get(f"/c/{sample.campaign}/tree").text
    with Store.open(sample.home, read_only=True) as store:
        history = derive(store.events(sample.campaign))
    places = {name: page.index(f'data-key="{name}"') for name in history.entries}
    for name, entry in history.entries.items():
        if entry.parents:
            assert places[entry.parents[0]] < places[name]
    assert page.count(">best</span>") == 1
    assert "on the way" in page


def test_a_problem_has_the_best_of_each_task(
    client: TestClient, sample: Any, write_sample: Callable[..., Any]
) -> None:
    other = write_sample(is_finished=False)
    with Store.open(sample.home, read_only=True) as store:
        problem = derive(store.events(sample.campaign)).started.problem
    page = client.get(f"/p/{problem}").text
    assert "over 2 campaigns" in page
    assert "2.40×" in page
    assert f"/c/{sample.campaign}" in page or f"/c/{other.campaign}" in page
    lost = client.get("/p/nothing")
    assert lost.status_code == 404
    assert problem in lost.text


@pytest.mark.parametrize("over", ["candidates", "time", "tokens", "dollars"])
def test_a_chart_stands_over_what_is_asked_for(
    client: TestClient, sample: Any, asked: Any, over: str
) -> None:
    with TestClient(create_app(asked.home), base_url="http://127.0.0.1") as own:
        page = own.get(f"/c/{asked.campaign}", params={"over": over}).text
    figure = json.loads(page.split('<script type="application/json">')[1].split("</script>")[0])
    axis = figure["layout"]["xaxis"]
    places = [x for trace in figure["data"] for x in trace["x"]]
    assert axis["range"][0] <= min(places)
    assert max(places) <= axis["range"][1]
    assert client.get(f"/c/{sample.campaign}", params={"over": "luck"}).status_code == 404


def test_samples_are_given_as_they_were_taken(client: TestClient, sample: Any) -> None:
    reply = client.get(f"/api/c/{sample.campaign}/@best/samples.csv")
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    with Store.open(sample.home, read_only=True) as store:
        best = derive(store.events(sample.campaign)).best
    measured = [m for verdict in best.verdicts for m in verdict.measurements]
    mine = [s for m in measured for s in m.candidate.samples_us]
    assert [float(row["us"]) for row in rows if row["side"] == "candidate"] == mine
    assert {row["side"] for row in rows} >= {"candidate", *measured[0].baselines}


def test_what_cannot_be_compared_is_told(
    client: TestClient, sample: Any, write_sample: Callable[..., Any]
) -> None:
    one = client.get("/compare", params={"of": f"{sample.campaign}/2"})
    assert one.status_code == 400
    assert "1 candidate cannot be compared" in one.text
    nothing = client.get("/compare")
    assert nothing.status_code == 200
    assert "Nothing is chosen yet" in nothing.text
    many = client.get("/compare", params={"of": [f"{sample.campaign}/{n}" for n in range(1, 6)]})
    assert many.status_code == 400
    lost = client.get("/compare", params={"of": [f"{sample.campaign}/2", "nothing/1"]})
    assert lost.status_code == 404
    other = write_sample(is_finished=False)
    both = client.get("/compare", params={"of": [sample.campaign, f"{other.campaign}/2"]}).text
    assert sample.campaign in both
    assert other.campaign in both


def test_the_csv_has_a_row_per_candidate(client: TestClient, sample: Any) -> None:
    reply = client.get(f"/api/c/{sample.campaign}/candidates.csv")
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert [row["candidate"] for row in rows] == list(sample.candidates)
    assert rows[14]["status"] == "VERIFIED"
    assert float(rows[14]["credited"]) == pytest.approx(2.396, abs=1e-3)


def test_what_is_not_there_is_told(client: TestClient, sample: Any) -> None:
    for address in ("/c/nope", f"/c/{sample.campaign}/999", "/static/secret", "/nowhere"):
        reply = client.get(address)
        assert reply.status_code == 404
        assert "<h1>Not found</h1>" in reply.text
    assert client.get("/api/c/nope").json()["error"] == "there is no campaign named 'nope'"
    with client_of(sample.home / "empty") as other:
        reply = other.get("/")
    assert reply.status_code == 500
    assert "there is no store" in reply.text


def test_an_empty_store_and_an_empty_campaign_have_pages(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store, client_of(tmp_path) as client:
        assert "There is no campaign here yet" in client.get("/").text
        campaign = store.create(new_campaign)
        assert "no verified winner" in client.get(f"/c/{campaign}").text
        assert client.get(f"/c/{campaign}/@best").status_code == 400


def test_a_missing_source_is_told_and_the_rest_is_shown(client: TestClient, sample: Any) -> None:
    name = sample.candidates[1]
    (sample.home / "blobs" / name[:2] / name[2:]).unlink()
    page = client.get(f"/c/{sample.campaign}/2").text
    assert "The source cannot be shown: there is no blob" in page
    assert "G1 condition-scaled error" in page


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:80", "", "10.0.0.1", "["])
def test_foreign_hosts_are_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8765", "LOCALHOST"])
def test_loopback_names_are_answered(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


def test_only_reading_from_here_is_allowed(client: TestClient) -> None:
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH", "HEAD"):
        assert client.request(method, "/").status_code == 405
    assert client.get("/", headers={"origin": "https://evil.example"}).status_code == 403
    assert client.get("/", headers={"origin": "http://localhost:8765"}).status_code == 200


def test_every_answer_carries_the_policy(client: TestClient, sample: Any) -> None:
    for address in ("/", f"/c/{sample.campaign}", "/nowhere", "/api/campaigns", "/static/view.js"):
        headers = client.get(address).headers
        assert "default-src 'self'" in headers["content-security-policy"]
        assert "script-src" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
    page = client.get(f"/c/{sample.campaign}").text
    assert not re.search(r'(?:src|href)="(?:https?:)?//', page)


def test_the_chart_library_comes_from_its_wheel(client: TestClient, sample: Any) -> None:
    page = client.get(f"/c/{sample.campaign}").text
    (address,) = re.findall(r'src="(/static/plotly-[^"]+)"', page)
    reply = client.get(address)
    assert reply.headers["cache-control"].endswith("immutable")
    assert reply.headers["content-encoding"] == "gzip"
    assert len(reply.content) > 1_000_000
    assert address not in client.get("/").text
