# SPDX-License-Identifier: Apache-2.0
"""An Ask as the parameters of chat.completions, and what comes back as a Reply.

Pure functions on what was sent and received: no HTTP, no money, no retries.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..model import Ask, Finish, Reply, TokenUsage
from ..text.untrusted import cut_middle
from .capabilities import Capabilities, Rung
from .corrections import nearest_effort
from .tokens import most_prompt_tokens, most_tokens

MOST_CHARACTERS = 4 << 20
"""A reply is cut here: no model says so much, and a server that ignores its limit must end."""

MOST_REASONING = 256 << 10
"""Characters of thoughts that are kept, head and tail: the record is for people."""

SCHEMA_REQUEST = (
    "Answer with exactly one JSON object and nothing else: no text before or after it. "
    "It must be valid against this JSON Schema:\n"
)


def parameters(ask: Ask, name: str, takes: Capabilities) -> dict[str, Any]:
    """The request's body, without anything that the endpoint is known to refuse."""
    limit = min(ask.max_output_tokens, takes.most_output_tokens or ask.max_output_tokens)
    if takes.context_window is not None:
        limit = max(1, min(limit, takes.context_window - most_prompt(ask)))
    sent: dict[str, Any] = {
        "model": name,
        "messages": _messages(ask, takes),
        takes.max_tokens_field: limit,
    }
    if ask.temperature is not None and takes.temperature:
        sent["temperature"] = ask.temperature
    if ask.effort and takes.effort_values != ():
        values = takes.effort_values
        sent["reasoning_effort"] = nearest_effort(ask.effort, values) if values else ask.effort
    if ask.json_schema and takes.rung is not Rung.PROMPT:
        sent["response_format"] = _response_format(ask, takes.rung)
    if takes.stream:
        sent["stream"] = True
        if takes.stream_usage:
            sent["stream_options"] = {"include_usage": True}
    return sent


def most_prompt(ask: Ask) -> int:
    """An upper estimate of the prompt's tokens, however the schema will travel."""
    extra = SCHEMA_REQUEST + json.dumps(ask.json_schema, indent=1) if ask.json_schema else ""
    return most_prompt_tokens(ask.messages, extra)


def _response_format(ask: Ask, rung: Rung) -> dict[str, Any]:
    if rung is Rung.JSON_OBJECT:
        return {"type": "json_object"}
    name = re.sub(r"\W", "_", ask.schema_name)[:64] or "reply"
    wanted = {"name": name, "schema": dict(ask.json_schema), "strict": True}
    return {"type": "json_schema", "json_schema": wanted}


def _messages(ask: Ask, takes: Capabilities) -> list[dict[str, str]]:
    found = [{"role": message.role, "content": message.content} for message in ask.messages]
    # Below the first rung the server does not know the schema, so the model must be told.
    if ask.json_schema and takes.rung is not Rung.JSON_SCHEMA and found:
        schema = json.dumps(ask.json_schema, sort_keys=True)
        found[-1]["content"] += f"\n\n{SCHEMA_REQUEST}{schema}"
    if takes.system_role:
        return found
    system = [each["content"] for each in found if each["role"] == "system"]
    others = [each for each in found if each["role"] != "system"]
    if system:
        if not others or others[0]["role"] != "user":
            others.insert(0, {"role": "user", "content": ""})
        others[0]["content"] = "\n\n".join([*system, others[0]["content"]]).rstrip()
    return others


@dataclass
class PartialReply:
    """What came of a reply so far, from a stream or in one piece."""

    text: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    """Reasoning that the server shows; not part of the answer, but paid."""
    finish: str = ""
    usage: Mapping[str, Any] | None = None
    model: str = ""
    identity: str = ""
    characters: int = 0
    is_cut: bool = False
    """We stopped reading: it was longer than any reply may be."""

    def take(self, document: Mapping[str, Any], part: str) -> None:
        """Adds a chunk (`part` is `delta`) or a whole completion (`message`)."""
        self.model = self.model or _text(document.get("model"))
        self.identity = self.identity or _text(document.get("id"))
        usage = document.get("usage")
        if isinstance(usage, Mapping):
            self.usage = usage
        choices = document.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping):
            return
        self.finish = _text(choice.get("finish_reason")) or self.finish
        # A whole document has ended, whether or not it says so.
        if part == "message":
            self.finish = self.finish or "stop"
        piece = choice.get(part)
        if isinstance(piece, Mapping):
            for into, value in (
                (self.text, piece.get("content")),
                (self.refusal, piece.get("refusal")),
                (self.thoughts, _thoughts(piece)),
            ):
                if words := _text(value):
                    into.append(words)
                    self.characters += len(words)
        self.is_cut = self.characters > MOST_CHARACTERS


def _thoughts(piece: Mapping[str, Any]) -> object:
    """Reasoning under whichever name the server gives it; several names hold the same words."""
    named = (piece.get(name) for name in ("reasoning_content", "reasoning", "reasoning_details"))
    return next((each for each in named if each and _text(each)), None)


def _text(value: object) -> str:
    """A text, or the texts of a list of parts."""
    if isinstance(value, list):
        return "".join(_text(part) for part in value)
    if isinstance(value, Mapping):
        # What is encrypted has neither, and is nobody's to read.
        return _text(value.get("text")) or _text(value.get("summary"))
    return value if isinstance(value, str) else ""


def reply_of(
    received: PartialReply, ask: Ask, *, sent: Mapping[str, Any], request_id: str, seconds: float
) -> Reply:
    """The Reply that was received, whatever it is worth."""
    text, refusal = "".join(received.text), "".join(received.refusal)
    finish = _finish(received, text, refusal)
    limit = sent.get("max_completion_tokens", sent.get("max_tokens"))
    rung = ""
    if ask.json_schema:
        rung = str(sent.get("response_format", {}).get("type", Rung.PROMPT))
    return Reply(
        text=(text or refusal)[:MOST_CHARACTERS],
        finish=finish,
        usage=usage_of(received, ask, finish, limit),
        reasoning=cut_middle("".join(received.thoughts), MOST_REASONING),
        model=received.model,
        request_id=request_id or received.identity,
        rung=rung,
        seconds=seconds,
    )


def _finish(received: PartialReply, text: str, refusal: str) -> Finish:
    if received.is_cut or received.finish in ("length", "max_tokens", "model_length"):
        return Finish.LENGTH
    if refusal or received.finish in ("content_filter", "refusal", "safety"):
        return Finish.REFUSED
    return Finish.STOP if text.strip() else Finish.EMPTY


def usage_of(received: PartialReply, ask: Ask, finish: Finish, limit: int | None) -> TokenUsage:
    """The server's figures where they can be, else an upper estimate that says so."""
    usage = received.usage or {}
    prompt, completion = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    total = _count(usage, "total_tokens")
    cached = _detail(usage, "prompt_tokens_details", "cached_tokens")
    written = _detail(usage, "prompt_tokens_details", "cache_write_tokens")
    reasoning = _detail(usage, "completion_tokens_details", "reasoning_tokens")
    is_estimated = False
    if not prompt:
        prompt, is_estimated = most_prompt(ask), True
    if completion is None or (completion == 0 and received.characters):
        completion, is_estimated = _most_completion(received, finish, limit), True
    # Some count thoughts beside the completion, or in the total only. They are paid all the same.
    if reasoning > completion:
        completion, is_estimated = completion + reasoning, True
    if total is not None and total > prompt + completion and not is_estimated:
        completion, is_estimated = total - prompt, True
    # What cannot be is priced as if nothing had come from a cache.
    if cached + written > prompt:
        cached, written, is_estimated = 0, 0, True
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        written_tokens=written,
        reasoning_tokens=reasoning,
        is_estimated=is_estimated,
    )


def _most_completion(received: PartialReply, finish: Finish, limit: int | None) -> int:
    if finish is Finish.LENGTH and limit is not None and not received.is_cut:
        return limit
    words = (received.text, received.refusal, received.thoughts)
    return sum(most_tokens("".join(each)) for each in words) + 1


def _count(told: Mapping[str, Any], name: str) -> int | None:
    value = told.get(name)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40
    return value if is_count else None


def _detail(told: Mapping[str, Any], group: str, name: str) -> int:
    details = told.get(group)
    return (_count(details, name) or 0) if isinstance(details, Mapping) else 0


def is_json_of(text: str, schema: Mapping[str, Any]) -> bool:
    """Whether the text is one JSON object with the schema's required keys: who enforced a schema
    gives no less, so that one counterexample finds out who only pretended."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return False
    required = schema.get("required", [])
    names = required if isinstance(required, list) else []
    return isinstance(found, dict) and all(name in found for name in names)
