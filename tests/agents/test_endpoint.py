"""The scripted server itself: it plays in order, streams, cuts connections and ends."""

from __future__ import annotations

import json
import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from kernelwright.tests.agents.endpoint import Endpoint, Request, Turn, refused


def post(server: Endpoint, **more: Any) -> httpx.Response:
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}], **more}
    return httpx.post(f"{server.url}/chat/completions", json=body, trust_env=False, timeout=30)


def test_turns_are_played_in_order_and_requests_recorded() -> None:
    with Endpoint(
        [Turn("one"), lambda request: Turn(request.text[::-1])], prefix="/a/v1"
    ) as server:
        first, second, third = (post(server) for _ in range(3))
        listed = httpx.get(f"{server.url}/models", trust_env=False).json()
    assert first.json()["choices"][0]["message"]["content"] == "one"
    assert second.json()["choices"][0]["message"]["content"] == "olleh"
    assert third.status_code == 400
    assert "no turn left" in third.text
    assert [request.body["model"] for request in server.requests] == ["m"] * 3
    assert listed["data"][0]["id"] == "test-model"


def test_a_stream_carries_text_finish_and_usage() -> None:
    with Endpoint([Turn("a" * 100, finish_reason="length", chunk=30)]) as server:
        answer = post(server, stream=True, stream_options={"include_usage": True})
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    deltas = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks[:-1]]
    assert "".join(deltas) == "a" * 100
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert chunks[-1]["usage"]["completion_tokens"] == 26


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("drop_after", [0, 5, 150])
def test_a_dropped_connection_is_seen_as_one(stream: bool, drop_after: int) -> None:
    with (
        Endpoint([Turn("a" * 300, drop_after=drop_after)]) as server,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        post(server, stream=stream)


def test_one_callable_answers_everything_and_errors_look_like_openai() -> None:
    def answer(request: Request) -> Turn:
        return refused("no", code="unsupported_parameter", param=str(request.body["model"]))

    with Endpoint(answer) as server:
        found = [post(server) for _ in range(2)]
    assert [each.status_code for each in found] == [400, 400]
    assert found[0].json()["error"]["param"] == "m"


@pytest.mark.parametrize("sent", [b"", b'{"model": "m", "mess'])
def test_what_a_client_did_not_finish_sending_is_no_request(sent: bytes) -> None:
    """A client that is killed while it sends leaves headers and a part of the body."""
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\ncontent-length: 100\r\n\r\n"
    with Endpoint([Turn("one")]) as server:
        address = urlsplit(server.url)
        with socket.create_connection((address.hostname, address.port), timeout=30) as client:
            client.sendall(head + sent)
            client.shutdown(socket.SHUT_WR)
            # The server closes once it has seen the end, so that this waits for it.
            assert client.recv(1) == b""
        answer = post(server)
    assert answer.json()["choices"][0]["message"]["content"] == "one"
    assert len(server.requests) == 1
    assert server.other_requests == []


def test_nobody_answers_after_the_end() -> None:
    with Endpoint([Turn("never", delay_s=60)]) as server:
        url = server.url
        server.stop()
    with pytest.raises(httpx.ConnectError):
        httpx.get(url, trust_env=False)
