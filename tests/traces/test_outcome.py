"""Why there is no winner: one sentence for each way to end without, the same wherever it stands."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from kernelwright.agents.model import FaultKind, ModelFault
from kernelwright.cli.summary import winner_lines
from kernelwright.errors import ProviderError
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.asked import PlayedModel, Script, asking_players
from kernelwright.tests.agents.played import Clock, Fate, PlayedReferee, players
from kernelwright.tests.cli.stored import proposed, verdict
from kernelwright.tests.traces.conftest import started
from kernelwright.traces.documents import campaign_document
from kernelwright.traces.events import CampaignFinished, CampaignPrepared, EvaluationFinished
from kernelwright.traces.head import head_of
from kernelwright.traces.history import History, derive
from kernelwright.traces.outcome import why_no_winner
from kernelwright.traces.records import MODELLED_US, Depth, Metric, Profile, Status
from kernelwright.traces.report import render_report
from kernelwright.traces.store import Store
from kernelwright.traces.view.app import create_app


def ended(
    home: Path, fate: Fate = lambda _order: None, screen_s: float = 1.0, **limits: float
) -> History:
    """The history of a campaign whose candidates meet this fate."""
    clock = Clock()
    referee = PlayedReferee(fate=fate, clock=clock, screen_s=screen_s)
    request = CampaignRequest(problem="doubling", limits=limits)
    with Store.open(home, clock=clock) as store:
        found = run_campaign(request, store, referee, players=players(), clock=clock)
        return derive(store.events(found.campaign))


def asked(home: Path, script: Script, **limits: float) -> History:
    request = CampaignRequest(problem="doubling", workflow="forge", limits=limits, rounds=2)
    with Store.open(home) as store:
        try:
            seats = asking_players(PlayedModel(script))
            run_campaign(request, store, PlayedReferee(), players=seats)
        except ProviderError:
            pass
        return derive(store.events(store.campaigns()[0]))


def test_a_campaign_with_a_winner_says_nothing(tmp_path: Path) -> None:
    assert why_no_winner(ended(tmp_path, evaluations=5.0)) == ""


def test_none_right_tells_the_counts_and_the_most_frequent_cause(tmp_path: Path) -> None:
    met: list[str] = []

    def fate(order: object) -> Status:
        met.append(str(order))
        return Status.BUILD_FAILED if len(met) == 2 else Status.INCORRECT

    assert why_no_winner(ended(tmp_path, fate, evaluations=4.0)) == (
        "none of 4 candidates was right: 3 INCORRECT, 1 BUILD_FAILED; most often: played INCORRECT"
    )


def test_right_but_refuted_tells_who_and_by_what(tmp_path: Path) -> None:
    def fate(order: object) -> Status | None:
        is_confirm = getattr(order, "protocol", None) is Depth.CONFIRM
        return Status.SUSPECT if is_confirm else None

    told = why_no_winner(ended(tmp_path, fate, evaluations=3.0))
    assert told.startswith("3 of 3 candidates passed the quick checks, and #3 (and 2 more) did not")
    assert told.endswith("when it was confirmed: SUSPECT: played SUSPECT")


def test_right_and_never_confirmed_tells_what_ended_it_and_who_was_next(tmp_path: Path) -> None:
    told = why_no_winner(ended(tmp_path, screen_s=40.0, seconds=30.0))
    assert told == (
        "1 of 1 candidate passed the quick checks, and none was confirmed before its time of 30 s "
        "was over; #1 was next"
    )


@pytest.mark.parametrize(
    ("script", "limits", "words"),
    [
        ({"0/0/write/1": ModelFault(FaultKind.KEY, "no")}, {}, "a model's endpoint refused"),
        ({}, {"tokens": 10.0}, "its 10 tokens were spent"),
        (
            {f"{n}/0/write/{t}": "just words" for n in (0, 1) for t in (1, 2)},
            {},
            "its rounds were over; 2 replies held no candidate, most often: no fenced block",
        ),
    ],
)
def test_nothing_evaluated_tells_why(
    tmp_path: Path, script: Script, limits: dict[str, float], words: str
) -> None:
    told = why_no_winner(asked(tmp_path, script, **limits))
    assert told.startswith("no candidate was evaluated: ")
    assert words in told


def test_an_emulated_target_tells_who_leads_by_modelled_time(tmp_path: Path) -> None:
    modelled = Metric(name=MODELLED_US, value=12.5)
    with Store.open(tmp_path) as store:
        campaign = store.create(started().model_copy(update={"target": "sm_90"}))
        store.append(campaign, proposed(1, "row-balanced"))
        found = verdict(1, Status.SCREENED, Depth.SCREEN).model_copy(
            update={
                "emulated": True,
                "target": "sm_90",
                "measurements": (),
                "profile": Profile(metrics=(modelled,)),
            }
        )
        store.append(campaign, EvaluationFinished(verdict=found))
        store.append(campaign, CampaignFinished(stopped_by="rounds"))
        history = derive(store.events(campaign))
    assert why_no_winner(history) == (
        "sm_90 is emulated here, where nothing is timed and nothing can win; the best by modelled "
        "time is #1 (12.5 µs)"
    )


def test_a_process_that_was_killed_tells_whether_it_came_to_a_candidate(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(started())
        told = why_no_winner(derive(store.events(campaign)))
        assert told.endswith("its process ended without a word while the baselines were prepared")
        store.append(campaign, CampaignPrepared(seconds={"referee": 2.0, "baselines": 20.6}))
        assert why_no_winner(derive(store.events(campaign))).endswith("without a word")


def test_every_place_that_shows_a_campaign_says_the_same(tmp_path: Path) -> None:
    history = ended(tmp_path, lambda _order: Status.CRASHED, evaluations=2.0)
    told = why_no_winner(history)
    assert told == "none of 2 candidates was right: 2 CRASHED; most often: played CRASHED"
    assert f"no verified winner: {told}" in list(winner_lines(head_of(history), history.best))
    assert campaign_document(history)["why_no_winner"] == told
    assert campaign_document(history, is_running=True)["why_no_winner"] is None
    assert campaign_document(history)["preparation"]["baselines"] == ["torch eager"]
    with Store.open(tmp_path, read_only=True) as store:
        assert f"No winner: {told}." in render_report(store, history.campaign, charts=False)
    with TestClient(create_app(tmp_path), base_url="http://127.0.0.1:8765") as client:
        page = client.get(f"/c/{history.campaign}").text
        assert f"No winner: {told}." in page
        assert "outside the budget: referee" in page
        (row,) = client.get("/api/campaigns").json()["campaigns"]
        assert row["why_no_winner"] == told
