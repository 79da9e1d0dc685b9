"""The report: one file, whole, clean of keys and home folders."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from kernelwright.tests.traces.conftest import source_of, verdict_of
from kernelwright.tests.traces.store_parts import proposed
from kernelwright.traces.events import (
    AdviceGiven,
    CampaignStarted,
    EvaluationFinished,
    Event,
    Payload,
)
from kernelwright.traces.records import Advice, Depth, Status
from kernelwright.traces.redact import Redactor
from kernelwright.traces.report import MOST_DETAILED, render_report
from kernelwright.traces.report_text import render_markdown
from kernelwright.traces.store import Store


def test_the_report_is_one_file_with_every_candidate(sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store:
        page = render_report(store, sample.campaign, charts=False)
    assert len(page) < 600_000
    assert not re.search(r'(?:src|href)="(?!#|data:)', page)
    for name in sample.candidates:
        assert f'id="c-{name[:10]}"' in page
    assert "2.40×" in page
    assert "<img" not in page
    assert sample.hostile not in page


def test_unchanged_lines_are_only_in_the_code(sample: Any) -> None:
    """They were most of a report, once for each candidate with a parent."""
    with Store.open(sample.home, read_only=True) as store:
        page = render_report(store, sample.campaign, charts=False)
    assert "unchanged lines</p>" in page
    assert "unchanged lines</summary>" not in page


def test_charts_are_drawn_and_need_no_library(sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store:
        page = render_report(store, sample.campaign)
        plain = render_report(store, sample.campaign, charts=False)
    assert page.count('<svg class="drawing"') == 1 + 4 * 2
    assert "<svg" not in plain
    assert len(page) - len(plain) < 400_000
    # One script of ours: nothing breaks out of an element.
    assert page.lower().count("<script") == page.lower().count("</script>") == 1
    assert sample.hostile not in page


def test_keys_and_homes_are_left_out(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    config = {
        "home": "/home/alice/.local/share/kernelwright",
        "api_key": "anything at all",
        "nested": {"endpoint": "https://x/?k=sk-abcdefghijklmnop1234"},
    }
    started = new_campaign.model_copy(
        update={"config": config, "machine": {"where": f"{tmp_path}/x and /Users/bob/k.mtx"}}
    )
    with Store.open(tmp_path) as store:
        page = render_report(store, store.create(started), charts=False)
    for word in ("alice", "anything at all", "sk-abc", str(tmp_path), "bob"):
        assert word not in page
    assert "$KERNELWRIGHT_HOME/x and ~/k.mtx" in page


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("key sk-proj-abcdefghijkl end", "key [redacted] end"),
        ("hf_abcdefghijklmnop", "[redacted]"),
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: [redacted]"),
        ("a value of-my-secret-env.", "a value [redacted]."),
        ("/home/carol/x.cpp:3", "~/x.cpp:3"),
        ("/data/kw/blobs", "$KERNELWRIGHT_HOME/blobs"),
        ("task-force and risk-free", "task-force and risk-free"),
    ],
)
def test_texts_are_cleaned(text: str, clean: str) -> None:
    redactor = Redactor(Path("/data/kw"), {"MY_API_KEY": "of-my-secret-env", "PATH": "/usr/bin"})
    assert redactor.text(text) == clean


def test_every_event_of_a_campaign_survives_cleaning(sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store:
        events = store.events(sample.campaign)
    cleaned = [Redactor(sample.home, {}).event(event) for event in events]
    assert [e.payload.kind for e in cleaned] == [e.payload.kind for e in events]
    assert cleaned[1:] == events[1:]
    assert cleaned[0].payload.config["api_key"] == "[redacted]"


@pytest.mark.parametrize(
    "leak", ["/home/dave/k.cpp", "C:\\Users\\dave\\k", "hf_abcdefghijklmnop", 'a"b\\c-secret']
)
def test_leaks_in_later_events_are_found(leak: str) -> None:
    advice = Advice(candidate="c", bottleneck="x", change=f"see {leak}")
    event = Event(seq=2, campaign="c", at=0, payload=AdviceGiven(advice=advice))
    cleaned = Redactor(Path("/data/kw"), {"A_SECRET": 'a"b\\c-secret'}).event(event)
    assert isinstance(cleaned.payload, AdviceGiven)
    assert leak not in cleaned.payload.advice.change
    assert "dave" not in cleaned.payload.advice.change


def test_markdown_for_a_pull_request(sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store:
        text = render_markdown(store, sample.campaign)
    head, *lines = text.splitlines()
    assert head == "## spmm_csr on cpu: 2.47× (95 % 2.40–2.54) against torch eager"
    path = [int(number) for number in re.findall(r"^- #(\d+) ", text, re.MULTILINE)]
    assert len(path) > 1
    assert path == sorted(path)
    rows = [line for line in lines if line.startswith("| ")]
    assert sum("VERIFIED" in row for row in rows) >= 3
    # Words of models and candidates format nothing.
    assert all(row.count("|") - row.count("\\|") in (6, 7) for row in rows), rows
    assert "<script" not in re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert text.count("<details>") == text.count("</details>") == 2


def test_a_campaign_without_a_winner_says_why_in_markdown(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        text = render_markdown(store, store.create(new_campaign))
    assert text.startswith("## spmm_csr on cpu: no winner: ")
    assert "0 candidates" in text


@pytest.mark.slow
def test_a_large_campaign_has_a_report_that_can_be_sent(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        campaign = large_campaign(store, new_campaign, 2000)
        page = render_report(store, campaign)
    assert len(page) < 6_000_000
    assert page.count('<tr data-key="') == 2000
    assert page.count('<details class="candidate"') == MOST_DETAILED
    assert "1940 candidates are only in the table" in page


def test_of_very_many_candidates_the_fastest_are_in_the_table(
    tmp_path: Path, new_campaign: CampaignStarted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelwright.traces.report.MOST_ROWS", 20)
    with Store.open(tmp_path) as store:
        campaign = large_campaign(store, new_campaign, 50)
        page = render_report(store, campaign, charts=False)
    assert "The fastest 20 of 50." in page
    assert page.count('<tr data-key="') == 20


def large_campaign(store: Store, started: CampaignStarted, count: int) -> str:
    """So many candidates, each made of the one before and verified, in one transaction."""
    rng = random.Random(1)
    payloads: list[Payload] = [started]
    parents: tuple[str, ...] = ()
    for number in range(1, count + 1):
        name = store.put_blob(source_of(number) + "// the same line in all of them\n" * 200)
        made = proposed(number, name).model_copy(update={"parents": parents})
        found = verdict_of(name, Status.VERIFIED, Depth.FULL, 1 + number / count, rng)
        payloads += [made, EvaluationFinished(verdict=found)]
        parents = (name,)
    events = [
        Event(seq=seq, campaign="large", at=float(seq), payload=payload)
        for seq, payload in enumerate(payloads, 1)
    ]
    store.adopt("large", events)
    return "large"
