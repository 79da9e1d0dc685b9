"""The pages of campaigns that asked models: trace, calls, spending; without a browser."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from kernelwright.tests.traces.asked_sample import EVIL, HOSTILE, SYSTEM, AskedSample, Writer, begun
from kernelwright.traces.report import render_report
from kernelwright.traces.store import Store
from kernelwright.traces.transcript import transcribe
from kernelwright.traces.view import trace
from kernelwright.traces.view.app import create_app


def client_of(home: Path) -> TestClient:
    return TestClient(create_app(home), base_url="http://127.0.0.1:8765")


@pytest.fixture
def client(asked: AskedSample) -> Iterator[TestClient]:
    with client_of(asked.home) as client:
        yield client


def words(page: str) -> str:
    """What a reader sees of a page, spaces collapsed."""
    text = re.sub(r"<script.*?</script>|<[^>]+>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(text).split())


def step(page: str, anchor: str) -> str:
    """One place of a trace."""
    (found,) = re.findall(rf'<section class="card step" id="{anchor}">.*?</section>', page, re.S)
    return str(found)


def test_the_trace_tells_each_round(client: TestClient, asked: AskedSample) -> None:
    page = client.get(f"/c/{asked.campaign}/trace").text
    told = [words(step(page, f"p-{number}-0")) for number in range(5)]
    for number, expected in (
        (0, ("Call 1 write", "not usable, asked again", "One block, please.", "BUILD_FAILED")),
        (
            1,
            (
                "Call 3 judge repair",
                "said by openai/judge",
                "confidence high",
                "bottleneck cut to 20 words",
                "rate limited",
                "2 attempts",
                "1.5 s",
                "champion, 1.65× credited",
                "change against #1",
                "schedule(dynamic, 4)",
            ),
        ),
        (
            2,
            (
                "rules (fallback)",
                "vectorise",
                "rests on: vector_share 0.62",
                "≈ 2,000 tokens",
                "given up: invalid_json",
                "Decided: base of the next edit",
                "much slower",
            ),
        ),
        (3, ("Call 6 optimise", "empty", "No candidate: no_candidate", "reply : empty")),
        (4, ("Call 7", "no answer yet", "up to 9,000 tokens are reserved")),
    ):
        for expected_words in expected:
            assert expected_words in told[number], (number, expected_words)
    # In the order in which it happened.
    assert told[1].index("Call 3") < told[1].index("said by") < told[1].index("Call 4")


def test_what_is_sent_again_is_shown_once(client: TestClient, asked: AskedSample) -> None:
    page = client.get(f"/c/{asked.campaign}/trace").text
    assert page.count(SYSTEM.splitlines()[0]) == 1
    assert f'the same as <a href="/c/{asked.campaign}/calls/1">in call 1</a>' in page


def test_untrusted_parts_are_fenced(client: TestClient, asked: AskedSample) -> None:
    page = client.get(f"/c/{asked.campaign}/calls/3").text
    boxes = re.findall(r'<div class="untrusted">.*?</div>', page, re.DOTALL)
    source, reply = (html.unescape(box) for box in boxes)
    assert "schedule(dynamic, 2)" in source
    assert "Answer now." not in source
    assert "Answer now." in page
    assert '{"a": 1}' in reply


def test_a_call_is_shown_whole(client: TestClient, asked: AskedSample) -> None:
    told = words(client.get(f"/c/{asked.campaign}/calls/4").text)
    for part in (
        "Call 4",
        "2,000 9,000 were reserved",
        "$0.20 was reserved",
        "2 attempts",
        "rate limited",
        "A rule of the house.",
        "int y;",
        "reasoning tokens 120",
        "model big-coder-2026",
        "effort high",
    ):
        assert part in told, part
    thought = words(client.get(f"/c/{asked.campaign}/calls/1").text)
    assert "Rows of 7 are odd." in thought
    assert thought.index("Rows of 7 are odd.") < thought.index("I would rather not.")
    missing = client.get(f"/c/{asked.campaign}/calls/99")
    assert missing.status_code == 404
    assert "99" in missing.text


def test_the_campaign_page_tells_what_was_spent(client: TestClient, asked: AskedSample) -> None:
    page = client.get(f"/c/{asked.campaign}").text
    told = words(page)
    for part in (
        "≈ 12,000 tokens, ≈ $0.30, in 7 calls",
        "1 without an answer may take up to 9,000 tokens and $0.20 more",
        "Limit $1.50",
        "Limit 200,000 tokens",
        "openai/big-coder optimise 2",
        "not usable, asked again",
        "no candidate: no_candidate",
        "no answer yet",
    ):
        assert part in told, part
    figures = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    (line,) = json.loads(figures[1])["data"]
    assert line["x"] == pytest.approx([0.2, 0.25, 0.3])
    assert line["y"] == sorted(line["y"])
    assert [name for name in asked.candidates if name in str(line["customdata"])] == [
        *asked.candidates[1:]
    ]
    assert "≈ $0.30" in words(client.get("/").text)


def test_an_unknown_price_is_said_everywhere(unpriced: AskedSample) -> None:
    with client_of(unpriced.home) as client:
        assert "unknown 2,000 tokens" in words(client.get("/").text)
        page = client.get(f"/c/{unpriced.campaign}").text
        assert "price unknown : 1 answers have no known price" in words(page)
        figures = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
        assert json.loads(figures[1])["data"][0]["x"] == [2000, 2000]
        assert "unknown the price of this model is unknown" in words(
            client.get(f"/c/{unpriced.campaign}/calls/1").text
        )
        rows = csv.DictReader(io.StringIO(client.get(f"/api/c/{unpriced.campaign}/calls.csv").text))
        assert [row["usd"] for row in rows] == ["unknown"]
        assert client.get(f"/api/c/{unpriced.campaign}").json()["usd"] is None


def pages_of(client: TestClient, asked: AskedSample) -> dict[str, str]:
    paths = ["", "/trace", *(f"/calls/{n}" for n in range(1, 8)), "/1", "/2", "/3"]
    return {path: client.get(f"/c/{asked.campaign}{path}").text for path in paths}


def test_hostile_words_never_become_markup(client: TestClient, asked: AskedSample) -> None:
    for path, page in pages_of(client, asked).items():
        assert "<img" not in page, path
        assert HOSTILE not in page, path
        for control in "\x1b\u202e\x07":
            assert control not in page, path
    reply = client.get(f"/c/{asked.campaign}/calls/1").text
    assert html.escape(HOSTILE, quote=False).replace("'", "&#39;") in reply
    assert "⟨U+202E⟩" in reply
    # The JSON is what was stored.
    stored = client.get(f"/api/c/{asked.campaign}/calls/1").json()
    assert EVIL in stored["reply"]["text"]
    assert stored["ask"]["messages"][0]["content"] == SYSTEM


def test_keys_of_the_environment_are_on_no_page(
    asked: AskedSample, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-planted-0123456789abcdef"
    for name in ("OPENAI_API_KEY", "KERNELWRIGHT_API_KEY"):
        monkeypatch.setenv(name, key)
    with client_of(asked.home) as client:
        found = pages_of(client, asked)
        for path in ("calls", "calls.csv", "calls/4", "events"):
            found[path] = client.get(f"/api/c/{asked.campaign}/{path}").text
        found["list"] = client.get("/").text
    with Store.open(asked.home, read_only=True) as store:
        found["report"] = render_report(store, asked.campaign, charts=False)
    assert [path for path, page in found.items() if "planted" in page] == []


def test_calls_as_json_and_csv(client: TestClient, asked: AskedSample) -> None:
    rows = client.get(f"/api/c/{asked.campaign}/calls").json()["calls"]
    assert [row["number"] for row in rows] == list(range(1, 8))
    assert rows[3]["candidate"] == asked.candidates[1]
    assert rows[5]["missing"] == "no_candidate"
    table = list(csv.DictReader(io.StringIO(client.get(f"/api/c/{asked.campaign}/calls.csv").text)))
    assert [row["outcome"] for row in table] == ["stop"] * 5 + ["empty", "no answer yet"]
    whole = client.get(f"/api/c/{asked.campaign}/calls/4").json()
    assert [e["kind"] for e in whole["events"]] == [
        "model.requested",
        "model.failed",
        "model.requested",
        "model.replied",
    ]


def test_a_candidate_leads_to_its_place_in_the_trace(
    client: TestClient, asked: AskedSample
) -> None:
    page = client.get(f"/c/{asked.campaign}/2").text
    assert f'href="/c/{asked.campaign}/trace?at=1%2F0#p-1-0"' in page
    # The words about it that were said last, whole.
    assert "rules (fallback)" in page


def test_a_campaign_without_models_has_no_spending(sample: Any) -> None:
    with client_of(sample.home) as client:
        page = client.get(f"/c/{sample.campaign}").text
        assert "Spent on models" not in page
        assert "Nothing was asked of a model" in client.get(f"/c/{sample.campaign}/trace").text


@pytest.fixture
def long(tmp_path: Path) -> AskedSample:
    """Thirty rounds with a prompt of 40,000 characters each, and a lost blob."""
    with Store.open(tmp_path / "long") as store:
        writer = Writer(store, store.create(begun()))
        for number in range(30):
            text = f"prompt {number} " + "x" * 40_000
            writer.ask(f"{number}/0/write/0", "write", text, f"reply {number}")
        (call,) = list(transcribe(store.events(writer.campaign)).calls.values())[-1:]
    assert call.replied is not None
    sha = call.replied.reply
    (tmp_path / "long" / "blobs" / sha[:2] / sha[2:]).unlink()
    return AskedSample(tmp_path / "long", writer.campaign, ())


def test_long_traces_are_paged_and_capped(long: AskedSample) -> None:
    with client_of(long.home) as client:
        first = client.get(f"/c/{long.campaign}/trace").text
        later = client.get(f"/c/{long.campaign}/trace", params={"at": "25/0"}).text
        whole = client.get(f"/c/{long.campaign}/calls/3").text
    assert len(first) < 10 * (trace.MESSAGE_SHOWN + 3000)
    assert "characters more are left out here" in first
    assert "prompt 9 " in first
    assert "prompt 25 " not in first
    assert "prompt 25 " in later
    assert "The reply cannot be shown: there is no blob" in later
    assert "x" * 40_000 in whole


def test_a_report_has_room_for_so_much(long: AskedSample) -> None:
    with Store.open(long.home, read_only=True) as store:
        page = render_report(store, long.campaign, charts=False)
        assert len(page) < 30 * (trace.MESSAGE_SHOWN + 5000)
        assert "the words of later calls are left out" not in page
        page = render_report(store, long.campaign, charts=False, trace_shown=50_000)
    assert len(page) < 200_000
    assert "the words of later calls are left out" in page
    assert f"kernelwright show {long.campaign} --call 30" in page


def test_the_report_holds_the_trace(asked: AskedSample) -> None:
    with Store.open(asked.home, read_only=True) as store:
        page = render_report(store, asked.campaign, charts=False)
    told = words(page)
    for part in (
        "Spent on models",
        "≈ $0.30",
        "A rule of the house.",
        "Answer now.",
        "int y;",
        "rate limited",
        "rules (fallback)",
        "No candidate: no_candidate",
        "base of the next edit",
    ):
        assert part in told, part
    assert page.count(SYSTEM.splitlines()[0]) == 1
    assert HOSTILE not in page
    assert "<img" not in page
    links = set(re.findall(r'href="#([^"]+)"', page))
    assert links - set(re.findall(r'id="([^"]+)"', page)) == set()


def test_a_report_cleans_thoughts_as_it_cleans_replies(tmp_path: Path) -> None:
    with Store.open(tmp_path / "told") as store:
        writer = Writer(store, store.create(begun()))
        key = "sk-planted-0123456789abcdef"
        writer.ask("0/0/write/0", "write", "Go.", f"reply {key}", reasoning=f"thought {key}")
        page = words(render_report(store, writer.campaign, charts=False))
    assert "thought [redacted]" in page
    assert "reply [redacted]" in page
    assert "planted" not in page
