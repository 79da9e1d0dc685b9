"""Paying once, within the caps, and failing in words: what stands between a brain and a model."""

from __future__ import annotations

import pytest

from kernelwright.agents.books.asking import BudgetSpent, PromptTooLong
from kernelwright.agents.books.progress import Progress
from kernelwright.agents.model import Ask, FaultKind, ModelFault
from kernelwright.agents.models import replay
from kernelwright.agents.stop import Interrupted
from kernelwright.errors import ExitCode, ProviderError, StorageError
from kernelwright.tests.agents.asked import (
    BOUND,
    LATE,
    Desk,
    PlayedModel,
    desk,
)
from kernelwright.traces.events import Event, ModelFailed, ModelReplied, ModelRequested
from kernelwright.traces.history import derive
from kernelwright.traces.store import Store

LIMITED = ModelFault(FaultKind.RATE_LIMITED, "slow down", retry_after_s=7.0)
BROKEN = ModelFault(FaultKind.SERVER, "status 500")


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
    assert all(
        p and low <= p <= high
        for p, low, high in zip(pauses, (0.375, 0.75, 1.5), (0.5, 1, 2), strict=True)
    )
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
    FaultKind.RATE_LIMITED,
    FaultKind.SERVER,
    FaultKind.UNREACHABLE,
)


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
