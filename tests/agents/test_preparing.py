"""What must be ready before the first candidate costs a campaign nothing of its time."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.agents.books.progress import Progress
from kernelwright.agents.stop import Stop
from kernelwright.running import CampaignRequest, resume_campaign, run_campaign
from kernelwright.tests.agents.played import Clock, PlayedReferee, players
from kernelwright.traces.events import CampaignPrepared
from kernelwright.traces.history import derive
from kernelwright.traces.outcome import why_no_winner
from kernelwright.traces.store import Store

REQUEST = CampaignRequest(problem="doubling", limits={"seconds": 30.0}, seed=7)


def test_the_clock_of_a_campaign_starts_when_its_baselines_are_ready(tmp_path: Path) -> None:
    clock = Clock()
    referee = PlayedReferee(clock=clock, prepare_s=500.0)
    with Store.open(tmp_path, clock=clock) as store:
        result = run_campaign(REQUEST, store, referee, players=players(), clock=clock)
        events = store.events(result.campaign)
    assert result.stopped_by == "seconds"
    assert result.best is not None
    assert result.evaluated > 10
    assert result.wall_s == pytest.approx(Progress(events).spent_s) == pytest.approx(30.0, abs=6)
    (prepared,) = derive(events).prepared
    assert prepared.seconds == {"referee": 1.0, "baselines": 500.0}
    assert derive(events).preparation_s == 501.0
    assert isinstance(events[1].payload, CampaignPrepared)


def test_a_resumption_prepares_outside_of_the_budget_too(tmp_path: Path) -> None:
    clock = Clock()
    with Store.open(tmp_path, clock=clock) as store:
        referee = PlayedReferee(clock=clock, prepare_s=100.0)
        first = run_campaign(REQUEST, store, referee, players=players(), clock=clock)
        again = resume_campaign(
            first.campaign, store, referee, {"seconds": 60.0}, players=players(), clock=clock
        )
        events = store.events(first.campaign)
    assert again.evaluated > first.evaluated
    # What was kept for the race is spent where there is somebody to race.
    assert 40.0 < again.wall_s < 66.0
    assert Progress(events).spent_s == pytest.approx(again.wall_s)
    assert derive(events).preparation_s == 202.0


def test_who_wants_the_end_while_it_is_prepared_gets_it_and_nothing_is_spent(
    tmp_path: Path,
) -> None:
    clock, stop = Clock(), Stop()
    stop.request()
    with Store.open(tmp_path, clock=clock) as store:
        referee = PlayedReferee(clock=clock, prepare_s=100.0)
        ended = run_campaign(REQUEST, store, referee, players=players(), clock=clock, stop=stop)
        assert (ended.stopped_by, ended.evaluated, ended.wall_s) == ("interrupted", 0, 0.0)
        told = why_no_winner(derive(store.events(ended.campaign)))
        assert told.endswith("it was interrupted while the baselines were prepared")
        again = resume_campaign(ended.campaign, store, referee, players=players(), clock=clock)
        assert again.best is not None
        assert why_no_winner(derive(store.events(ended.campaign))) == ""
