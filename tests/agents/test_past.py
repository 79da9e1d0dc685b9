"""A search over recipes begins with what earlier campaigns on the problem found to be fast."""

from __future__ import annotations

from typing import Any

from kernelwright.agents.books.past import (
    CAMPAIGNS,
    LEARNED_FAST,
    LEARNED_OTHERS,
    MOST,
    Past,
    PastPoint,
    find_past,
    past_of,
)
from kernelwright.kernelbench.problem import Workload
from kernelwright.running import CampaignRequest, resume_campaign, run_campaign
from kernelwright.tests.agents.played import PlayedReferee, players
from kernelwright.traces.events import EVALUATION
from kernelwright.traces.history import History, derive
from kernelwright.traces.store import Store

ASKED = ("doubling", "cpu", "cpp", "usual")


def play(store: Store, evaluations: int, seed: int = 0, **more: Any) -> History:
    limits = {"evaluations": evaluations}
    asked = CampaignRequest(problem="doubling", limits=limits, seed=seed, **more)
    done = run_campaign(asked, store, PlayedReferee(noise=0.002), players=players())
    return derive(store.events(done.campaign))


def knobs_of(history: History, number: int) -> tuple[str, dict[str, Any]]:
    entry = next(each for each in history.entries.values() if each.number == number)
    return entry.family, dict(entry.knobs)


def test_the_first_candidate_is_the_winner_of_the_campaign_before(store: Store) -> None:
    first = play(store, 40)
    second = play(store, 8, seed=1)
    assert first.best is not None
    assert knobs_of(second, 1) == (first.best.family, dict(first.best.knobs))
    assert second.best is not None
    operators = [each.operator for each in second.entries.values()]
    assert operators.count("past") == 3
    assert not {"initial", "past"} & set(operators[3:])
    assert past_of(second.started).first[0].campaign == first.campaign


def test_what_the_campaign_before_measured_is_told_to_the_search(store: Store) -> None:
    first = play(store, 60)
    (seen,) = past_of(play(store, 4, seed=1).started).seen
    assert {point.campaign for point in seen} == {first.campaign}
    assert len(seen) <= LEARNED_FAST + LEARNED_OTHERS
    values = [point.value for point in seen]
    assert values[:LEARNED_FAST] == sorted(values[:LEARNED_FAST])
    tried = {(each.family, *sorted(each.knobs.items())) for each in first.entries.values()}
    assert {(point.family, *sorted(point.knobs.items())) for point in seen} <= tried


def test_a_campaign_of_a_release_that_told_points_alone_can_be_read(store: Store) -> None:
    started = play(store, 4).started
    point = {"family": "rows", "knobs": {"unroll": 2}, "campaign": "c"}
    old = started.model_copy(update={"config": {**started.config, "past": [point]}})
    assert past_of(old).first == (PastPoint(family="rows", knobs={"unroll": 2}, campaign="c"),)
    assert past_of(old).seen == ()


def test_it_may_begin_without(store: Store) -> None:
    play(store, 20)
    alone = play(store, 8, seed=1, transfer=False)
    assert "past" not in {each.operator for each in alone.entries.values()}
    assert past_of(alone.started) == Past()


def test_the_same_workload_comes_first_and_nothing_comes_twice(store: Store) -> None:
    usual = play(store, 30)
    other = Workload(name="other", kind="realistic", axes={"M": 17})
    asked = CampaignRequest(problem="doubling", limits={"evaluations": 30}, seed=5)
    run_campaign(asked, store, PlayedReferee(), players=players(), workload=other)
    found = find_past(store, *ASKED).first
    assert found[0].campaign == usual.campaign
    assert len(found) <= MOST
    assert len({(each.family, *sorted(each.knobs.items())) for each in found}) == len(found)
    assert find_past(store, "doubling", "sm_90", "cpp", "usual") == Past()
    assert find_past(store, "softmax", "cpu", "cpp", "usual") == Past()


def test_evaluations_of_files_take_no_campaign_its_place(store: Store) -> None:
    first = play(store, 30)
    known = find_past(store, *ASKED)
    for _ in range(CAMPAIGNS + 1):
        store.create(first.started.model_copy(update={"workflow": EVALUATION}))
    assert find_past(store, *ASKED) == known != Past()


def test_a_resumed_campaign_begins_with_what_it_began_with(store: Store) -> None:
    play(store, 20)
    begun = play(store, 2, seed=1)
    play(store, 20, seed=2)
    limits = {"evaluations": 8.0}
    resume_campaign(begun.campaign, store, PlayedReferee(), limits, players=players())
    resumed = derive(store.events(begun.campaign))
    points = past_of(begun.started).first
    assert points
    told = [knobs_of(resumed, number + 1) for number in range(len(points))]
    assert told == [(point.family, dict(point.knobs)) for point in points]
