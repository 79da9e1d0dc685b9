# SPDX-License-Identifier: Apache-2.0
"""What is asked of a language model, what it answers, and how it can fail: provider-neutral.

A Model makes one attempt and knows no budget, no event and no retry: `agents/books/asking.py`
reserves, records, retries and settles. Everything here is data that can be stored.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from pydantic import Field, JsonValue

from ..traces.place import Place
from ..traces.records import Record

Role = Literal["system", "user", "assistant"]


def canonical_json(value: object) -> str:
    """JSON in one spelling, plain ASCII: what keys are made of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


class Message(Record):
    """One message of a conversation."""

    role: Role
    content: str


class Ask(Record):
    """One question to a model. Its canonical JSON is what a call's key is made of."""

    purpose: str
    """`write`, `repair`, `optimise`, `cross over`, `judge repair`, `soft memory`, … (roles.py)."""
    messages: tuple[Message, ...]
    schema_name: str = ""
    """Of the JSON the reply must be; empty for free text (code never travels inside JSON)."""
    json_schema: dict[str, JsonValue] = Field(default_factory=dict)
    max_output_tokens: int = 8192
    temperature: float | None = None
    effort: str = ""
    """Reasoning effort, where the model takes one."""

    @property
    def canonical(self) -> str:
        """The same text for the same question, whoever writes it down."""
        return canonical_json(self.model_dump(mode="json"))


class TokenUsage(Record):
    """Tokens of one call. Reasoning tokens are inside the completion's."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    reasoning_tokens: int = 0
    is_estimated: bool = False
    """The server told none, or figures that cannot be."""

    @property
    def tokens(self) -> int:
        """Prompt and completion."""
        return self.prompt_tokens + self.completion_tokens


class Finish(StrEnum):
    """Why a reply ended."""

    STOP = "stop"
    LENGTH = "length"
    REFUSED = "refused"
    """A refusal, or the provider's content filter."""
    EMPTY = "empty"


class Reply(Record):
    """A paid answer, whatever it is worth."""

    text: str
    finish: Finish
    usage: TokenUsage
    model: str = ""
    """As the server names it."""
    request_id: str = ""
    reasoning: str = ""
    """What the model thought before its answer, where the server shows it: for the record alone."""
    rung: str = ""
    """How structured output was asked for: `json_schema`, `json_object` or `prompt`."""
    seconds: float = 0.0


class CostBound(NamedTuple):
    """The most that one attempt can cost."""

    tokens: int
    usd: float | None
    """None where the price is unknown."""


class FaultKind(StrEnum):
    """What kept a model from answering."""

    RATE_LIMITED = "rate limited"
    SERVER = "server error"
    TIMED_OUT = "timed out"
    """The outcome is unknown: it may have been paid."""
    DROPPED = "connection lost"
    """In the middle of a reply: the outcome is unknown."""
    UNREACHABLE = "unreachable"
    QUOTA = "quota exhausted"
    KEY = "key refused"
    UNKNOWN_MODEL = "unknown model"
    CONTEXT = "context window exceeded"
    REFUSED = "request refused"
    MALFORMED = "malformed answer"


RETRYABLE = frozenset(
    {
        FaultKind.RATE_LIMITED,
        FaultKind.SERVER,
        FaultKind.TIMED_OUT,
        FaultKind.DROPPED,
        FaultKind.UNREACHABLE,
        FaultKind.MALFORMED,
    }
)
UNKNOWN_OUTCOME = frozenset({FaultKind.TIMED_OUT, FaultKind.DROPPED, FaultKind.MALFORMED})
"""After these the reservation is settled as spent."""


class ModelFault(Exception):
    """One attempt failed. The message is for people and holds no key."""

    def __init__(
        self,
        kind: FaultKind,
        message: str,
        *,
        retry_after_s: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s
        self.status = status


class Model(Protocol):
    """One model: a question goes in, and an answer or a fault comes out.

    Whoever asks rests on this, and `tests/agents/models/test_every_model.py` holds every one to it:

    - `complete` is one attempt. Where it fails it raises ModelFault and has not tried again; the
      next attempt begins anew. A reply that is cut off, refused or empty is no fault but a Reply,
      since it is paid: `finish` says which it is, and only one that stopped has a text for certain.
    - What a reply used is within the `bound` of its question, in tokens and in dollars. `bound` and
      `cost` ask nobody. Both know a price or neither does; what is unknown is None and never 0.
    - As many calls as `slots` may be in flight, from as many threads; each gets its own answer.
    - `name` and `slots` stay as they are. `close` may be called at any time: a later question opens
      again what it needs.
    - Who answers by the place implements PlacedModel: there, all of this holds of `at(place)`,
      which is the same one whenever it is asked for.
    """

    name: str
    """As the user named it, e.g. `openai/gpt-5`; it stands in events."""
    slots: int
    """Calls that may be in flight at once."""

    def bound(self, ask: Ask) -> CostBound:
        """The most an attempt may cost, by an upper estimate of the prompt's tokens."""

    def cost(self, usage: TokenUsage) -> float | None:
        """US dollars of a call; None where the price is unknown."""

    def complete(self, ask: Ask) -> Reply:
        """One attempt. Raises ModelFault."""

    def close(self) -> None:
        """Gives connections back. May be called twice."""


@runtime_checkable
class Paced(Protocol):
    """A Model whose endpoint says how long it has no room."""

    @property
    def pause_s(self) -> float:
        """Seconds to wait before the next call; 0: none."""


@runtime_checkable
class PlacedModel(Protocol):
    """A Model that answers by where in the workflow it is asked, such as a recorded campaign."""

    def at(self, place: Place) -> Model:
        """The model as it stands at this place."""
