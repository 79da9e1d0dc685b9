"""What a campaign may spend, and what is lost where an endpoint, a process or a disk fails."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import pytest

from kernelwright.agents.books.asking import BudgetSpent, book_cut_off
from kernelwright.agents.books.budget import check_priced
from kernelwright.agents.model import FaultKind, ModelFault, TokenUsage
from kernelwright.errors import ProviderError, StorageError, UsageError
from kernelwright.running import CampaignRequest, resume_campaign, run_campaign
from kernelwright.tests.agents.asked import (
    BOUND,
    LATE,
    Desk,
    PlayedModel,
    as_it_says,
    asking_players,
    desk,
    kernel,
)
from kernelwright.tests.agents.played import PlayedReferee
from kernelwright.traces.events import ModelFailed, ModelReplied
from kernelwright.traces.store import Store


@pytest.mark.parametrize(("limits", "calls"), [({"tokens": 1000}, 5), ({"usd": 0.1}, 5)])
def test_b1_nothing_is_sent_that_could_pass_a_cap(
    store: Store, limits: dict[str, float], calls: int
) -> None:
    """B1: 5 calls of 150 tokens leave 250, and the next may take 400."""
    at = desk(store, **limits)
    for number in range(calls):
        at.ask(f"{number}/0/write/1")
    with pytest.raises(BudgetSpent) as caught:
        at.ask("9/0/write/1")
    assert caught.value.by == next(iter(limits))
    assert len(at.model.asked) == calls
    assert not at.ledger.progress.spending.open_calls


@pytest.mark.parametrize("cap", ["tokens", "usd"])
def test_b1_caps_hold_with_eight_calls_in_flight(store: Store, cap: str) -> None:
    """B1: the endpoint reports all that was reserved, and eight threads ask at once."""
    model = PlayedModel(slots=8, usage=TokenUsage(prompt_tokens=300, completion_tokens=100))
    limit = 10.5 * (BOUND.tokens if cap == "tokens" else 400 * 1e-4)
    at = Desk(store, model, **{cap: limit})
    together = threading.Barrier(8)
    refused: list[str] = []

    def work(thread: int) -> None:
        together.wait()
        for number in range(5):
            try:
                at.ask(f"{number}/{thread}/write/1")
            except BudgetSpent as spent:
                refused.append(spent.by)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spending = at.ledger.progress.spending
    assert len(model.asked) == 10
    assert refused == [cap] * 30
    assert spending.tokens == 10 * 400
    assert spending.priced_usd == pytest.approx(0.4)
    assert model.most_in_flight <= 8


def test_b1_an_endpoint_that_ignores_the_limit_is_booked_and_named(store: Store) -> None:
    """B1: the overrun is one call's, the event says so, and nothing more is sent."""
    model = PlayedModel(usage=TokenUsage(prompt_tokens=300, completion_tokens=9000))
    at = Desk(store, model, tokens=1000)
    at.ask()
    replied = at.told[-1]
    assert isinstance(replied, ModelReplied)
    assert (replied.tokens, replied.overran) == (9300, True)
    with pytest.raises(BudgetSpent):
        at.ask("1/0/write/1")
    assert len(model.asked) == 1


def test_a_timed_out_call_counts_as_spent(store: Store) -> None:
    at = desk(store, {"0/0/write/1": LATE}, tokens=700)
    with pytest.raises(BudgetSpent):
        at.ask()
    assert len(at.model.asked) == 1
    assert at.ledger.progress.spending.tokens == BOUND.tokens


def test_a_call_that_a_death_left_open_is_booked_and_asked_again(store: Store) -> None:
    class Death(BaseException):
        pass

    def die(_place: str) -> None:
        raise Death

    at = desk(store)
    at.model.before = die
    with pytest.raises(Death):
        at.ask()
    at.model.before = lambda _place: None
    at.open()
    book_cut_off(at.ledger)
    at.ask()
    failed = next(p for p in at.told if isinstance(p, ModelFailed))
    assert (failed.fault, failed.attempt) == ("outcome unknown", 1)
    assert (failed.tokens, failed.usd) == BOUND
    assert isinstance(at.told[-1], ModelReplied)
    assert at.told[-1].attempt == 2
    assert at.ledger.progress.spending.tokens == BOUND.tokens + 150


def test_b2_a_cap_in_dollars_needs_a_price() -> None:
    """B2: an unknown price is said, and never counted as zero."""
    model = PlayedModel(is_priced=False)
    with pytest.raises(UsageError, match="price of played/one is not known") as caught:
        check_priced({"usd": 1.0}, [model])
    assert "--max-tokens" in caught.value.hint
    check_priced({"tokens": 1.0}, [model])


def test_b2_such_a_campaign_is_not_begun_and_not_resumed(store: Store) -> None:
    seats = asking_players(PlayedModel(is_priced=False))
    request = CampaignRequest(problem="doubling", workflow="forge", limits={"usd": 1.0})
    with pytest.raises(UsageError, match="price"):
        run_campaign(request, store, PlayedReferee(), players=seats)
    assert store.campaigns() == []
    capped = request.model_copy(update={"limits": {"tokens": 900.0}})
    result = run_campaign(capped, store, PlayedReferee(), players=seats)
    assert (result.usd, result.tokens) == (None, 600)
    with pytest.raises(UsageError, match="price"):
        resume_campaign(result.campaign, store, PlayedReferee(), {"usd": 1.0}, players=seats)


def test_b5_an_endpoint_that_is_down_ends_it_with_code_4_and_loses_nothing(
    store: Store,
) -> None:
    """B5: from round 3 on nobody answers; later the campaign goes on."""
    down = ModelFault(FaultKind.UNREACHABLE, "connection refused")
    model = PlayedModel({"3/0/optimise/1": down})
    slept: list[float] = []
    seats = dataclasses.replace(asking_players(model), sleep=slept.append)
    request = CampaignRequest(problem="doubling", workflow="forge", rounds=5)
    with pytest.raises(ProviderError) as caught:
        run_campaign(request, store, PlayedReferee(), players=seats)
    assert sum(slept) == pytest.approx(600.0)
    model.script["3/0/optimise/1"] = kernel(step=30)
    assert caught.value.exit_code == 4
    (campaign,) = store.campaigns()
    assert store.events(campaign)[-1].payload.stopped_by == "provider"  # type: ignore[union-attr]
    before = list(model.asked)
    result = resume_campaign(campaign, store, PlayedReferee(), players=asking_players(model))
    assert result.evaluated == 5
    assert model.asked[len(before) :] == [
        "3/0/optimise/1",
        "4/0/judge/1",
        "4/0/optimise/1",
    ]


def test_b6_a_useless_reply_is_paid_and_never_built(store: Store) -> None:
    """B6: cut inside its fence: a missing candidate; what it cost is booked."""
    model = PlayedModel({"0/0/write/1": "```\nfamily = "})
    referee = PlayedReferee()
    request = CampaignRequest(problem="doubling", workflow="forge", rounds=1)
    result = run_campaign(request, store, referee, players=asking_players(model))
    assert (referee.asked, result.evaluated, result.tokens) == ([], 0, 150)


class FullStore(Store):
    """A store whose disk is full once so many events are on it."""

    left = 10**9

    def append(self, campaign: str, payload: object) -> object:  # type: ignore[override]
        if self.left == 0:
            raise StorageError("the event could not be recorded: disk is full")
        self.left -= 1
        return super().append(campaign, payload)  # type: ignore[arg-type]


@pytest.mark.parametrize("left", range(12))
def test_b17_a_full_disk_is_told_and_the_campaign_goes_on_later(tmp_path: Path, left: int) -> None:
    """B17: wherever the space ends, no half event stays and nothing paid is paid again."""
    model = PlayedModel()
    request = CampaignRequest(problem="doubling", workflow="forge", rounds=3)
    with FullStore.open(tmp_path) as full:
        full.left = left
        with pytest.raises(StorageError, match="disk is full"):
            run_campaign(
                request, full, PlayedReferee(fate=as_it_says), players=asking_players(model)
            )
    with Store.open(tmp_path) as store:
        (campaign,) = store.campaigns()
        result = resume_campaign(campaign, store, PlayedReferee(), players=asking_players(model))
        replied = [e for e in store.events(campaign) if e.payload.kind == "model.replied"]
    assert result.evaluated == 3
    assert len(replied) == 5
    # Only an answer that could not be recorded is asked for again.
    assert len(model.asked) <= 6
