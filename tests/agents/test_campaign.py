"""A whole campaign against the played referee: what it records and what it answers."""

from __future__ import annotations

from kernelwright.campaign import CampaignRequest, run_campaign
from kernelwright.tests.agents.played import PlayedReferee, players
from kernelwright.traces.history import derive
from kernelwright.traces.records import Protocol, Status
from kernelwright.traces.store import Store


def request(**limits: float) -> CampaignRequest:
    return CampaignRequest(problem="doubling", limits=limits, seed=7)


def test_a_campaign_finds_records_and_confirms_a_winner(store: Store) -> None:
    referee = PlayedReferee()
    result = run_campaign(request(evaluations=30), store, referee, players=players())
    history = derive(store.events(result.campaign))
    assert result.evaluated == 30
    assert result.stopped_by == "evaluations"
    assert result.best is not None
    assert result.best.status == Status.VERIFIED
    assert result.best.candidate == history.champion
    assert set(result.best.speedup) == {"torch eager"}
    assert len(set(referee.asked)) == len(referee.asked)
    assert sum(1 for _, protocol in referee.asked if protocol is Protocol.SCREEN) == 30
