"""Confirmations ahead of the race have their share of the time, in every workflow."""

from __future__ import annotations

import dataclasses

import pytest

from kernelwright.agents.casting.cast import replay_request
from kernelwright.agents.models import replay
from kernelwright.agents.models.replay import ReplayModel
from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.asked import as_it_says, kernel, source
from kernelwright.tests.agents.deciding import decisions
from kernelwright.tests.agents.played import Clock, PlayedReferee
from kernelwright.tests.agents.workflows.staged import Improviser, decided, request, seats
from kernelwright.traces.decisions import Postponed
from kernelwright.traces.records import Depth, candidate_id
from kernelwright.traces.store import Store

ROUNDS = 12


def rising() -> Improviser:
    """Each candidate is better than the one before it."""
    return Improviser(
        {f"{n}/0/{kind}/1": kernel(step=n) for n in range(ROUNDS) for kind in ("write", "optimise")}
    )


@pytest.mark.parametrize("workflow", ["refine", "best_of_n"])
def test_who_would_take_too_long_to_confirm_is_left_to_the_race(
    store: Store, workflow: str
) -> None:
    clock = Clock()
    store._clock = clock
    referee = PlayedReferee(fate=as_it_says, noise=0.001, clock=clock, screen_s=1.0, confirm_s=6.0)
    model = rising()
    if workflow == "best_of_n":
        model = Improviser({f"0/{n}/write/1": kernel(step=n) for n in range(ROUNDS)})
    asked = request(workflow, ROUNDS, limits={"seconds": 400})
    result = run_campaign(asked, store, referee, players=seats(model), clock=clock)
    events = store.events(result.campaign)
    protocols = [protocol for _, protocol in referee.asked]
    ahead = protocols[: protocols.index(Depth.RACE)]
    spent = 0.0
    for at, protocol in enumerate(ahead):
        spent += 1.0 if protocol is Depth.SCREEN else 6.0
        confirming = 6.0 * ahead[: at + 1].count(Depth.CONFIRM)
        assert confirming <= max(15.0, 0.25 * spent) + 6.0
    assert ahead.count(Depth.CONFIRM) >= 2
    assert decided(events, Postponed)
    assert result.best is not None
    assert result.best.candidate == candidate_id(source(step=ROUNDS - 1))


def test_a_replay_postpones_whom_the_recording_did(store: Store) -> None:
    clock = Clock()
    store._clock = clock
    referee = PlayedReferee(fate=as_it_says, noise=0.001, clock=clock, screen_s=1.0, confirm_s=6.0)
    asked = request("refine", ROUNDS)
    first = run_campaign(asked, store, referee, players=seats(rising()), clock=clock)
    recording = replay.load(store, first.campaign)
    players = dataclasses.replace(
        seats(ReplayModel(recording, "played/one")),  # type: ignore[arg-type]
        recorded=recording.verdicts,
        recalled=recording.recalled,
    )
    wanted = replay_request(CampaignRequest(problem="doubling"), recording)
    quick = PlayedReferee(fate=as_it_says, noise=0.1, seed=5)
    again = run_campaign(wanted, store, quick, players=players)
    before, after = store.events(first.campaign), store.events(again.campaign)
    assert decided(before, Postponed)
    assert decisions(after)[:-2] == decisions(before)[:-2]
