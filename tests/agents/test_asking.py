"""Paying once, within the caps, and failing in words: what stands between a brain and a model."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest

from kernelwright.agents.asking import Asker, BudgetSpent, PromptTooLong, book_cut_off
from kernelwright.agents.budget import Budget, check_priced
from kernelwright.agents.ledger import Ledger
from kernelwright.agents.models import replay
from kernelwright.agents.models.protocol import Ask, FaultKind, Message, ModelFault, Usage
from kernelwright.agents.progress import Progress
from kernelwright.agents.stop import Interrupted, Stop
from kernelwright.agents.terms import first_event
from kernelwright.campaign import CampaignRequest, resume_campaign, run_campaign
from kernelwright.errors import ExitCode, ProviderError, StorageError, UsageError
from kernelwright.tests.agents.asked import (
    BOUND,
    PlayedModel,
    Script,
    as_it_says,
    asking_players,
    kernel,
)
from kernelwright.tests.agents.played import Clock, PlayedReferee, problem
from kernelwright.traces.events import Event, ModelFailed, ModelReplied, ModelRequested
from kernelwright.traces.history import derive
from kernelwright.traces.store import Store

LIMITED = ModelFault(FaultKind.RATE_LIMITED, "slow down", retry_after_s=7.0)
BROKEN = ModelFault(FaultKind.SERVER, "status 500")
LATE = ModelFault(FaultKind.TIMED_OUT, "nothing for 60 s")


class Desk:
    """A campaign that was begun, and an Asker on its account."""

    def __init__(
        self, store: Store, model: Any, patience_s: float = 600.0, **limits: float
    ) -> None:
        request = CampaignRequest(problem="doubling", workflow="forge", limits=limits)
        workload = problem().default_workload
        self.store, self.model, self.stop = store, model, Stop()
        self.campaign = store.create(
            first_event(request, problem(), workload, PlayedReferee(), "forge/1")
        )
        self.clock, self.patience_s = Clock(), patience_s
        self.slept: list[float] = []
        self.open()

    def open(self) -> None:
        """As a new process would."""
        progress = Progress(self.store.events(self.campaign))
        self.ledger = Ledger(self.store, self.campaign, PlayedReferee(), progress)
        budget = Budget(progress.limits, spending=progress.spending, clock=self.clock)
        self.asker = Asker(
            self.ledger, budget, self.model, stop=self.stop, patience_s=self.patience_s,
            sleep=self._sleep,
        )  # fmt: skip

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.now += seconds

    def ask(self, place: str = "0/0/write/1", text: str = "please") -> str:
        message = Message(role="user", content=f"{place}\n{text}")
        return self.asker.ask(Ask(purpose="write", messages=(message,)), place).text

    @property
    def told(self) -> list[ModelRequested | ModelReplied | ModelFailed]:
        kinds = ModelRequested | ModelReplied | ModelFailed
        payloads = (event.payload for event in self.store.events(self.campaign))
        return [payload for payload in payloads if isinstance(payload, kinds)]


def desk(store: Store, script: Script | None = None, **limits: float) -> Desk:
    return Desk(store, PlayedModel(script or {}), **limits)


def test_a_stored_answer_is_not_paid_again_in_this_process_or_the_next(store: Store) -> None:
    at = desk(store)
    first = at.ask()
    assert at.ask() == first
    at.open()
    assert at.ask() == first
    assert len(at.model.asked) == 1
    assert [type(p).__name__ for p in at.told] == ["ModelRequested", "ModelReplied"]


@pytest.mark.parametrize("change", [{"place": "1/0/write/1"}, {"text": "another"}])
def test_another_place_or_other_words_are_another_call(
    store: Store, change: dict[str, str]
) -> None:
    at = desk(store)
    at.ask()
    at.ask(**change)
    assert len(at.model.asked) == 2


def test_the_key_tells_models_and_workflow_versions_apart(store: Store) -> None:
    at = desk(store)
    other = Desk(store, PlayedModel(name="played/two"))
    ask = Ask(purpose="write", messages=())
    assert at.asker.key(ask, "0/0") != other.asker.key(ask, "0/0")


def test_the_request_is_on_the_disk_before_the_model_hears_of_it(store: Store) -> None:
    at = desk(store)
    seen: list[bool] = []
    at.model.before = lambda _place: seen.append(isinstance(at.told[-1], ModelRequested))
    at.ask()
    assert seen == [True]
    requested, replied = at.told
    assert isinstance(requested, ModelRequested)
    assert isinstance(replied, ModelReplied)
    assert (requested.reserved_tokens, requested.reserved_usd) == BOUND
    assert b"please" in store.get_blob(requested.ask)
    assert b"family" in store.get_blob(replied.reply)
    assert (replied.tokens, replied.usd, replied.overran) == (150, pytest.approx(0.015), False)


def test_b4_every_attempt_is_one_event_and_one_request(store: Store) -> None:
    """B4: retries live here only, and each is told."""
    at = desk(store, {"0/0/write/1": [BROKEN, BROKEN, LATE, "done"]})
    assert at.ask() == "done"
    assert len(at.model.asked) == 4
    requests = [p for p in at.told if isinstance(p, ModelRequested)]
    failures = [p for p in at.told if isinstance(p, ModelFailed)]
    assert [p.attempt for p in requests] == [1, 2, 3, 4]
    assert [p.fault for p in failures] == ["server error", "server error", "timed out"]
    assert [p.tokens for p in failures] == [0, 0, BOUND.tokens]
    pauses = [p.retry_in_s for p in failures]
    assert all(p and low <= p <= high for p, low, high in
               zip(pauses, (0.375, 0.75, 1.5), (0.5, 1, 2), strict=True))  # fmt: skip
    assert sum(at.slept) == pytest.approx(sum(p or 0.0 for p in pauses))


def test_b4_the_servers_own_wish_counts(store: Store) -> None:
    at = desk(store, {"0/0/write/1": [LIMITED, "done"]})
    at.ask()
    assert sum(at.slept) == pytest.approx(7.0)


class Resting(PlayedModel):
    """Its endpoint has no room for a while."""

    pause_s = 5.0


def test_a_call_waits_until_the_endpoint_has_room(store: Store) -> None:
    model = Resting()
    at = Desk(store, model)
    at.ask()
    assert sum(at.slept) == pytest.approx(5.0)
    model.pause_s = 0.0
    at.ask("1/0/write/1")
    assert sum(at.slept) == pytest.approx(5.0)


@pytest.mark.parametrize(("pause_s", "asked"), [(60.0, 0), (601.0, 1)])
def test_a_rest_beyond_the_time_left_ends_it_and_one_beyond_all_measure_is_tried(
    store: Store, pause_s: float, asked: int
) -> None:
    model = Resting()
    model.pause_s = pause_s
    at = Desk(store, model, seconds=30.0)
    if asked:
        at.ask()
    else:
        with pytest.raises(BudgetSpent, match="seconds"):
            at.ask()
    assert (len(model.asked), at.slept) == (asked, [])
    assert bool(at.told) == bool(asked)


def test_an_answer_that_nobody_asked_for_is_told_by_its_event(store: Store) -> None:
    at = desk(store)
    at.ask()
    events = store.events(at.campaign)
    cut = [event for event in events if not isinstance(event.payload, ModelRequested)]
    answered = next(event for event in cut if isinstance(event.payload, ModelReplied))
    with pytest.raises(StorageError, match=rf"event {answered.seq} \(model\.replied\)") as caught:
        Progress(cut)
    assert at.campaign in str(caught.value)

    class Cut:
        def events(self, campaign: str, after: int = 0) -> list[Event]:
            del campaign, after
            return cut

        get_blob = store.get_blob

    with pytest.raises(StorageError, match=rf"event {answered.seq} "):
        replay.load(Cut(), at.campaign)


@pytest.mark.parametrize(
    "kind", [FaultKind.KEY, FaultKind.UNKNOWN_MODEL, FaultKind.QUOTA, FaultKind.REFUSED]
)
def test_b4_what_waiting_cannot_mend_is_tried_once(store: Store, kind: FaultKind) -> None:
    at = desk(store, {"0/0/write/1": ModelFault(kind, "no")})
    with pytest.raises(ProviderError, match=f"played/one: {kind} after 1 attempt: no") as caught:
        at.ask()
    assert caught.value.exit_code is ExitCode.PROVIDER
    assert not caught.value.is_retryable
    assert f"--resume {at.campaign}" in caught.value.hint
    assert len(at.model.asked) == 1
    assert at.ledger.progress.spending.tokens == 0


def test_a_wish_for_a_very_long_pause_is_a_failure(store: Store) -> None:
    at = desk(store, {"0/0/write/1": ModelFault(FaultKind.RATE_LIMITED, "x", retry_after_s=601)})
    with pytest.raises(ProviderError) as caught:
        at.ask()
    assert caught.value.is_retryable
    assert (len(at.model.asked), at.slept) == (1, [])


REFUSED = (
    FaultKind.RATE_LIMITED, FaultKind.SERVER, FaultKind.UNREACHABLE,
)  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refused_call_is_tried_again_for_ten_minutes_at_no_cost(
    store: Store, kind: FaultKind
) -> None:
    at = desk(store, {"0/0/write/1": ModelFault(kind, "overloaded")})
    with pytest.raises(ProviderError, match=rf"{kind} after \d+ attempts and 600 s") as caught:
        at.ask()
    assert sum(at.slept) == pytest.approx(600.0)
    assert (caught.value.exit_code, caught.value.is_retryable) == (4, True)
    assert f"--resume {at.campaign}" in caught.value.hint
    failures = [p for p in at.told if isinstance(p, ModelFailed)]
    pauses = [p.retry_in_s for p in failures[:-1]]
    assert failures[-1].retry_in_s is None
    assert all(pause and pause <= 60.0 for pause in pauses)
    assert len(at.model.asked) < 40
    assert (at.ledger.progress.spending.tokens, {p.tokens for p in failures}) == (0, {0})


def test_an_endpoint_that_comes_back_within_ten_minutes_loses_nothing(store: Store) -> None:
    at = desk(store, {"0/0/write/1": [BROKEN] * 12 + ["back again"]})
    assert at.ask() == "back again"
    assert sum(at.slept) > 120.0
    assert at.ledger.progress.spending.tokens == 150


def test_how_long_a_refused_call_is_tried_again_is_a_setting(store: Store) -> None:
    at = Desk(store, PlayedModel({"0/0/write/1": BROKEN}), patience_s=30.0)
    with pytest.raises(ProviderError):
        at.ask()
    assert sum(at.slept) == pytest.approx(30.0)


def test_a_server_that_wants_no_pause_at_all_is_not_asked_for_ever(store: Store) -> None:
    at = desk(store, {"0/0/write/1": ModelFault(FaultKind.RATE_LIMITED, "now", retry_after_s=0.0)})
    with pytest.raises(ProviderError):
        at.ask()
    assert len(at.model.asked) < 40
    assert sum(at.slept) == pytest.approx(600.0)


def test_a_resumption_is_patient_anew(store: Store) -> None:
    at = desk(store, {"0/0/write/1": BROKEN})
    with pytest.raises(ProviderError):
        at.ask()
    tried = len(at.model.asked)
    at.model.script["0/0/write/1"] = "back again"
    at.open()
    assert at.ask() == "back again"
    assert [p.attempt for p in at.told if isinstance(p, ModelReplied)] == [tried + 1]


def test_two_silences_end_it_with_the_remedy_and_are_told_apart_from_what_was_spent(
    store: Store,
) -> None:
    at = desk(store, {"1/0/write/1": LATE})
    at.ask()
    with pytest.raises(ProviderError, match="timed out after 2 attempts") as caught:
        at.ask("1/0/write/1")
    assert "--model-silence" in caught.value.hint
    assert f"--resume {at.campaign}" in caught.value.hint
    spending = at.ledger.progress.spending
    assert spending.tokens == 150 + 2 * BOUND.tokens
    assert spending.booked == (2, 2 * BOUND.tokens, pytest.approx(2 * (BOUND.usd or 0.0)))
    history = derive(store.events(at.campaign))
    assert history.booked == spending.booked


def test_a_refusal_between_two_silences_does_not_make_a_third_one_free(store: Store) -> None:
    at = desk(store, {"0/0/write/1": [LATE, BROKEN, LATE, "never asked for"]})
    with pytest.raises(ProviderError, match="timed out after 3 attempts"):
        at.ask()


def test_a_pause_is_ended_by_the_users_wish(store: Store) -> None:
    at = desk(store, {"0/0/write/1": LIMITED})
    at.model.before = lambda _place: at.stop.request()
    with pytest.raises(Interrupted):
        at.ask()
    assert at.slept == []


def test_no_pause_goes_past_the_limit_on_time(store: Store) -> None:
    at = desk(store, {"0/0/write/1": LIMITED}, seconds=5)
    with pytest.raises(BudgetSpent) as caught:
        at.ask()
    assert caught.value.by == "seconds"
    assert at.slept == []


def test_a_prompt_that_is_too_long_is_told_once(store: Store) -> None:
    at = desk(store, {"0/0/write/1": ModelFault(FaultKind.CONTEXT, "at most 8192")})
    for _ in range(2):
        with pytest.raises(PromptTooLong, match="at most 8192"):
            at.ask()
    assert len(at.model.asked) == 1


def test_half_a_unicode_character_in_a_paid_answer_does_not_lose_it(store: Store) -> None:
    at = desk(store, {"0/0/write/1": "a \ud800 b"})
    assert at.ask() == "a ? b"


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
    model = PlayedModel(slots=8, usage=Usage(prompt_tokens=300, completion_tokens=100))
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
    model = PlayedModel(usage=Usage(prompt_tokens=300, completion_tokens=9000))
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
        "3/0/optimise/1", "4/0/judge/1", "4/0/optimise/1",
    ]  # fmt: skip


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
