# SPDX-License-Identifier: Apache-2.0
"""Reads what was said to a model and what it said, out of the blobs that events name.

Tolerant: a blob that is missing or of another shape is told in a sentence, and the rest is shown.
Knows how a prompt marks what is not to be trusted. Knows no HTML.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..errors import KernelwrightError
from .shapes import CallDocument, WholeCallDocument
from .transcript import Call, CallRow

GetBlob = Callable[[str], bytes]


class Records(Protocol):
    """What is needed of a store."""

    def get_blob(self, sha: str) -> bytes:
        """The bytes of a blob."""


MOST_READ = 4_000_000
"""Characters of one text that are looked at; nobody reads on."""

_SIGN = re.compile(r"^(DATA-[0-9a-f]{16})\n", re.MULTILINE)
"""The line before and after text of unknown origin in a prompt."""


@dataclass(frozen=True)
class Passage:
    """A run of a message that is ours, or one that came from elsewhere."""

    text: str
    is_untrusted: bool = False


@dataclass(frozen=True)
class PromptMessage:
    """One message of a prompt."""

    role: str
    text: str

    @property
    def passages(self) -> tuple[Passage, ...]:
        """The message, with what is untrusted told apart."""
        # What a model said before is shown to it again word for word.
        if self.role == "assistant":
            return (Passage(self.text, is_untrusted=True),)
        return passages(self.text)


@dataclass(frozen=True)
class Prompt:
    """A whole question."""

    messages: tuple[PromptMessage, ...] = ()
    parameters: dict[str, Any] = field(default_factory=dict)
    schema: str = ""
    """The JSON schema that the answer was to have; empty for free text."""
    problem: str = ""
    """Why it cannot be shown; empty where it can."""


@dataclass(frozen=True)
class FullReply:
    """A whole reply."""

    text: str = ""
    reasoning: str = ""
    """What the model thought before it, where its server shows that; never part of the answer."""
    facts: dict[str, Any] = field(default_factory=dict)
    """The server's model, request id, tokens and so on, each where told."""
    problem: str = ""


def read_prompt(get_blob: GetBlob, sha: str) -> Prompt:
    """The question in the blob `sha`."""
    content, problem = _document(get_blob, sha)
    messages = content.pop("messages", [])
    if problem or not isinstance(messages, list):
        return Prompt(problem=f"The prompt cannot be shown: {problem or 'it has no messages'}.")
    schema = content.pop("json_schema", None)
    return Prompt(
        messages=tuple(
            PromptMessage(
                spell_controls(str(m.get("role", ""))), spell_controls(str(m.get("content", "")))
            )
            for m in messages
            if isinstance(m, dict)
        ),
        parameters={k: v for k, v in content.items() if v not in (None, "") and k != "purpose"},
        schema=json.dumps(schema, indent=1) if schema else "",
    )


def read_answer(get_blob: GetBlob, sha: str) -> FullReply:
    """The reply in the blob `sha`."""
    content, problem = _document(get_blob, sha)
    text = content.pop("text", "")
    if problem or not isinstance(text, str):
        return FullReply(problem=f"The reply cannot be shown: {problem or 'it has no text'}.")
    thoughts = content.pop("reasoning", "")
    usage = content.pop("usage", None)
    facts = {**content, **(usage if isinstance(usage, dict) else {})}
    reasoning = spell_controls(thoughts) if isinstance(thoughts, str) else ""
    told = {k: v for k, v in facts.items() if v not in (None, "", 0, False)}
    return FullReply(spell_controls(text), reasoning, told)


def _document(get_blob: GetBlob, sha: str) -> tuple[dict[str, Any], str]:
    try:
        content = json.loads(get_blob(sha))
    except (KernelwrightError, ValueError, RecursionError) as error:
        return {}, str(error)
    return (content, "") if isinstance(content, dict) else ({}, "it is not an object")


def passages(text: str) -> tuple[Passage, ...]:
    """A prompt's text, with what stands between two equal signs told apart.

    Whatever stands between them, such as another sign, belongs to what is untrusted.
    """
    found: list[Passage] = []
    at = 0
    while sign := _SIGN.search(text, at):
        end = re.compile(rf"^{sign[1]}$", re.MULTILINE).search(text, sign.end())
        if end is None:
            break
        found.append(Passage(text[at : sign.start()]))
        found.append(Passage(text[sign.end() : end.start()], is_untrusted=True))
        at = end.end()
    found.append(Passage(text[at:]))
    return tuple(Passage(p.text.strip("\n"), p.is_untrusted) for p in found if p.text.strip("\n"))


class _Visible(dict[int, str]):
    """What stands for each character: itself, unless people could not see it."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_seen = character.isprintable() or unicodedata.category(character) == "Zs"
        shown = character if is_seen or character in "\n\t" else f"⟨U+{code:04X}⟩"
        self[code] = shown
        return shown


_VISIBLE = _Visible()


def spell_controls(text: str) -> str:
    """The text with control and direction characters spelt out, fit for a page or a terminal."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text[:MOST_READ]  # nearly all texts, and a tenth of the time
    return text[:MOST_READ].replace("\r\n", "\n").translate(_VISIBLE)


def call_row(call: CallRow) -> dict[str, Any]:
    """A call in a few fields, as the command line and the viewer give it as JSON."""
    return dict(_describe(call))


def _describe(call: CallRow) -> CallDocument:
    return {
        "number": call.number,
        "call": call.call,
        "place": str(call.place),
        "purpose": call.purpose,
        "model": call.model,
        "attempts": call.attempts,
        "failures": call.failures,
        "outcome": call.outcome,
        "tokens": call.tokens,
        "usd": call.usd,
        "is_estimated": call.is_estimated,
        "seconds": round(call.seconds, 3),
        "candidate": call.candidate,
        "missing": call.missing,
    }


def whole_call(records: Records, call: Call) -> WholeCallDocument:
    """A call with its attempts and its words as they are stored; None for what cannot be read."""
    replied = call.replied
    return {
        **_describe(call.row),
        "events": [
            event.model_dump(mode="json")
            for attempt in call.attempts
            for event in (attempt.requested, attempt.outcome)
            if event
        ],
        "ask": _document(records.get_blob, call.requested.ask)[0] or None,
        "reply": (_document(records.get_blob, replied.reply)[0] or None) if replied else None,
    }
