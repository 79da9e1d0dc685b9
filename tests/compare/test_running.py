"""A bench over played models: equal spend, and nothing done twice however it was cut off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.agents.model import FaultKind, ModelFault
from kernelwright.agents.stop import Stop
from kernelwright.compare.plan import BenchCampaign
from kernelwright.compare.running import carry_out, known_campaigns
from kernelwright.compare.scores import Score, Spent
from kernelwright.compare.summary import summarise
from kernelwright.errors import PrerequisiteError, ProviderError
from kernelwright.tests.agents.asked import BOUND, PlayedModel, kernel
from kernelwright.tests.compare.held import PROBLEMS, WORKFLOWS, Hall, bench
from kernelwright.traces.events import Event
from kernelwright.traces.store import Store


def held(store: Store, hall: Hall, **changes: object) -> list[Score]:
    scores = carry_out(
        bench(**changes), store, hall.open_referee, watch=hall.watch, seats=hall.seats
    )
    assert scores is not None
    return scores


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "home") as opened:
        yield opened


@pytest.mark.parametrize("slots", [1, 4])
def test_s11_every_arm_spends_the_same(store: Store, slots: int) -> None:
    """S11: each within one call's reservation of the cap, and the differences are paired."""
    workflows = (*WORKFLOWS, "evolve")
    scores = held(store, Hall(slots=slots), workflows=workflows)
    assert len(scores) == 16
    assert {score.stopped_by for score in scores} == {"usd"}
    for score in scores:
        assert score.spent.usd is not None
        assert BOUND.usd is not None
        assert 0.12 - BOUND.usd < score.spent.usd <= 0.12 + 1e-9
    arms = summarise(bench(workflows=workflows), scores)
    assert [arm.difference is None for arm in arms] == [True, False, False, False]


def test_scores_are_what_the_events_tell(store: Store) -> None:
    scores = held(store, Hall(), workflows=("refine",), problems=("softmax",), seeds=1)
    (score,) = scores
    events = store.events(score.campaign)
    kinds = [event.payload.kind for event in events]
    assert (score.calls, score.replies) == (kinds.count("model.requested"),) * 2
    assert score.spent.evaluations == kinds.count("candidate.proposed")
    assert score.spent.tokens == 150 * score.replies
    assert len(score.steps) == kinds.count("champion.changed")
    assert score.credited == score.steps[-1].credited > 0
    assert list(score.steps) == sorted(score.steps, key=lambda step: step.spent.seconds)


def test_without_a_winner_the_score_is_nought(store: Store) -> None:
    never = PlayedModel(
        {
            f"{n}/0/{mode}/1": kernel(fails="INCORRECT", n=n)
            for n in range(99)
            for mode in ("write", "repair")
        }
    )
    hall = Hall({BenchCampaign("refine", "softmax", 0): never})
    (score,) = held(store, hall, workflows=("refine",), problems=("softmax",), seeds=1)
    assert (score.credited, score.is_verified, score.steps) == (0.0, False, ())
    assert score.by_status == {"INCORRECT": score.spent.evaluations}


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """Hears so many events and dies."""

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self, event: Event) -> None:
        assert event.seq
        self.left -= 1
        if self.left == 0:
            raise Died


def figures(scores: list[Score]) -> list[tuple[object, ...]]:
    """What does not rest on a clock."""

    def counted(spent: Spent) -> tuple[object, ...]:
        return (spent.evaluations, spent.usd, spent.tokens)

    return [
        (
            score.trial,
            score.credited,
            score.stopped_by,
            score.replies,
            counted(score.spent),
            [(counted(step.spent), step.credited) for step in score.steps],
        )
        for score in scores
    ]


@pytest.mark.heavy
@pytest.mark.slow
def test_a_bench_that_died_goes_on_and_comes_to_the_same(tmp_path: Path) -> None:
    with Store.open(tmp_path / "whole") as store:
        expected = figures(held(store, Hall()))
        total = store.count()
    for deaths_at in (1, total // 3, total // 2):
        with Store.open(tmp_path / str(deaths_at)) as store:
            first = Hall(on_event=Mortal(deaths_at))
            with pytest.raises(Died):
                held(store, first)
            before = len(store.campaigns())
            again = Hall(dict(first.models))
            assert figures(held(store, again)) == expected
            assert len(store.campaigns()) == 12
            assert [s.campaign is not None for s in again.stood] == [True] + [False] * (12 - before)
            # What came to its end before is not looked at again.
            assert len(again.stood) == 12 - before + 1


def test_a_finished_bench_is_only_told_again(store: Store) -> None:
    first = held(store, Hall())
    again = Hall()
    assert held(store, again) == first
    assert (again.opened, again.stood) == ([], [])


def test_another_workflow_runs_only_what_is_new(store: Store) -> None:
    held(store, Hall(), workflows=("forge", "refine"))
    hall = Hall()
    held(store, hall, workflows=("best_of_n", "forge", "refine"))
    assert {standing.trial.workflow for standing in hall.stood} == {"best_of_n"}
    assert len(known_campaigns(bench(), store)) == 12
    assert known_campaigns(bench(label="again"), store) == {}


def test_ctrl_c_ends_it_in_order_and_the_same_bench_goes_on(store: Store) -> None:
    stop, hall = Stop(), Hall()

    def interrupt(event: Event) -> None:
        if len(store.campaigns()) == 2 and event.payload.kind == "model.replied":
            stop.request()

    hall.on_event = interrupt
    ended = carry_out(
        bench(), store, hall.open_referee, watch=hall.watch, seats=hall.seats, stop=stop
    )
    assert ended is None
    assert len(store.campaigns()) == 2
    assert len(held(store, Hall(dict(hall.models)))) == 12
    assert len(store.campaigns()) == 12


def test_a_provider_that_refuses_stops_it_and_the_remedy_is_the_same_bench(store: Store) -> None:
    refusing = PlayedModel({"1/0/judge/1": ModelFault(FaultKind.KEY, "wrong key")})
    hall = Hall({BenchCampaign("forge", "softmax", 0): refusing})
    with pytest.raises(ProviderError, match="key refused") as caught:
        held(store, hall)
    assert caught.value.hint.endswith("then run the same bench again: it goes on where it stopped")
    refusing.script = {}
    assert len(held(store, Hall(dict(hall.models)))) == 12
    assert len(store.campaigns()) == 12


def test_a_target_that_is_not_timed_is_refused(store: Store) -> None:
    hall = Hall(is_emulated=True)
    with pytest.raises(PrerequisiteError, match="is emulated here"):
        held(store, hall)
    assert store.campaigns() == []


def test_one_referee_serves_all_campaigns_of_a_problem(store: Store) -> None:
    hall = Hall()
    held(store, hall)
    assert hall.opened == list(PROBLEMS)
