"""The transcript: which calls led to what, at which place, and what each cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.errors import StorageError
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.asked import PlayedModel, as_it_says, asking_players, kernel
from kernelwright.tests.agents.played import PlayedReferee
from kernelwright.tests.traces.asked_sample import AskedSample, Writer, begun
from kernelwright.traces.events import (
    AdviceGiven,
    CandidateMissing,
    CandidateProposed,
    Event,
    ModelReplied,
)
from kernelwright.traces.head import head_of
from kernelwright.traces.history import derive
from kernelwright.traces.place import Place
from kernelwright.traces.records import Status
from kernelwright.traces.sheet import Sheet
from kernelwright.traces.store import Store
from kernelwright.traces.transcript import Call, transcribe


def kinds(moments: list[object]) -> list[str]:
    """What happened, in words."""
    return [f"call {m.number}" if isinstance(m, Call) else getattr(m, "kind", "?") for m in moments]


def test_each_place_tells_its_story_in_order(asked: AskedSample) -> None:
    with Store.open(asked.home, read_only=True) as store:
        transcript = transcribe(store.events(asked.campaign))
    assert {str(place): kinds(step.moments) for place, step in transcript.steps.items()} == {
        "0/0": ["call 1", "call 2", "candidate.proposed"],
        "1/0": ["call 3", "advice.given", "call 4", "candidate.proposed"],
        "2/0": ["advice.given", "call 5", "candidate.proposed", "decided"],
        "3/0": ["call 6", "candidate.missing"],
        "4/0": ["call 7"],
    }
    results = [call.result.kind if call.result else None for call in transcript.calls.values()]
    assert results == [
        None,
        "candidate.proposed",
        "advice.given",
        "candidate.proposed",
        "candidate.proposed",
        "candidate.missing",
        None,
    ]
    setbacks = [call.setback for call in transcript.calls.values()]
    assert setbacks == ["not usable, asked again", "", "", "", "", "", ""]


def test_attempts_outcomes_and_costs(asked: AskedSample) -> None:
    with Store.open(asked.home, read_only=True) as store:
        events = store.events(asked.campaign)
    transcript, sheet = transcribe(events), Sheet.of_events(events)
    repair, estimated, empty, unanswered = list(transcript.calls.values())[3:]
    assert [a.outcome.kind for a in repair.attempts if a.outcome] == [
        "model.failed",
        "model.replied",
    ]
    assert (repair.failures, repair.outcome, repair.tokens, repair.usd) == (1, "stop", 2000, 0.05)
    assert not repair.is_estimated
    assert repair.seconds == 30
    assert estimated.is_estimated
    assert empty.outcome == "empty"
    assert (unanswered.outcome, unanswered.tokens, unanswered.usd) == ("no answer yet", 0, 0)
    rows, head = sheet.share_spending(), sheet.head
    assert sum(row.tokens for row in rows) == head.spent.tokens == 6 * 2000
    assert sum(row.usd or 0 for row in rows) == pytest.approx(head.spent.usd)
    assert (rows[0].purpose, rows[0].calls) == ("optimise", 2)
    first, second = head.crowned
    assert (first.candidate, first.tokens, second.tokens) == (asked.candidates[1], 8000, 10_000)
    assert first.usd == pytest.approx(0.2)


def test_a_price_that_is_unknown_stays_unknown(unpriced: AskedSample) -> None:
    with Store.open(unpriced.home, read_only=True) as store:
        sheet = Sheet.of_events(store.events(unpriced.campaign))
    (share,) = sheet.share_spending()
    assert (sheet.head.spent.usd, share.usd, sheet.head.crowned[0].usd) == (None, None, None)


def test_a_played_campaign_is_told_whole(tmp_path: Path) -> None:
    script = {
        "0/0/write/1": kernel(fails="INCORRECT"),
        "1/0/repair/1": kernel(step=1),
        "2/0/optimise/1": "no code at all",
    }
    with Store.open(tmp_path) as store:
        request = CampaignRequest(problem="doubling", workflow="forge", rounds=3)
        referee = PlayedReferee(fate=as_it_says, noise=0.001)
        players = asking_players(PlayedModel(script))
        result = run_campaign(request, store, referee, players=players)
        events = store.events(result.campaign)
    transcript, spent = transcribe(events), head_of(derive(events)).spent
    assert [str(place) for place in transcript.steps] == ["0/0", "1/0", "2/0"]
    found = [call.result for call in transcript.calls.values()]
    assert [type(each) for each in found] == [
        CandidateProposed,
        AdviceGiven,
        CandidateProposed,
        AdviceGiven,
        CandidateMissing,
    ]
    assert (spent.tokens, spent.usd) == (result.tokens, result.usd)


@pytest.mark.parametrize(
    ("place", "step"),
    [
        ("3/0/judge optimise/1", "3/0"),
        ("12/7/soft memory/2/0", "12/7"),
        ("3/0", "3/0"),
        ("candidate 4/judge repair/0", "candidate 4"),
        ("elsewhere", "elsewhere"),
        ("", ""),
    ],
)
def test_places_belong_to_steps(place: str, step: str) -> None:
    assert str(Place.parse(place).step) == step


def test_an_answer_to_nothing_is_an_error() -> None:
    reply = ModelReplied(call="c", attempt=1, reply="0" * 64, finish="stop", tokens=1)
    with pytest.raises(StorageError, match="event 4 "):
        transcribe([Event(seq=4, campaign="x", at=0.0, payload=reply)])


def test_an_answer_that_rules_replaced_led_to_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        writer = Writer(store, store.create(begun()))
        writer.propose("0/0", "write", Status.SCREENED)
        for turn in (0, 1):
            writer.ask(f"1/0/judge optimise/{turn}", "judge optimise", "Why?", "no JSON")
        writer.advise("1/0", by="rules (fallback)")
        calls = transcribe(store.events(writer.campaign)).calls.values()
    assert [call.result for call in calls] == [None, None]
    assert [call.setback for call in calls] == [
        "not usable, asked again",
        "not usable, rules spoke instead",
    ]
