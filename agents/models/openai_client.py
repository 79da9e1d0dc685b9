# SPDX-License-Identifier: Apache-2.0
"""Models behind an OpenAI-compatible endpoint: `openai/<name>`, asked over chat.completions.

One attempt per `complete`, and no retry but one: a refusal that names an unsupported parameter is
answered by the same question without it, since nothing was generated and nothing is paid. What was
learned stands in `corrections`. Everything that fails is a ModelFault, whose message has no key.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from ...config import DEFAULT_SILENCE_S, format_duration
from ..model import Ask, CostBound, FaultKind, Finish, ModelFault, Reply, TokenUsage
from .capabilities import Capabilities, Rung
from .chat import PartialReply, is_json_of, most_prompt, parameters, reply_of
from .corrections import Correction, Learned, learn, learn_window, step_down
from .faults import dropped_fault, fault_of, refusal_of, reset_s
from .keys import Key
from .pricing import Price

DEFAULT_SLOTS = 4
CONNECT_TIMEOUT_S = 10.0
MOST_SECONDS = 3600.0
"""Of one reply from its first byte on, however steadily it trickles."""

_TEACHING = (FaultKind.REFUSED, FaultKind.SERVER, FaultKind.CONTEXT)
"""Refusals that may name a parameter; nothing was generated."""

NO_KEY = "none"
"""Sent where there is no key: local servers want a header, and do not read it."""


def is_local(base_url: str) -> bool:
    """Whether the endpoint is on this machine."""
    host = urlsplit(base_url).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


class Connection:
    """One endpoint with its key: an HTTP client for all its models, and their common slots."""

    def __init__(
        self,
        base_url: str,
        key: Key | None = None,
        *,
        slots: int | None = None,
        silence_s: float = DEFAULT_SILENCE_S,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self.slots = slots or (1 if is_local(base_url) else DEFAULT_SLOTS)
        self.semaphore = threading.BoundedSemaphore(self.slots)
        self._key = key
        self.silence_s = silence_s
        """How long the next attempt may send nothing."""
        self._lock = threading.Lock()
        self._client: Any = None

    @property
    def chat(self) -> Any:
        """The client's chat.completions, with the raw response at hand."""
        with self._lock:
            if self._client is None:
                self._client = self._open_client()
            return self._client.chat.completions.with_streaming_response

    def lengthen(self, silence_s: float) -> None:
        """Doubles a silence that was too short for an answer; whoever found that out first did."""
        with self._lock:
            self.silence_s = max(self.silence_s, min(2 * silence_s, MOST_SECONDS))

    def timeout(self, silence_s: float) -> Any:
        """Of one attempt, for the client."""
        import openai

        return openai.Timeout(silence_s, connect=min(CONNECT_TIMEOUT_S, silence_s))

    def _open_client(self) -> Any:
        import openai

        timeout = self.timeout(self.silence_s)
        http = openai.DefaultHttpxClient(
            timeout=timeout,
            # The prompt goes to the endpoint that was named and nowhere else.
            follow_redirects=False,
            # A proxy of the environment is for the network, not for this machine.
            trust_env=not is_local(self.base_url),
        )
        return openai.OpenAI(
            base_url=self.base_url,
            api_key=self._key.reveal() if self._key else NO_KEY,
            max_retries=0,
            timeout=timeout,
            http_client=http,
        )

    def close(self) -> None:
        """Closes the client. A later call opens another."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()


class OpenAIModel:
    """One model at one endpoint. Threads may share it."""

    def __init__(
        self,
        name: str,
        connection: Connection,
        *,
        capabilities: Capabilities | None = None,
        price: Price | None = None,
    ) -> None:
        self.name = f"openai/{name}"
        self.slots = connection.slots
        self.price = price
        """None: unknown."""
        self._model = name
        self._connection = connection
        self._capabilities = capabilities or Capabilities()
        self._corrections: list[Correction] = []
        self._rests_until = 0.0
        self._lock = threading.Lock()

    @property
    def capabilities(self) -> Capabilities:
        """What the endpoint is known to take by now."""
        with self._lock:
            return self._capabilities

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """Everything learned so far, in order; it only grows."""
        with self._lock:
            return tuple(self._corrections)

    @property
    def pause_s(self) -> float:
        """How long to wait before the next call, by the endpoint's last word on its rate limits."""
        with self._lock:
            return max(0.0, self._rests_until - time.monotonic())

    def bound(self, ask: Ask) -> CostBound:
        """The most an attempt may cost."""
        prompt = most_prompt(ask)
        usd = None if self.price is None else self.price.compute_most(prompt, ask.max_output_tokens)
        return CostBound(prompt + ask.max_output_tokens, usd)

    def cost(self, usage: TokenUsage) -> float | None:
        """US dollars of a call; None where the price is unknown."""
        return None if self.price is None else self.price.cost(usage)

    def complete(self, ask: Ask) -> Reply:
        """One attempt, repeated only without a parameter that the endpoint refused by name."""
        with self._connection.semaphore:
            met: set[str] = set()
            while True:
                known = self.capabilities
                sent = parameters(ask, self._model, known)
                try:
                    return self._attempt(ask, sent, known)
                except _Refused as refused:
                    if refused.fault.kind is FaultKind.CONTEXT:
                        learned = learn_window(refused.refusal, known, most_prompt(ask))
                    else:
                        learned = learn(refused.refusal, sent, known)
                    # Once per parameter: a server that refuses whatever is sent must not be
                    # asked for ever.
                    if learned is None or _step_of(learned) in met:
                        raise refused.fault from None
                    met.add(_step_of(learned))
                    self._note(learned)

    def close(self) -> None:
        """Gives connections back. May be called twice."""
        self._connection.close()

    def _attempt(self, ask: Ask, sent: dict[str, Any], known: Capabilities) -> Reply:
        begun = time.monotonic()
        received = PartialReply()
        url, silence_s = self._connection.base_url, self._connection.silence_s
        timeout = self._connection.timeout(silence_s)
        try:
            with self._connection.chat.create(**sent, timeout=timeout) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                self._pace(headers)
                _receive(received, _documents(response, headers))
        except ModelFault:
            raise
        # What is none of the client's exceptions is raised again by fault_of.
        except Exception as error:
            fault = fault_of(error, endpoint=url, model=self._model, received=received.characters)
            refusal = refusal_of(error)
            if refusal is not None and fault.kind in _TEACHING:
                raise _Refused(refusal, fault) from None
            if refusal is None and fault.kind is FaultKind.TIMED_OUT:
                raise self._silence_fault(fault, silence_s) from None
            raise fault from None
        self._check(received, url)
        request_id = headers.get("x-request-id", "")
        seconds = time.monotonic() - begun
        reply = reply_of(received, ask, sent=sent, request_id=request_id, seconds=seconds)
        self._test(reply, ask, known)
        return reply

    def _silence_fault(self, fault: ModelFault, silence_s: float) -> ModelFault:
        """The fault of an attempt that was given up; the next one may take longer."""
        self._connection.lengthen(silence_s)
        longer = format_duration(self._connection.silence_s)
        return ModelFault(
            fault.kind, f"{fault} ({format_duration(silence_s)}; another attempt is given {longer})"
        )

    def _check(self, received: PartialReply, url: str) -> None:
        """Refuses what ended without an end: a stream that was cut looks like a short one."""
        if received.finish == "error":
            raise ModelFault(FaultKind.SERVER, f"{url} ended the reply with an error")
        if received.is_cut or received.finish or (received.usage and received.characters):
            return
        if received.characters or received.identity:
            raise dropped_fault(url, received.characters)
        raise ModelFault(FaultKind.MALFORMED, f"{url} answered with an empty stream")

    def _test(self, reply: Reply, ask: Ask, known: Capabilities) -> None:
        """Finds out a server that accepts a response format and ignores it."""
        if reply.finish is not Finish.STOP or reply.rung in ("", Rung.PROMPT):
            return
        if not is_json_of(reply.text, ask.json_schema) and reply.rung == known.rung:
            learned = step_down(known, "the reply did not keep to it, although it was accepted")
            if learned is not None:
                self._note(learned)

    def _note(self, learned: Learned) -> None:
        """Takes over what was learned, unless another thread has learned the same meanwhile."""
        with self._lock:
            corrected = self._capabilities.model_copy(update=learned.update)
            if self._capabilities != corrected:
                self._capabilities = corrected
                self._corrections.append(learned.correction)

    def _pace(self, headers: Mapping[str, str]) -> None:
        wait = reset_s(headers)
        if wait is not None:
            with self._lock:
                self._rests_until = time.monotonic() + wait


class _Refused(Exception):
    """The endpoint refused a request; perhaps because of one parameter."""

    def __init__(self, refusal: Any, fault: ModelFault) -> None:
        super().__init__(str(fault))
        self.refusal = refusal
        self.fault = fault


def _step_of(learned: Learned) -> str:
    """What may be corrected once: each parameter, and each rung of the ladder down."""
    correction = learned.correction
    if correction.parameter == "response_format":
        return f"response_format {correction.change}"
    return "limit" if correction.change.startswith("at most") else correction.parameter


def _receive(received: PartialReply, documents: Iterator[tuple[Mapping[str, Any], str]]) -> None:
    """Takes in a reply to its end, or to where it is longer than any reply may be."""
    first: float | None = None
    for document, part in documents:
        received.take(document, part)
        first = time.monotonic() if first is None else first
        if received.is_cut or time.monotonic() - first > MOST_SECONDS:
            received.is_cut = True
            return


def _documents(
    response: Any, headers: Mapping[str, str]
) -> Iterator[tuple[Mapping[str, Any], str]]:
    """The chunks of a stream, or the one document of a server that does not stream."""
    if "event-stream" in headers.get("content-type", ""):
        import openai

        # As plain JSON: a long reply has thousands of chunks, and a model of each of them costs
        # the client more time than a quick server needs.
        for chunk in response.parse(to=openai.Stream[object]):
            if not isinstance(chunk, Mapping):
                raise ValueError("a piece of the stream is no JSON object")
            yield chunk, "delta"
        return
    document = json.loads(response.read())
    if not isinstance(document, dict) or not isinstance(document.get("choices"), list):
        raise ValueError("the document has no choices")
    yield document, "message"
