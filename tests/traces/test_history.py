"""What a campaign's events mean together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kernelwright.errors import StorageError
from kernelwright.traces.events import (
    CampaignFinished,
    CampaignResumed,
    CampaignStarted,
    CandidateProposed,
    ChampionChanged,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    payload_adapter,
)
from kernelwright.traces.history import derive
from kernelwright.traces.records import Depth, Measurement, Status, Timing, Verdict
from kernelwright.traces.store import Store

TIMED = Measurement(workload="w", candidate=Timing(median_us=9.0, low_us=8.0, high_us=10.0))


def stream(*payloads: Any) -> list[Event]:
    return [
        Event(seq=10 + i, campaign="c", at=100.0 + i, payload=payload)
        for i, payload in enumerate(payloads)
    ]


def proposal(name: str, number: int) -> CandidateProposed:
    return CandidateProposed(
        candidate=name, number=number, language="cpp", family="row", operator="initial"
    )


def verdict(name: str, protocol: Depth, status: Status, seed: str = "") -> EvaluationFinished:
    return EvaluationFinished(
        verdict=Verdict(
            candidate=name,
            problem="p",
            workload="w",
            language="cpp",
            target="cpu",
            protocol=protocol,
            status=status,
            reasons=() if status.is_pass else ("why",),
            measurements=(TIMED,) if status is Status.VERIFIED else (),
            seed=seed,
        )
    )


def test_the_most_thorough_and_latest_verdict_counts(new_campaign: CampaignStarted) -> None:
    events = stream(
        new_campaign,
        proposal("a", 1),
        verdict("a", Depth.SCREEN, Status.SCREENED, "1"),
        verdict("a", Depth.CONFIRM, Status.SUSPECT, "2"),
        verdict("a", Depth.CONFIRM, Status.INCORRECT, "3"),
        verdict("a", Depth.FULL, Status.VERIFIED, "4"),
    )
    entry = derive(events).entries["a"]
    assert entry.verdict is not None
    assert entry.verdict.seed == "3"
    assert len(entry.verdicts) == 4


@pytest.mark.parametrize(
    ("status", "holds"),
    [(Status.INCORRECT, False), (Status.SUSPECT, False), (Status.HARNESS_ERROR, True)],
)
def test_a_champion_that_is_at_fault_in_a_heat_of_its_own_loses_its_place(
    new_campaign: CampaignStarted, status: Status, holds: bool
) -> None:
    events = stream(
        new_campaign,
        proposal("a", 1),
        verdict("a", Depth.SCREEN, Status.SCREENED, "1"),
        verdict("a", Depth.CONFIRM, Status.VERIFIED, "2"),
        ChampionChanged(candidate="a", previous=None, credited=1.5),
        verdict("a", Depth.RACE, status, "3"),
    )
    history = derive(events)
    assert history.champion == ("a" if holds else None)
    assert [fall.candidate for fall in history.falls] == ([] if holds else ["a"])
    found = history.entries["a"].verdict
    assert found is not None
    assert found.seed == ("2" if holds else "3")


def test_an_evaluation_without_an_end_is_cut_off(new_campaign: CampaignStarted) -> None:
    begun = EvaluationStarted(candidate="a", protocol="full")
    events = stream(new_campaign, proposal("a", 1), begun, begun)
    assert derive(events).entries["a"].cut_off
    assert derive(events).entries["a"].verdict is None
    events += stream(verdict("a", Depth.FULL, Status.CRASHED))
    history = derive(events)
    assert not history.entries["a"].cut_off
    assert history.by_status == {Status.CRASHED: 1}


def test_a_resume_takes_the_end_back_and_sets_the_budget(new_campaign: CampaignStarted) -> None:
    ended = stream(new_campaign, CampaignFinished(stopped_by="evaluations"))
    assert derive(ended).finished is not None
    assert derive(ended).limits == new_campaign.limits
    more = derive(ended + stream(CampaignResumed(limits={"evaluations": 90}), CampaignResumed()))
    assert (more.finished, more.resumes, more.limits) == (None, 2, {"evaluations": 90})


def test_best_so_far_follows_the_champions(new_campaign: CampaignStarted) -> None:
    history = derive(
        stream(
            new_campaign,
            proposal("a", 1),
            proposal("b", 2),
            ChampionChanged(candidate="a", credited=1.2),
            ChampionChanged(candidate="b", previous="a", credited=1.7),
        )
    )
    assert history.champion == "b"
    assert history.best is history.entries["b"]
    assert [step[:3] for step in history.best_so_far()] == [(1, 103.0, 1.2), (2, 104.0, 1.7)]


def test_the_sample_campaign(sample: Any, write_sample: Callable[..., Any]) -> None:
    running = write_sample(is_finished=False)
    with Store.open(sample.home, read_only=True) as store:
        history = derive(store.events(sample.campaign))
        assert derive(store.events(running.campaign)).finished is None
    assert tuple(history.entries) == sample.candidates
    assert [entry.number for entry in history.entries.values()] == list(range(1, 19))
    assert history.evaluated == 16
    assert set(history.by_status) == set(Status)
    assert history.champion == sample.champion
    assert [e.number for e in history.entries.values() if e.cut_off] == [17]


@pytest.mark.parametrize(
    ("payloads", "message"),
    [
        ([], "do not begin with its start"),
        ([proposal("a", 1)], "do not begin with its start"),
        (["start", "start"], "starts a second time at event 11"),
        (["start", EvaluationStarted(candidate="z", protocol="full")], "never proposed"),
        (["start", verdict("z", Depth.FULL, Status.CRASHED)], "never proposed"),
        (["start", ChampionChanged(candidate="z", credited=1)], "never proposed"),
    ],
)
def test_nonsense_is_told(payloads: list[Any], message: str, new_campaign: CampaignStarted) -> None:
    events = stream(*(new_campaign if p == "start" else p for p in payloads))
    with pytest.raises(StorageError, match=message):
        derive(events)


OLD = {
    "kind": "candidate.proposed",
    "candidate": "c" * 64,
    "number": 1,
    "language": "cpp",
    "family": "model",
    "operator": "write",
    "place": "0/0",
    "note": "tile rows; it lacks nothing; techniques: loop-unrolling; 2 edits of the base",
}
NEW = {
    "strategy": "tile rows; it lacks nothing",
    "techniques": ["loop-unrolling"],
    "notes": ["2 edits of the base"],
}


def test_what_older_records_say_of_a_proposal_in_one_text_is_shown_as_it_is() -> None:
    old = payload_adapter.validate_python(OLD)
    new = payload_adapter.validate_python({k: v for k, v in OLD.items() if k != "note"} | NEW)
    assert isinstance(old, CandidateProposed)
    assert isinstance(new, CandidateProposed)
    assert (old.strategy, old.techniques, old.notes) == ("", (), ())
    assert old.said == new.said == OLD["note"]
    assert new.note == ""
