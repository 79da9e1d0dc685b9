"""The reading commands on a store that a campaign left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.tests.cli import stored

from .conftest import Command


@pytest.fixture
def campaign(private: dict[str, str]) -> str:
    return stored.fill(Path(private["KERNELWRIGHT_HOME"]))


def test_an_empty_home_has_no_campaigns(kw_here: Command) -> None:
    done = kw_here("list")
    assert (done.code, done.out) == (0, "")
    assert "kernelwright run PROBLEM" in done.err
    assert kw_here("list", "--json").document["campaigns"] == []


@pytest.mark.parametrize("command", [["show", "@last"], ["report", "@last"]])
def test_reading_an_empty_home_is_an_error_with_a_hint(
    kw_here: Command, command: list[str]
) -> None:
    done = kw_here(*command)
    assert done.code == 2
    assert done.out == ""
    assert "hint: " in done.err


def test_list(kw_here: Command, campaign: str) -> None:
    (row,) = kw_here("list", "--json").document["campaigns"]
    assert row["campaign"] == campaign
    assert row["state"] == "finished (seconds)"
    assert row["evaluated"] == 2
    text = kw_here("list").out
    assert campaign in text
    assert "0.80× vs scipy" in text


def test_show_as_json_is_the_document_of_run_and_more(kw_here: Command, campaign: str) -> None:
    document = kw_here("show", campaign[:-2], "--json").document
    assert set(document) >= {
        "campaign",
        "problem",
        "target",
        "tier",
        "workflow",
        "model",
        "best",
        "evaluated",
        "by_status",
        "usd",
        "tokens",
        "wall_s",
        "stopped_by",
        "state",
        "candidates",
    }
    best = document["best"]
    assert set(best) >= {"candidate", "status", "latency_us", "roofline", "speedup"}
    assert best["candidate"] == stored.IDS[1]
    assert best["protocol"] == "confirm"
    assert best["speedup"]["torch eager"] == {
        "median": 2.0,
        "low": 1.9,
        "high": 2.1,
        "blocks": 1,
    }
    assert document["by_status"] == {"VERIFIED": 1, "INCORRECT": 1}
    assert [c["status"] for c in document["candidates"]] == ["INCORRECT", "VERIFIED", None]
    assert document["candidates"][2]["is_cut_off"]


def test_show_names_the_winner_against_every_baseline(kw_here: Command, campaign: str) -> None:
    text = kw_here("show", campaign).out
    assert "confirmed in a fresh process" in text
    assert "2.00× (95 % 1.90–2.10) vs torch eager" in text
    assert "0.80× (95 % 0.75–0.85) vs scipy  (the best baseline)" in text
    assert "cut off" in text


def test_without_a_winner_it_says_what_was_found(kw_here: Command, private: dict[str, str]) -> None:
    stored.fill(Path(private["KERNELWRIGHT_HOME"]), has_winner=False)
    why = "1 of 2 candidates passed the quick checks, and none was confirmed before its time"
    assert f"no verified winner: {why}" in kw_here("show", "@last").out
    document = kw_here("show", "@last", "--json").document
    assert document["best"] is None
    assert document["why_no_winner"].startswith(why)
    done = kw_here("export", "@best", "-o", "out")
    assert done.code == 2
    assert "no verified winner" in done.err


@pytest.mark.parametrize("name", ["@best", "@last@best", "@last/2", f"@last/{stored.IDS[1][:8]}"])
def test_a_candidate_has_many_names(kw_here: Command, campaign: str, name: str) -> None:
    assert campaign
    document = kw_here("show", name, "--json").document
    assert document["candidate"] == stored.IDS[1]
    assert [v["protocol"] for v in document["verdicts"]] == ["screen", "confirm"]
    assert document["advice"]["change"] == "Cut rows."
    assert document["source"] == stored.SOURCES[1]
    assert kw_here("show", name, "--source").out == stored.SOURCES[1]


def test_checks_are_told_by_kind_unless_asked(kw_here: Command, campaign: str) -> None:
    brief = kw_here("show", f"{campaign}/2").out
    assert "correct (3 times)" in brief
    assert "baseline torch.compile did not run: no C++ compiler was found" in brief
    assert "correct on shape 1" in kw_here("show", f"{campaign}/2", "--all").out
    failed = kw_here("show", f"{campaign}/1").out
    assert "FAIL" in failed
    assert "C[7] was written outside" in failed
    assert "INCORRECT: an output was wrong" in failed


@pytest.mark.parametrize(
    ("name", "word"),
    [("nothing", "nothing"), ("@last/99", "99"), ("", "''"), ("@last/", "@last/")],
)
def test_a_name_that_means_nothing(kw_here: Command, campaign: str, name: str, word: str) -> None:
    assert campaign
    done = kw_here("show", name)
    assert done.code == 2
    assert word in done.err
    assert "hint: " in done.err


def test_a_source_belongs_to_a_candidate(kw_here: Command, campaign: str) -> None:
    done = kw_here("show", campaign, "--source")
    assert done.code == 2
    assert f"show {campaign}@best --source" in done.err


def test_a_report_goes_to_a_file_or_to_stdout(
    kw_here: Command, campaign: str, tmp_path: Path
) -> None:
    done = kw_here("report", campaign, "-o", "deep/r.html")
    assert (done.code, done.out.strip()) == (0, "deep/r.html")
    text = (tmp_path / "work" / "deep" / "r.html").read_text("utf-8")
    assert text.lstrip().lower().startswith("<!doctype html>")
    assert campaign in kw_here("report", "@last", "-o", "-").out
    refused = kw_here("report", campaign, "-o", "/proc/nowhere/r.html")
    assert refused.code == 2
    assert "/proc/nowhere" in refused.err
