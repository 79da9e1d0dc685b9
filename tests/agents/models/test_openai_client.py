"""The client against a real server: every way in which an endpoint answers or fails."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest

from kernelwright.agents.model import RETRYABLE, UNKNOWN_OUTCOME, FaultKind, Finish, ModelFault
from kernelwright.agents.models.capabilities import Capabilities
from kernelwright.agents.models.chat import MOST_REASONING
from kernelwright.tests.agents.endpoint import Endpoint, Turn, refused
from kernelwright.tests.agents.models.conftest import Opened, asked

CANARY = "sk-canary-0123456789abcdef"

each_way = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])


def failing(opened: Opened, turn: Turn, **more: Any) -> ModelFault:
    """The fault of one call that must see exactly one request."""
    with Endpoint([turn]) as server:
        model = opened(server.url, **more)
        with pytest.raises(ModelFault) as caught:
            model.complete(asked())
    assert len(server.requests) == 1
    return caught.value


@each_way
def test_an_answer_with_everything_told(opened: Opened, stream: bool) -> None:
    usage = {
        "prompt_tokens": 50,
        "completion_tokens": 30,
        "total_tokens": 80,
        "prompt_tokens_details": {"cached_tokens": 20, "cache_write_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 25},
    }
    turn = Turn("```cpp\nint x;\n```\n" * 20, usage=usage, reasoning="hm " * 50)
    with Endpoint([turn]) as server:
        model = opened(server.url, capabilities=Capabilities(stream=stream))
        reply = model.complete(asked(temperature=0.5, effort="low"))
    assert reply.text == turn.text
    assert reply.finish is Finish.STOP
    assert reply.usage.model_dump() == {
        "prompt_tokens": 50,
        "completion_tokens": 30,
        "cached_tokens": 20,
        "written_tokens": 10,
        "reasoning_tokens": 25,
        "is_estimated": False,
    }
    assert (reply.model, reply.request_id, reply.rung) == ("m", "req-1", "")
    (request,) = server.requests
    assert bool(request.body.get("stream")) is stream
    assert request.body["temperature"] == 0.5
    assert request.body["reasoning_effort"] == "low"
    assert request.body["max_tokens"] == 100
    assert [message["role"] for message in request.messages] == ["system", "user"]


@each_way
@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "reasoning_details"])
def test_thoughts_that_the_server_shows_are_kept_beside_the_answer(
    opened: Opened, stream: bool, name: str
) -> None:
    turn = Turn("int y;", reasoning="First the rows, then the columns. ", reasoning_in=name)
    with Endpoint([turn]) as server:
        model = opened(server.url, capabilities=Capabilities(stream=stream))
        reply = model.complete(asked())
    assert (reply.text, reply.reasoning) == ("int y;", turn.reasoning)


def test_endless_thoughts_are_kept_in_part(opened: Opened) -> None:
    turn = Turn("int y;", reasoning="begin " + "x" * MOST_REASONING + " end", chunk=1 << 16)
    with Endpoint([turn]) as server:
        reply = opened(server.url).complete(asked())
    assert len(reply.reasoning) == MOST_REASONING
    assert reply.reasoning.startswith("begin ")
    assert reply.reasoning.endswith(" end")
    assert reply.text == "int y;"


def test_the_key_goes_into_the_header_and_nowhere_else(opened: Opened) -> None:
    with Endpoint([Turn("yes")]) as server:
        opened(server.url, key=CANARY).complete(asked())
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {CANARY}"
    assert CANARY.encode() not in request.raw


@each_way
@pytest.mark.parametrize(
    ("turn", "finish"),
    [
        (Turn("half a ker", finish_reason="length"), Finish.LENGTH),
        (Turn("", finish_reason="length", reasoning="thinking …"), Finish.LENGTH),
        (Turn("", refusal="I will not."), Finish.REFUSED),
        (Turn("some", finish_reason="content_filter"), Finish.REFUSED),
        (Turn(""), Finish.EMPTY),
        (Turn(" \n "), Finish.EMPTY),
        (Turn("", reasoning="only thoughts"), Finish.EMPTY),
    ],
    ids=["truncated", "all thoughts", "refusal", "filtered", "empty", "blank", "no answer"],
)
def test_b6_why_a_reply_ended(opened: Opened, stream: bool, turn: Turn, finish: Finish) -> None:
    """B6: truncated, refused and empty replies are replies, and paid."""
    with Endpoint([turn]) as server:
        reply = opened(server.url, capabilities=Capabilities(stream=stream)).complete(asked())
    assert reply.finish is finish
    assert reply.text == (turn.refusal or turn.text)
    assert not reply.usage.is_estimated
    assert reply.usage.completion_tokens > 0


def error(message: str, status: int, code: str | None = None) -> Turn:
    return refused(message, status=status, code=code)


@pytest.mark.parametrize(
    ("turn", "kind"),
    [
        (error(f"Incorrect API key provided: {CANARY}", 401, "invalid_api_key"), FaultKind.KEY),
        (error("You may not use this", 403), FaultKind.KEY),
        (error("The model `m` does not exist", 404, "model_not_found"), FaultKind.UNKNOWN_MODEL),
        (error("model 'm' not found, try pulling it first", 400), FaultKind.UNKNOWN_MODEL),
        (error("Rate limit reached", 429, "rate_limit_exceeded"), FaultKind.RATE_LIMITED),
        (error("You exceeded your current quota", 429, "insufficient_quota"), FaultKind.QUOTA),
        (error("Insufficient credits", 402), FaultKind.QUOTA),
        (error("too long", 400, "context_length_exceeded"), FaultKind.CONTEXT),
        (error("the request exceeds the available context size", 400), FaultKind.CONTEXT),
        (
            error("The input (9000 tokens) is longer than the model's context length", 400),
            FaultKind.CONTEXT,
        ),
        (error("Request Entity Too Large", 413), FaultKind.CONTEXT),
        (error("boom", 500), FaultKind.SERVER),
        (error("bad gateway", 502), FaultKind.SERVER),
        (error("overloaded", 503), FaultKind.SERVER),
        (error("gateway time-out", 504), FaultKind.TIMED_OUT),
        (error("your prompt was flagged", 400, "content_policy_violation"), FaultKind.REFUSED),
        (Turn(status=422, body='{"detail": "no such field"}'), FaultKind.REFUSED),
        (Turn(status=500, body="<html>oops</html>"), FaultKind.SERVER),
        (Turn(status=307, headers={"location": "http://192.0.2.1/v1"}), FaultKind.REFUSED),
        (Turn(body="<html>Welcome!</html>"), FaultKind.MALFORMED),
        (Turn(body="[1, 2"), FaultKind.MALFORMED),
        (Turn(body='{"object": "something else"}'), FaultKind.MALFORMED),
        (
            Turn(body="data: {nonsense\n\n", headers={"content-type": "text/event-stream"}),
            FaultKind.MALFORMED,
        ),
        (
            Turn(body="data: [DONE]\n\n", headers={"content-type": "text/event-stream"}),
            FaultKind.MALFORMED,
        ),
        (
            Turn(
                body='data: {"error": {"message": "CUDA out of memory", "code": 500}}\n\n',
                headers={"content-type": "text/event-stream"},
            ),
            FaultKind.SERVER,
        ),
    ],
    ids=lambda value: value.value if isinstance(value, FaultKind) else "",
)
def test_b4_every_refusal_is_one_request_and_a_fault_of_its_kind(
    opened: Opened, turn: Turn, kind: FaultKind
) -> None:
    """B4: no retry inside the client, whatever the server answers."""
    fault = failing(opened, turn, key=CANARY)
    assert fault.kind is kind
    assert CANARY not in str(fault)
    assert CANARY not in repr(fault)
    assert "http://127.0.0.1" in str(fault)
    assert len(str(fault)) < 500


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        (
            {
                "retry-after": "Sun, 22 Nov 2026 06:00:30 GMT",
                "date": "Sun, 22 Nov 2026 06:00:00 GMT",
            },
            30.0,
        ),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "9" * 400}, None),
        ({"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2.5s"}, 62.5),
        ({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "20ms"}, 0.02),
        ({"x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "20s"}, None),
    ],
)
def test_a_rate_limit_says_how_long(
    opened: Opened, headers: dict[str, str], seconds: float | None
) -> None:
    fault = failing(opened, Turn(status=429, headers=headers))
    assert (fault.kind, fault.status) == (FaultKind.RATE_LIMITED, 429)
    assert fault.retry_after_s == seconds


def test_an_exhausted_rate_limit_asks_for_a_pause(opened: Opened) -> None:
    headers = {"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "1h0m0s"}
    with Endpoint([Turn("yes", headers=headers)]) as server:
        model = opened(server.url)
        assert model.pause_s == 0
        model.complete(asked())
    assert 3000 < model.pause_s <= 3600


@pytest.mark.parametrize("drop_after", [0, 20, 400])
@each_way
def test_b6_a_connection_that_is_lost(opened: Opened, stream: bool, drop_after: int) -> None:
    """B6: a stream that breaks is no short answer; its outcome is unknown."""
    turn = Turn("a" * 1000, drop_after=drop_after)
    fault = failing(opened, turn, capabilities=Capabilities(stream=stream))
    assert fault.kind is FaultKind.DROPPED
    assert fault.kind in UNKNOWN_OUTCOME
    assert fault.kind in RETRYABLE


def test_b6_a_stream_that_ends_politely_without_its_end(opened: Opened) -> None:
    """B6: without a finish reason, a proxy has cut the stream."""
    assert failing(opened, Turn("half", finish_reason=None, usage=None)).kind is FaultKind.DROPPED


def test_an_error_in_the_middle_of_a_stream_is_an_unknown_outcome(opened: Opened) -> None:
    body = (
        'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "half"}}]}\n\n'
        'data: {"error": {"message": "worker died", "type": "server_error"}}\n\n'
    )
    fault = failing(opened, Turn(body=body, headers={"content-type": "text/event-stream"}))
    assert fault.kind is FaultKind.DROPPED
    assert "worker died" in str(fault)


@pytest.mark.parametrize("turn", [Turn("late", delay_s=60), Turn("a" * 300, pause_s=60)])
def test_a_silent_server_times_out(opened: Opened, turn: Turn) -> None:
    """Before the first byte, and in the middle of a reply."""
    with Endpoint([turn]) as server, pytest.raises(ModelFault) as caught:
        opened(server.url, silence_s=1.0).complete(asked())
    assert caught.value.kind is FaultKind.TIMED_OUT
    assert caught.value.kind in UNKNOWN_OUTCOME
    # On a busy machine the request may not even have been read by then.
    assert len(server.requests) <= 1


def test_nobody_listens(opened: Opened) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
        with pytest.raises(ModelFault) as caught:
            opened(url).complete(asked())
    assert caught.value.kind is FaultKind.UNREACHABLE
    assert caught.value.kind not in UNKNOWN_OUTCOME
    assert url in str(caught.value)


def test_a_server_that_never_stops_is_cut(opened: Opened) -> None:
    """Two megabytes in a piece: after the limit of characters nothing more is read."""
    with Endpoint([Turn("a" * (6 << 20), chunk=2 << 20)]) as server:
        reply = opened(server.url).complete(asked())
    assert reply.finish is Finish.LENGTH
    assert len(reply.text) == 4 << 20
    assert reply.usage.is_estimated
    assert reply.usage.completion_tokens > 1 << 20


@each_way
def test_b3_usage_missing(opened: Opened, stream: bool) -> None:
    """B3: an upper estimate, marked."""
    with Endpoint([Turn("int main() {}", usage=None)]) as server:
        reply = opened(server.url, capabilities=Capabilities(stream=stream)).complete(asked())
    assert reply.usage.is_estimated
    assert reply.usage.prompt_tokens > 10
    assert reply.usage.completion_tokens >= 7


@pytest.mark.parametrize(
    ("usage", "completion", "cached", "is_estimated"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 4}, 4, 0, False),
        (
            {"prompt_tokens": 9, "completion_tokens": 4.0, "completion_tokens_details": None},
            4,
            0,
            False,
        ),
        # Thoughts that are counted beside the completion are paid all the same.
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "completion_tokens_details": {"reasoning_tokens": 60},
            },
            64,
            0,
            True,
        ),
        ({"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 73}, 64, 0, True),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 10},
            },
            4,
            0,
            True,
        ),
        (
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "prompt_tokens_details": {"cached_tokens": 9},
            },
            4,
            9,
            False,
        ),
    ],
)
def test_b3_usage_in_part_or_impossible(
    opened: Opened, usage: dict[str, Any], completion: int, cached: int, is_estimated: bool
) -> None:
    """B3: without details, with thoughts beyond the completion, with more cached than sent."""
    with Endpoint([Turn("four", usage=usage)]) as server:
        found = opened(server.url).complete(asked()).usage
    assert found.prompt_tokens == 9
    assert (found.completion_tokens, found.cached_tokens) == (completion, cached)
    assert found.is_estimated is is_estimated


@pytest.mark.parametrize("count", [-4, "many", None, 1e400, 0])
def test_b3_usage_that_is_no_count(opened: Opened, count: object) -> None:
    """B3: what cannot be is estimated from above."""
    usage = {"prompt_tokens": count, "completion_tokens": count}
    with Endpoint([Turn("four words of text", usage=usage)]) as server:
        found = opened(server.url).complete(asked()).usage
    assert found.is_estimated
    assert found.prompt_tokens > 10
    assert found.completion_tokens > 3


def test_b3_a_truncated_reply_without_usage_used_its_whole_limit(opened: Opened) -> None:
    """B3: the thoughts that filled it are not to be seen."""
    with Endpoint([Turn("", finish_reason="length", usage=None)]) as server:
        found = opened(server.url).complete(asked(max_output_tokens=77)).usage
    assert (found.completion_tokens, found.is_estimated) == (77, True)


def test_b14_no_connection_but_to_the_endpoint(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B14: with tracing and proxy variables set, only the configured endpoint is spoken to."""
    with Endpoint([Turn("elsewhere")] * 9) as other, Endpoint([Turn("here")]) as server:
        elsewhere = other.url.removesuffix("/v1")
        for name in (
            "LANGSMITH_ENDPOINT",
            "LANGCHAIN_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "HTTP_PROXY",
            "http_proxy",
            "ALL_PROXY",
            "OPENAI_BASE_URL",
        ):
            monkeypatch.setenv(name, elsewhere)
        for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2", "LANGSMITH_API_KEY"):
            monkeypatch.setenv(name, "true")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert opened(server.url).complete(asked()).text == "here"
        assert (other.requests, other.other_requests) == ([], [])
    assert len(server.requests) == 1


def test_b14_a_redirect_is_not_followed(opened: Opened) -> None:
    """B14: the prompt goes where the user said, and not where the server says."""
    with Endpoint([Turn("stolen")]) as other:
        location = f"{other.url}/chat/completions"
        fault = failing(opened, Turn(status=307, headers={"location": location}))
        assert other.requests == []
    assert "redirects" in str(fault)


def test_calls_in_flight_keep_to_the_slots(opened: Opened) -> None:
    in_flight, most = 0, 0
    lock = threading.Lock()

    def answer(_: object) -> Turn:
        nonlocal in_flight, most
        with lock:
            in_flight += 1
            most = max(most, in_flight)
        time.sleep(0.05)
        with lock:
            in_flight -= 1
        return Turn("yes")

    with Endpoint(answer) as server:
        model = opened(server.url, slots=2)
        calls = [threading.Thread(target=model.complete, args=(asked(),)) for _ in range(8)]
        for call in calls:
            call.start()
        for call in calls:
            call.join()
    assert len(server.requests) == 8
    assert most <= 2
