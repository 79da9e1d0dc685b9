"""`show --calls`, `show --call N` and the spending in `list`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.tests.cli import stored
from kernelwright.tests.traces.asked_sample import CODER, EVIL, SYSTEM, AskedSample, write_asked

from .conftest import Command


@pytest.fixture
def asked(private: dict[str, str]) -> AskedSample:
    return write_asked(Path(private["KERNELWRIGHT_HOME"]))


def test_list_tells_what_was_spent(kw_here: Command, asked: AskedSample) -> None:
    stored.fill(asked.home)
    text = kw_here("list").out
    assert "≈ 12,000" in text
    assert "≈ $0.30" in text
    free, paid = kw_here("list", "--json").document["campaigns"]
    assert (free["usd"], free["tokens"]) == (0, 0)
    assert (paid["usd"], paid["tokens"]) == (pytest.approx(0.3), 12_000)
    assert (free["is_estimated"], paid["is_estimated"]) == (False, True)


def test_list_of_campaigns_without_models_has_no_such_column(
    kw_here: Command, private: dict[str, str]
) -> None:
    stored.fill(Path(private["KERNELWRIGHT_HOME"]))
    assert "usd" not in kw_here("list").out
    assert kw_here("show", "@last", "--calls").out == "no model was asked\n"


def test_calls_in_a_table(kw_here: Command, asked: AskedSample) -> None:
    done = kw_here("show", asked.campaign, "--calls")
    assert done.code == 0
    first, *rows = done.out.splitlines()
    assert first == "7 calls, ≈ 12,000 tokens, ≈ $0.30  (≈ estimated)"
    table = "\n".join(rows)
    for words in (
        "0/0/write/0",
        "not usable, asked again",
        CODER,
        "no answer yet",
        "≈ $0.05",
        "no candidate: no_candidate",
        f"#2 {asked.candidates[1][:10]} VERIFIED",
        "advice",
    ):
        assert words in table
    of_one = kw_here("show", f"{asked.campaign}/2", "--calls", "--json").document["calls"]
    assert [call["number"] for call in of_one] == [3, 4]


def test_calls_as_json(kw_here: Command, asked: AskedSample) -> None:
    document = kw_here("show", asked.campaign, "--calls", "--json").document
    assert (document["tokens"], document["is_estimated"]) == (12_000, True)
    assert [call["attempts"] for call in document["calls"]] == [1, 1, 1, 2, 1, 1, 1]
    assert document["calls"][3]["candidate"] == asked.candidates[1]


def test_one_call_is_printed_whole_and_harmless(kw_here: Command, asked: AskedSample) -> None:
    text = kw_here("show", "@last", "--call", "1").out
    assert SYSTEM.rstrip() in text
    assert "──── reply" in text
    assert "──── reasoning (recorded only, never fed back)" in text
    assert text.index("Rows of 7 are odd.") < text.index("I would rather not.")
    assert "⟨U+001B⟩[31mred⟨U+202E⟩" in text
    for control in "\x1b\u202e\x07":
        assert control not in text
    again = kw_here("show", asked.campaign, "--call", "1/0/repair/0").out
    assert "attempt 1: rate limited: the server said" in again
    assert "\x1b" not in again
    assert "int y;" in again
    document = kw_here("show", "@last", "--call", "1", "--json").document
    assert document["ask"]["messages"][0]["content"] == SYSTEM
    assert EVIL in document["reply"]["text"]
    assert EVIL in document["reply"]["reasoning"]
    assert json.dumps(document)


def test_a_call_that_is_not_there(kw_here: Command, asked: AskedSample) -> None:
    assert asked
    done = kw_here("show", "@last", "--call", "88")
    assert (done.code, done.out) == (2, "")
    assert "88" in done.err
    both = kw_here("show", "@last", "--call", "1", "--calls")
    assert both.code == 2
    assert "--calls" in both.err


def test_an_unanswered_call_has_no_reply(kw_here: Command, asked: AskedSample) -> None:
    assert asked
    text = kw_here("show", "@last", "--call", "7").out
    assert "no answer yet" in text
    assert "──── reply" not in text
    assert kw_here("show", "@last", "--call", "7", "--json").document["reply"] is None
