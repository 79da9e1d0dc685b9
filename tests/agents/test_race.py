"""The race at the end: who races, who is crowned, and what is said of the doubt that is left."""

from __future__ import annotations

from typing import Any

import pytest

from kernelwright.running import CampaignRequest, run_campaign
from kernelwright.tests.agents.played import Clock, PlayedReferee, players, recipe
from kernelwright.traces.events import CampaignFinished, EvaluationStarted
from kernelwright.traces.history import History, derive
from kernelwright.traces.outcome import find_pace, how_fast, how_sure
from kernelwright.traces.records import Depth, Status, Sureness, Verdict
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order

CLOSE = (recipe("row-balanced", step=tuple(range(12))),)
"""Each is a few per cent faster than the one before."""
ALIKE = (recipe("row-balanced", tag=tuple(range(12))),)
"""All take the same time, but for the noise."""


def request(**more: Any) -> CampaignRequest:
    return CampaignRequest.model_validate({"problem": "doubling", "seed": 3, **more})


def sureness_of(store: Store, campaign: str) -> Sureness:
    finished = store.events(campaign)[-1].payload
    assert isinstance(finished, CampaignFinished)
    assert finished.sureness is not None
    return finished.sureness


class FlatteredFirst(PlayedReferee):
    """Screenings beside nobody are 30 % too good, as one is on a lucky moment of the machine."""

    def _latency_us(self, order: Order, source: str) -> float:
        right = super()._latency_us(order, source)
        alone = order.protocol is Depth.SCREEN and not order.champion
        return right / 1.3 if alone else right


def test_a_flattered_first_candidate_does_not_win(store: Store) -> None:
    referee = FlatteredFirst(noise=0.0)
    result = run_campaign(
        request(limits={"evaluations": 12}), store, referee, players=players(CLOSE)
    )
    history = derive(store.events(result.campaign))
    assert result.best is not None
    winner = history.entries[result.best.candidate]
    assert winner.knobs["step"] == 11
    assert winner.verdict is not None
    assert winner.verdict.status is Status.VERIFIED


def test_the_loser_of_noisy_screenings_wins_the_race(store: Store) -> None:
    """A screening errs by up to 8 %, and a heat by next to nothing."""

    class Noisy(PlayedReferee):
        def _latency_us(self, order: Order, source: str) -> float:
            self.noise = 0.08 if order.protocol is Depth.SCREEN else 0.002
            return super()._latency_us(order, source)

    behind = []
    for seed in range(6):
        referee = Noisy(seed=seed)
        asked = request(limits={"evaluations": 12}, seed=seed)
        result = run_campaign(asked, store, referee, players=players(CLOSE))
        history = derive(store.events(result.campaign))
        assert result.best is not None
        behind.append(11 - int(str(history.entries[result.best.candidate].knobs["step"])))
    assert max(behind) <= 1
    assert sum(behind) <= 2


def test_heats_are_beside_who_leads_and_told_so(store: Store) -> None:
    referee = PlayedReferee()
    result = run_campaign(
        request(limits={"evaluations": 8}), store, referee, players=players(ALIKE)
    )
    started = [
        payload
        for event in store.events(result.campaign)
        if isinstance(payload := event.payload, EvaluationStarted)
    ]
    heats = [each for each in started if each.protocol == Depth.RACE]
    assert heats
    assert all(each.beside and each.beside != each.candidate for each in heats)
    # The first candidate is screened beside nobody.
    assert started[0].beside is None
    later = [each for each in started[1:] if each.protocol == Depth.SCREEN]
    assert all(each.beside for each in later)


def test_a_winner_says_how_sure_it_is(store: Store) -> None:
    result = run_campaign(
        request(limits={"evaluations": 12}), store, PlayedReferee(noise=0.0), players=players(CLOSE)
    )
    sure = sureness_of(store, result.campaign)
    assert sure.candidates == 12
    assert 0.5 < sure.chance <= 1.0
    assert 0.0 <= sure.regret < 0.05
    assert 0.0 <= sure.regret_at_most < 0.05
    told = how_sure(derive(store.events(result.campaign)))
    assert "of 12 right candidates" in told


class HalfTimed(PlayedReferee):
    """Of each second of an evaluation half a one is timed."""

    def _judged(self, order: Order) -> Verdict:
        took_s = self.screen_s if order.protocol.is_quick else self.confirm_s
        return super()._judged(order).model_copy(update={"seconds": {"time": took_s / 2}})


def test_a_result_says_how_its_time_was_used(store: Store) -> None:
    clock = Clock()
    store._clock = clock
    referee = HalfTimed(clock=clock, screen_s=2.0, confirm_s=2.0, prepare_s=50.0)
    asked = request(limits={"evaluations": 12})
    result = run_campaign(asked, store, referee, players=players(ALIKE), clock=clock)
    history = derive(store.events(result.campaign))
    pace = find_pace(history)
    assert pace is not None
    assert pace.timed_share == pytest.approx(0.5, abs=0.01)
    assert pace.per_minute == pytest.approx(60 * 12 / (2.0 * len(referee.asked)), rel=0.01)
    races = [depth for _, depth in referee.asked if depth is Depth.RACE]
    left = len(referee.asked) - len(races)
    assert races
    assert pace.per_minute_of_search == pytest.approx(60 * 12 / (2.0 * left), rel=0.01)
    assert pace.judged_share == pytest.approx(1.0, abs=0.01)
    assert how_fast(history).endswith("and something was timed in 50%")
    assert how_fast(History()) == ""


def test_who_is_wrong_in_a_heat_is_out(store: Store) -> None:
    def fate(order: Order) -> Status | None:
        return Status.INCORRECT if order.protocol is Depth.RACE else None

    referee = PlayedReferee(fate=fate)
    result = run_campaign(
        request(limits={"evaluations": 12}), store, referee, players=players(ALIKE)
    )
    history = derive(store.events(result.campaign))
    assert result.best is not None
    assert history.entries[result.best.candidate].verdict is not None
    raced = [candidate for candidate, protocol in referee.asked if protocol is Depth.RACE]
    assert raced
    assert result.best.candidate not in raced
    assert len(raced) == len(set(raced))


def test_the_seconds_that_are_kept_for_it_are_spent(store: Store) -> None:
    clock = Clock()
    store._clock = clock
    referee = PlayedReferee(clock=clock, screen_s=1.0, confirm_s=5.0, noise=0.03)
    space = (recipe("row-balanced", tag=tuple(range(400))),)
    asked = request(limits={"seconds": 100.0})
    result = run_campaign(asked, store, referee, players=players(space), clock=clock)
    spent_s = derive(store.events(result.campaign)).spent_s
    heats = sum(depth is Depth.RACE for _, depth in referee.asked)
    # What is left is too little for a heat and the confirmation behind it.
    assert 100.0 - 7.0 < spent_s < 106.0
    assert heats >= 20


@pytest.mark.parametrize("limit_s", [30.0, 60.0, 200.0])
def test_a_part_of_the_time_is_kept_for_it(store: Store, limit_s: float) -> None:
    clock = Clock()
    store._clock = clock
    referee = PlayedReferee(clock=clock, screen_s=1.0, confirm_s=5.0)
    space = (recipe("row-balanced", tag=tuple(range(400))),)
    asked = request(limits={"seconds": limit_s})
    result = run_campaign(asked, store, referee, players=players(space), clock=clock)
    protocols = [protocol for _, protocol in referee.asked]
    assert Depth.RACE in protocols
    assert result.wall_s < limit_s + 5.0
    searched_s = sum(
        5.0 if p is Depth.CONFIRM else 1.0 for p in protocols[: protocols.index(Depth.RACE)]
    )
    assert searched_s <= 0.7 * limit_s + 5.0


def test_an_emulated_target_has_no_race(store: Store) -> None:
    referee = PlayedReferee(is_emulated=True)
    result = run_campaign(
        request(limits={"evaluations": 6}), store, referee, players=players(CLOSE)
    )
    assert Depth.RACE not in {protocol for _, protocol in referee.asked}
    finished = store.events(result.campaign)[-1].payload
    assert isinstance(finished, CampaignFinished)
