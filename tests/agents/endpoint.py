"""A real HTTP server that speaks the OpenAI chat.completions protocol and plays a script.

    with Endpoint([Turn("an answer"), Turn(status=429, headers={"retry-after": "0.01"})]) as server:
        ...  # ask the model at server.url
    assert [request.body["model"] for request in server.requests] == ["m", "m"]

One Turn answers one POST, in the order of arrival; a Turn may be a callable from the Request to the
Turn, and one callable instead of the list answers everything. A script that has run out answers
with status 400 and `the script has no turn left`. GET …/models lists `models` and uses up no turn.
What ends before its announced length, because the client died, is no request and uses up no turn.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal

COUNTED: Literal["counted"] = "counted"
"""Usage by our own count: four characters are a token."""


@dataclass(frozen=True)
class Request:
    """What somebody sent."""

    method: str
    path: str
    headers: Mapping[str, str]
    """Names in small letters."""
    raw: bytes
    at: float
    """By the monotonic clock."""

    @property
    def body(self) -> dict[str, Any]:
        """The JSON object that was sent."""
        found = json.loads(self.raw)
        assert isinstance(found, dict)
        return found

    @property
    def messages(self) -> list[dict[str, Any]]:
        """Of a chat."""
        found = self.body["messages"]
        assert isinstance(found, list)
        return found

    @property
    def text(self) -> str:
        """All the messages, one after the other."""
        return "\n\n".join(str(message["content"]) for message in self.messages)


@dataclass(frozen=True)
class Turn:
    """One answer, or one failure."""

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    """Before the first byte."""
    drop_after: int | None = None
    """The connection is cut after so many bytes of the body; 0: before the status line."""
    usage: Mapping[str, Any] | Literal["counted"] | None = COUNTED
    """None: the reply tells none."""
    finish_reason: str | None = "stop"
    refusal: str | None = None
    reasoning: str = ""
    """Hidden thoughts."""
    reasoning_in: str = "reasoning_content"
    """The field that they stand in; in `reasoning_details` as a list of typed parts."""
    error: Mapping[str, Any] | None = None
    """The error object of a status that is not 200; else one is made up."""
    body: bytes | str | None = None
    """Sent as it is, instead of everything above but status and headers."""
    ignores_stream: bool = False
    """Answers with one JSON document although a stream was asked for."""
    chunk: int = 64
    """Characters in a piece of a stream."""
    pause_s: float = 0.0
    """Between the pieces of a stream."""


Play = Turn | Callable[[Request], Turn]


def refused(
    message: str, *, status: int = 400, code: str | None = None, param: str | None = None
) -> Turn:
    """The Turn of a request that is refused the way OpenAI does it."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Turn(status=status, error=error)


class Endpoint:
    """The server; a context manager."""

    def __init__(
        self,
        turns: Sequence[Play] | Callable[[Request], Turn] = (),
        *,
        prefix: str = "/v1",
        models: Sequence[str] = ("test-model",),
    ) -> None:
        self.requests: list[Request] = []
        """Every POST, in the order of arrival."""
        self.other_requests: list[Request] = []
        """Everything else."""
        self.models = tuple(models)
        self.prefix = prefix
        self._turns = turns
        self._lock = threading.Lock()
        self.closing = threading.Event()
        self._connections: set[socket.socket] = set()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.endpoint = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))

    @property
    def url(self) -> str:
        """The base URL, with the prefix."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.prefix}"

    def add(self, *turns: Play) -> None:
        """Appends to the script while it is played."""
        with self._lock:
            assert not callable(self._turns)
            self._turns = (*self._turns, *turns)

    def __enter__(self) -> Endpoint:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """From now on nobody answers at this address. May be called twice."""
        if self.closing.is_set():
            return
        self.closing.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        with self._lock:
            open_ones = tuple(self._connections)
        for connection in open_ones:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def noted(self, request: Request) -> Turn:
        """Records a POST and gives what answers it."""
        with self._lock:
            place = len(self.requests)
            self.requests.append(request)
            turns = self._turns
        if callable(turns):
            return turns(request)
        if place >= len(turns):
            return refused(f"the script has no turn left after {len(turns)}")
        turn = turns[place]
        return turn(request) if callable(turn) else turn

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    endpoint: Endpoint

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no news here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        super().setup()
        self.server.endpoint.opened(self.connection)

    def finish(self) -> None:
        self.server.endpoint.closed(self.connection)
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        request = self._request()
        if request is None:
            return
        self.server.endpoint.other_requests.append(request)
        if request.path == f"{self.server.endpoint.prefix}/models":
            listed = [
                {"id": name, "object": "model", "created": 0, "owned_by": "test"}
                for name in self.server.endpoint.models
            ]
            self._send(200, {}, json.dumps({"object": "list", "data": listed}).encode())
        else:
            self._send(404, {}, _error_body(Turn(status=404)))

    def do_POST(self) -> None:
        request = self._request()
        if request is None:
            return
        endpoint = self.server.endpoint
        if request.path != f"{endpoint.prefix}/chat/completions":
            endpoint.other_requests.append(request)
            self._send(404, {}, _error_body(Turn(status=404)))
            return
        turn = endpoint.noted(request)
        headers = {"x-request-id": f"req-{len(endpoint.requests)}", **turn.headers}
        if endpoint.closing.wait(turn.delay_s) or turn.drop_after == 0:
            self._cut()
        elif turn.body is not None:
            body = turn.body.encode() if isinstance(turn.body, str) else turn.body
            self._send(turn.status, headers, body, turn.drop_after)
        elif turn.status != 200:
            self._send(turn.status, headers, _error_body(turn), turn.drop_after)
        elif request.body.get("stream") and not turn.ignores_stream:
            self._stream(turn, request, headers)
        else:
            body = json.dumps(_completion(turn, request)).encode()
            self._send(200, headers, body, turn.drop_after)

    def _request(self) -> Request | None:
        """What was sent; None where the client went away in the middle of it."""
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length)
        if len(raw) < length:
            self.close_connection = True
            return None
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(self.command, self.path, headers, raw, time.monotonic())

    def _send(
        self, status: int, headers: Mapping[str, str], body: bytes, drop_after: int | None = None
    ) -> None:
        self._head(status, headers, {"content-length": str(len(body))})
        self.wfile.write(body[:drop_after])
        if drop_after is not None:
            self._cut()

    def _head(self, status: int, headers: Mapping[str, str], framing: Mapping[str, str]) -> None:
        """Status line and headers; a Turn may set any of them, the date too."""
        self.send_response_only(status)
        given = {name.lower(): value for name, value in headers.items()}
        usual = {"content-type": "application/json", "date": self.date_time_string()}
        for name, value in {**usual, **given, **framing}.items():
            self.send_header(name, value)
        self.end_headers()

    def _stream(self, turn: Turn, request: Request, headers: Mapping[str, str]) -> None:
        kind = {"content-type": "text/event-stream", **headers}
        self._head(200, kind, {"transfer-encoding": "chunked"})
        left = turn.drop_after
        for event in _stream_events(turn, request):
            part = event if left is None else event[:left]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part) if part else b"")
            if left is not None and len(event) >= left:
                self._cut()
                return
            left = None if left is None else left - len(event)
            if self.server.endpoint.closing.wait(turn.pause_s):
                self._cut()
                return
        self.wfile.write(b"0\r\n\r\n")

    def _cut(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)


def _error_body(turn: Turn) -> bytes:
    error = turn.error or {
        "message": f"scripted status {turn.status}",
        "type": "scripted",
        "param": None,
        "code": None,
    }
    return json.dumps({"error": error}).encode()


def _usage(turn: Turn, request: Request) -> dict[str, Any] | None:
    if turn.usage != COUNTED:
        return None if turn.usage is None else dict(turn.usage)
    prompt = len(request.text) // 4 + 1
    completion = (len(turn.text) + len(turn.reasoning)) // 4 + 1
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    }


def _base(request: Request, kind: str) -> dict[str, Any]:
    model = request.body.get("model")
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model}


def _completion(turn: Turn, request: Request) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.text, "refusal": turn.refusal}
    if turn.reasoning:
        message[turn.reasoning_in] = _thoughts(turn, turn.reasoning)
    choice = {"index": 0, "message": message, "finish_reason": turn.finish_reason}
    document = {**_base(request, "chat.completion"), "choices": [choice]}
    usage = _usage(turn, request)
    return {**document, "usage": usage} if usage is not None else document


def _stream_events(turn: Turn, request: Request) -> Iterator[bytes]:
    base = _base(request, "chat.completion.chunk")

    def event(delta: dict[str, Any], finish_reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _event({**base, "choices": [choice]})

    yield event({"role": "assistant", "content": ""})
    for name, text in (
        (turn.reasoning_in, turn.reasoning),
        ("refusal", turn.refusal or ""),
        ("content", turn.text),
    ):
        for start in range(0, len(text), turn.chunk):
            piece = text[start : start + turn.chunk]
            yield event({name: _thoughts(turn, piece) if name == turn.reasoning_in else piece})
    if turn.finish_reason is not None:
        yield event({}, turn.finish_reason)
    usage = _usage(turn, request)
    wanted = (request.body.get("stream_options") or {}).get("include_usage")
    if usage is not None and wanted:
        yield _event({**base, "choices": [], "usage": usage})
    yield b"data: [DONE]\n\n"


def _thoughts(turn: Turn, text: str) -> object:
    if turn.reasoning_in != "reasoning_details":
        return text
    half = len(text) // 2
    return [
        {"type": "reasoning.text", "text": text[:half], "signature": "no words"},
        {"type": "reasoning.summary", "summary": text[half:]},
        {"type": "reasoning.encrypted", "data": "no words either"},
    ]


def _event(document: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"
