"""What a real endpoint refuses, or does not say, and how long a campaign bears with it.

Requests go over HTTP; only the pauses between them are not waited for.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from kernelwright.agents.models.openai_client import Connection, OpenAIModel
from kernelwright.cli import calls
from kernelwright.cli.summary import winner_lines
from kernelwright.errors import ProviderError
from kernelwright.tests.agents.endpoint import Endpoint, Turn
from kernelwright.tests.agents.test_asking import Desk
from kernelwright.traces.documents import campaign_document
from kernelwright.traces.events import ModelFailed
from kernelwright.traces.head import head_of
from kernelwright.traces.history import derive
from kernelwright.traces.report import render_report
from kernelwright.traces.store import Store

Opened = Callable[..., Desk]


@pytest.fixture
def desk(store: Store) -> Iterator[Opened]:
    """Opens a desk at an address; its connections are given back."""
    with ExitStack() as stack:

        def at(url: str, silence_s: float = 60.0, patience_s: float = 600.0) -> Desk:
            model = OpenAIModel("m", Connection(url, silence_s=silence_s))
            stack.callback(model.close)
            return Desk(store, model, patience_s=patience_s)

        yield at


def failures(at: Desk) -> list[ModelFailed]:
    return [payload for payload in at.told if isinstance(payload, ModelFailed)]


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_refusals_without_a_word_on_when_are_borne_with(desk: Opened, status: int) -> None:
    turns = [Turn(status=status)] * 9 + [Turn("back again")]
    with Endpoint(turns) as server:
        at = desk(server.url)
        assert at.ask() == "back again"
        assert len(server.requests) == 10
    assert sum(at.slept) > 60.0
    assert "scripted status" in failures(at)[0].reason
    assert at.ledger.progress.spending.booked.tokens == 0


def test_an_endpoint_that_stays_down_is_tried_for_ten_minutes(desk: Opened) -> None:
    with Endpoint(lambda _request: Turn(status=503)) as server:
        at = desk(server.url)
        with pytest.raises(ProviderError, match="server error") as caught:
            at.ask()
    assert sum(at.slept) == pytest.approx(600.0)
    assert f"kernelwright run --resume {at.campaign}" in caught.value.hint


@pytest.fixture
def nobody() -> Iterator[str]:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"


def test_an_address_where_nobody_listens_is_tried_for_ten_minutes(
    desk: Opened, nobody: str
) -> None:
    at = desk(nobody)
    with pytest.raises(ProviderError, match="unreachable"):
        at.ask()
    assert sum(at.slept) == pytest.approx(600.0)


def test_a_name_that_is_not_known_is_tried_again(desk: Opened) -> None:
    at = desk("http://models.invalid/v1", patience_s=2.0)
    with pytest.raises(ProviderError, match="unreachable"):
        at.ask()
    assert sum(at.slept) == pytest.approx(2.0)


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_what_no_patience_mends_ends_at_once(desk: Opened, status: int) -> None:
    with Endpoint(lambda _request: Turn(status=status)) as server:
        at = desk(server.url)
        with pytest.raises(ProviderError):
            at.ask()
        assert len(server.requests) == 1
    assert at.slept == []


def test_the_wish_of_the_server_is_the_least_that_is_waited(desk: Opened) -> None:
    turns = [Turn(status=429, headers={"retry-after": "90"}), Turn("here")]
    with Endpoint(turns) as server:
        at = desk(server.url)
        assert at.ask() == "here"
    assert sum(at.slept) == pytest.approx(90.0)


def test_a_silent_model_is_given_twice_the_time_once_and_then_it_stops(desk: Opened) -> None:
    with Endpoint(lambda _request: Turn("late", delay_s=60)) as server:
        at = desk(server.url, silence_s=0.5)
        with pytest.raises(ProviderError, match="timed out after 2 attempts") as caught:
            at.ask()
    first, second = failures(at)
    assert "0.5s; another attempt is given 1s" in first.reason
    assert "(1s; another attempt is given 2s)" in second.reason
    assert "--model-silence" in caught.value.hint
    spending = at.ledger.progress.spending
    assert spending.booked.attempts == 2
    assert spending.booked.tokens == spending.tokens > 0


def test_what_is_only_booked_is_told_apart_wherever_spending_is_shown(
    desk: Opened, store: Store
) -> None:
    turns = [Turn("here"), Turn("late", delay_s=60), Turn("late", delay_s=60)]
    with Endpoint(turns) as server:
        at = desk(server.url, silence_s=1.0)
        at.ask()
        with pytest.raises(ProviderError):
            at.ask("1/0/write/1")
    events = store.events(at.campaign)
    history = derive(events)
    booked = history.booked.tokens
    assert 0 < booked < history.tokens
    document = campaign_document(history)
    assert (document["tokens"], document["booked"]["attempts"]) == (history.tokens, 2)
    assert document["booked"]["tokens"] == booked
    told = f"of these {booked:,} tokens, at an unknown price, are only booked: for 2 attempts"
    assert any(told in line for line in winner_lines(head_of(history), history.best))
    assert told in calls._total(head_of(history).spent, 2)
    page = render_report(store, at.campaign, charts=False)
    assert f"of which {booked:,} are only booked, for 2 attempts without an answer" in page
    assert f"{booked:,} of the tokens are only booked" in page


def test_calls_that_fall_silent_together_double_the_time_once() -> None:
    connection = Connection("http://127.0.0.1:9/v1", silence_s=10.0)
    for _ in range(4):
        connection.lengthen(10.0)
    assert connection.silence_s == 20.0
