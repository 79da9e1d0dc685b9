# SPDX-License-Identifier: Apache-2.0
"""What a refusal teaches about an endpoint: the parameter that it names, dropped or renamed."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .capabilities import Capabilities, Rung
from .faults import ServerRefusal
from .keys import scrub

_TAUGHT_BY = (400, 415, 422, 501)

_UNWELCOME = re.compile(
    r"unsupported|not (yet )?(be )?(support|permit|allow|accept|implement)|unrecogni[sz]ed|unknown"
    r"|unexpected|invalid|extra (inputs|fields)|no longer|only .{0,40}(default|support)"
    r"|does(n't| not) (support|accept)|must be|either .* or |too large|at most|use '",
    re.IGNORECASE | re.DOTALL,
)
_TOO_LARGE = re.compile(
    r"(?:at most|less than or equal to|maximum(?: value)?(?: of| is)?|up to|<=)\s*(\d{2,9})",
    re.IGNORECASE,
)
_WINDOW = re.compile(
    r"(?:maximum )?context (?:length|window|size)[^\d]{0,30}?(\d{3,9})", re.IGNORECASE
)
LEAST_ANSWER = 1024
"""Fewer tokens hold no kernel: then the prompt is too long."""

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_ALIASES = {
    "response_format": ("response_format", "json_schema", "json_object", "guided_json", "grammar"),
    "stream_options": ("stream_options", "include_usage"),
    "stream": ("stream",),
    "temperature": ("temperature",),
    "reasoning_effort": ("reasoning_effort", "reasoning effort"),
    "max_completion_tokens": ("max_completion_tokens",),
    "max_tokens": ("max_tokens",),
    "messages": ("system role", "system message", "role 'system'", 'role "system"'),
}


class Correction(NamedTuple):
    """One thing learned; the caller may record it."""

    parameter: str
    change: str
    because: str
    """The server's words."""

    def __str__(self) -> str:
        return f"{self.parameter}: {self.change} ({self.because})"


class Learned(NamedTuple):
    """What is to be changed in the record, and the words for it."""

    update: dict[str, object]
    correction: Correction


def learn(refusal: ServerRefusal, sent: dict[str, Any], known: Capabilities) -> Learned | None:
    """What the refusal of `sent` teaches; None where it names nothing that could be changed."""
    if refusal.status not in _TAUGHT_BY:
        return None
    name = _find_parameter(refusal, sent)
    if name is None:
        return None
    change = _change(name, refusal, sent, known)
    if change is None:
        return None
    words, update = change
    return Learned(update, Correction(name, words, _words_of(refusal)))


def learn_window(refusal: ServerRefusal, known: Capabilities, prompt_tokens: int) -> Learned | None:
    """The context window that a refusal tells, where the prompt leaves room for an answer in it.

    Local servers have small windows and refuse a limit that does not fit beside the prompt.
    """
    told = _WINDOW.search(refusal.message)
    if told is None or known.context_window is not None:
        return None
    window = int(told[1])
    if window - prompt_tokens < LEAST_ANSWER:
        return None
    words = f"{window} tokens with the answer"
    return Learned(
        {"context_window": window}, Correction("context window", words, _words_of(refusal))
    )


def _words_of(refusal: ServerRefusal) -> str:
    return scrub(f"status {refusal.status}: {' '.join(refusal.message.split())[:200]}")


def step_down(known: Capabilities, because: str) -> Learned | None:
    """Asks for JSON in a looser way from now on; None on the lowest rung."""
    changed = _lower(known)
    if changed is None:
        return None
    words, update = changed
    return Learned(update, Correction("response_format", words, because))


def _find_parameter(refusal: ServerRefusal, sent: dict[str, Any]) -> str | None:
    """The sent parameter that the refusal is about: by its `param`, else by its words."""
    param = re.split(r"[.\[]", refusal.param)[0]
    if param == "messages":
        return "messages" if _speaks_of("messages", refusal.message) else None
    if param:
        return param if param in sent and param in _ALIASES else None
    if "unsupported" not in refusal.code and not _UNWELCOME.search(refusal.message):
        return None
    # The longest first: a word on stream_options is none on stream.
    for name in sorted(_ALIASES, key=len, reverse=True):
        if name in sent and _speaks_of(name, refusal.message):
            return name
    return None


def _speaks_of(name: str, message: str) -> bool:
    lower = message.lower()
    return any(re.search(rf"(?<![\w]){re.escape(word)}(?![\w])", lower) for word in _ALIASES[name])


def _change(
    name: str, refusal: ServerRefusal, sent: dict[str, Any], known: Capabilities
) -> tuple[str, dict[str, object]] | None:
    match name:
        case "max_tokens" | "max_completion_tokens":
            return _limit(name, refusal, sent[name])
        case "temperature":
            return "dropped", {"temperature": False}
        case "reasoning_effort":
            return _effort(refusal, sent[name])
        case "response_format":
            return _lower(known)
        case "stream_options":
            return "dropped", {"stream_usage": False}
        case "stream":
            return "dropped", {"stream": False}
        case _:
            return (
                ("system role joined to the user's", {"system_role": False})
                if (known.system_role)
                else None
            )


def _limit(name: str, refusal: ServerRefusal, sent: int) -> tuple[str, dict[str, object]]:
    largest = _TOO_LARGE.search(refusal.message)
    if largest and int(largest[1]) < sent:
        return f"at most {largest[1]}", {"most_output_tokens": int(largest[1])}
    other = "max_tokens" if name == "max_completion_tokens" else "max_completion_tokens"
    return f"renamed {other}", {"max_tokens_field": other}


def _effort(refusal: ServerRefusal, sent: str) -> tuple[str, dict[str, object]]:
    """The efforts that the server lists, if it lists any; else none is taken."""
    quoted = re.findall(r"['\"`](\w+)['\"`]", refusal.message)
    listed = tuple(value for value in _EFFORTS if value in quoted and value != sent)
    return (f"one of {', '.join(listed)}" if listed else "dropped"), {"effort_values": listed}


def nearest_effort(wanted: str, values: tuple[str, ...]) -> str:
    """The strongest effort that is taken and not above the wanted one, else the weakest taken."""
    if wanted in values or wanted not in _EFFORTS:
        return wanted if wanted in values else values[-1]
    ranked = sorted((value for value in values if value in _EFFORTS), key=_EFFORTS.index)
    below = [value for value in ranked if _EFFORTS.index(value) <= _EFFORTS.index(wanted)]
    return (below or ranked[:1] or list(values))[-1]


def _lower(known: Capabilities) -> tuple[str, dict[str, object]] | None:
    match known.rung:
        case Rung.JSON_SCHEMA:
            below = Rung.JSON_OBJECT if known.json_object else Rung.PROMPT
            return f"{below} instead of {Rung.JSON_SCHEMA}", {"json_schema": False}
        case Rung.JSON_OBJECT:
            return f"{Rung.PROMPT} instead of {Rung.JSON_OBJECT}", {"json_object": False}
        case _:
            return None
