"""`demo --models`: the recorded campaign can be looked at in every way, and asks nobody."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from kernelwright.traces.records import Status
from kernelwright.traces.report import render_report
from kernelwright.traces.store import Store
from kernelwright.traces.transcript import transcribe
from kernelwright.traces.view.app import create_app

from .conftest import Command


def put(kw_here: Command, home: Path) -> dict[str, Any]:
    done = kw_here("demo", "--models", "--json", "--home", str(home))
    assert (done.code, done.err) == (0, "")
    return done.document


def test_a_recorded_campaign_is_put_into_the_home_once(kw_here: Command, tmp_path: Path) -> None:
    first, second = (put(kw_here, tmp_path / "home") for _ in range(2))
    assert (first["was_there"], second["was_there"]) == (False, True)
    assert first["campaign"] == second["campaign"]
    told = kw_here("demo", "--models", "--home", str(tmp_path / "home"))
    assert f"--calls --home {tmp_path}" in told.err
    assert told.out.strip() == first["campaign"]
    assert "nothing was asked or run here" in told.err


def test_it_has_prompts_replies_advice_and_a_winner(kw_here: Command, tmp_path: Path) -> None:
    campaign = put(kw_here, tmp_path)["campaign"]
    with Store.open(tmp_path, read_only=True) as store:
        transcript = transcribe(store.events(campaign))
        asked = {call.requested.purpose for call in transcript.calls.values()}
        assert len(transcript.calls) >= 6
        assert len(asked) >= 2
        for call in transcript.calls.values():
            assert store.get_blob(call.requested.ask)
            assert call.replied is None or store.get_blob(call.replied.reply)
        report = render_report(store, campaign)
    assert "credited" in report
    shown = kw_here("show", campaign, "--json", "--home", str(tmp_path)).document
    assert shown["best"]["status"] == Status.VERIFIED
    listed = kw_here("show", campaign, "--calls", "--home", str(tmp_path))
    assert listed.code == 0


def test_every_page_of_it_opens(kw_here: Command, tmp_path: Path) -> None:
    campaign = put(kw_here, tmp_path)["campaign"]
    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1") as client:
        for path in ("", "/why", "/tree", "/trace", "/@best", "/calls/1"):
            reply = client.get(f"/c/{campaign}{path}")
            assert reply.status_code == 200, path
        why = client.get(f"/c/{campaign}/why").text
    assert "Spent on models" in why


def test_it_says_which_there_are(kw_here: Command, tmp_path: Path) -> None:
    done = kw_here("demo", "--home", str(tmp_path / "home"))
    assert done.code == 2
    assert "kernelwright demo --models" in done.err
    assert not (tmp_path / "home").exists()
