"""`tune`: when a challenger meets the champion, and what a death or an older campaign changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernelwright.agents.offered import usual_workflow
from kernelwright.errors import UsageError
from kernelwright.running import CampaignRequest, resume_campaign, run_campaign
from kernelwright.tests.agents.played import Clock, PlayedReferee, players, recipe
from kernelwright.tests.agents.workflows.staged import decided
from kernelwright.traces.decisions import Challenged
from kernelwright.traces.history import derive
from kernelwright.traces.records import Depth, Status
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order

RISING = (recipe("row-balanced", step=tuple(range(40))),)
SCREEN, CONFIRM = Depth.SCREEN, Depth.CONFIRM


def request(**more: Any) -> CampaignRequest:
    return CampaignRequest.model_validate({"problem": "doubling", "seed": 3, **more})


def rounds_of(referee: PlayedReferee) -> list[int]:
    """How many screenings came before each confirmation ahead of the race."""
    asked = [protocol for _, protocol in referee.asked]
    asked = asked[: asked.index(Depth.RACE)] if Depth.RACE in asked else asked
    return [asked[:at].count(SCREEN) for at, protocol in enumerate(asked) if protocol is CONFIRM]


def test_it_is_what_recipes_go_by_and_evolve_what_models_do() -> None:
    assert request().workflow == usual_workflow("recipe") == "tune"
    assert request(model="openai/m").workflow == usual_workflow("openai/m") == "evolve"


def test_the_first_right_candidate_is_confirmed_at_once(store: Store) -> None:
    """Whoever ends a campaign early finds a champion."""

    def fate(order: Order) -> Status | None:
        return Status.INCORRECT if len(referee.asked) <= 2 and order.protocol is SCREEN else None

    referee = PlayedReferee(fate=fate)
    run_campaign(request(limits={"evaluations": 6}), store, referee, players=players())
    asked = [protocol for _, protocol in referee.asked]
    assert asked[:5] == [SCREEN, SCREEN, SCREEN, CONFIRM, SCREEN]


@pytest.mark.parametrize("confirm_after", [0, 3])
def test_a_challenger_meets_the_champion_after_so_many_more(
    store: Store, confirm_after: int
) -> None:
    clock = Clock()
    store._clock = clock
    referee = PlayedReferee(noise=0.0, clock=clock, confirm_s=0.1)
    asked = request(limits={"evaluations": 30}, options={"confirm_after": confirm_after})
    result = run_campaign(asked, store, referee, players=players(RISING), clock=clock)
    history = derive(store.events(result.campaign))
    met = rounds_of(referee)
    confirmed = [c for c, protocol in referee.asked if protocol is CONFIRM][: len(met)]
    waited = [
        number - history.entries[candidate].number
        for number, candidate in zip(met[1:], confirmed[1:], strict=True)
    ]
    assert met[0] == 1
    # Who is not the best of those that wait may wait for longer.
    assert confirm_after <= min(waited) <= confirm_after + 1
    best = max(history.entries.values(), key=lambda entry: int(str(entry.knobs["step"])))
    assert result.best is not None
    assert result.best.candidate == best.candidate
    assert result.unconfirmed is None


def test_who_meets_the_champion_is_recorded_before_it_does(store: Store) -> None:
    referee = PlayedReferee()
    result = run_campaign(request(limits={"evaluations": 20}), store, referee, players=players())
    events = store.events(result.campaign)
    challenged = [d.candidate for d in decided(events, Challenged)]
    confirmed = [c for c, protocol in referee.asked if protocol is CONFIRM]
    assert challenged
    # The race chooses by the pairs alone.
    assert challenged == confirmed[: len(challenged)]


def test_what_the_clock_decided_before_a_death_stands_after_it(tmp_path: Path) -> None:
    """Who had no time to be confirmed then is not confirmed in that place under a higher cap."""
    clock = Clock()
    with Store.open(tmp_path / "home", clock=clock) as store:
        referee = PlayedReferee(clock=clock, screen_s=1.0, confirm_s=5.0, noise=0.0)
        first = run_campaign(
            request(limits={"seconds": 40}), store, referee, players=players(RISING), clock=clock
        )
        met, before = rounds_of(referee), store.events(first.campaign)
        store.cursor_path(first.campaign).unlink()
        resume_campaign(
            first.campaign, store, referee, {"seconds": 4000}, players=players(RISING), clock=clock
        )
        events = store.events(first.campaign)
    assert first.stopped_by == "seconds"
    assert events[: len(before)] == before
    assert rounds_of(referee)[: len(met)] == met
    assert len(set(referee.asked)) == len(referee.asked)


def test_confirmations_ahead_of_the_race_take_a_quarter_of_the_time(store: Store) -> None:
    clock = Clock()
    store._clock = clock
    referee = PlayedReferee(clock=clock, screen_s=1.0, confirm_s=5.0, noise=0.0)
    asked = request(limits={"seconds": 200})
    run_campaign(asked, store, referee, players=players(RISING), clock=clock)
    met = rounds_of(referee)
    spent_s = [screened + 5.0 * (at + 1) for at, screened in enumerate(met)]
    # The first one is no choice: without it there is no champion.
    assert len(met) > 1
    assert all(5.0 * (at + 1) <= 0.25 * s + 5.0 for at, s in enumerate(spent_s))


def test_the_users_rounds_are_candidates(store: Store) -> None:
    result = run_campaign(request(rounds=5), store, PlayedReferee(), players=players())
    assert (result.evaluated, result.stopped_by) == (5, "rounds")
    assert result.best is not None


@pytest.mark.parametrize("version", ["", "evolve/1", "evolve/3", "evolve/3+0123456789ab"])
def test_a_search_over_recipes_of_an_earlier_evolve_is_not_gone_on_with(
    store: Store, version: str
) -> None:
    first = run_campaign(
        request(limits={"evaluations": 2}), store, PlayedReferee(), players=players()
    )
    begun = derive(store.events(first.campaign)).started
    old = begun.model_copy(update={"workflow": "evolve", "workflow_version": version})
    campaign = store.create(old)
    with pytest.raises(UsageError, match="which is the workflow tune now") as caught:
        resume_campaign(campaign, store, PlayedReferee(), players=players())
    assert "start a new campaign" in caught.value.hint
    assert len(store.events(campaign)) == 1
