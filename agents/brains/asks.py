# SPDX-License-Identifier: Apache-2.0
"""What the brains that speak to a model share: whom they ask, and one second chance for a reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from pydantic import BaseModel, JsonValue

from ...traces.place import Place
from ..model import Ask, Finish, Message, Reply
from ..prompting.render import render
from ..text.found import ReplyOutcome, Unusable
from ..text.json_text import read
from ..text.untrusted import make_readable, one_line

REASON_CHARACTERS = 500
"""Of what was wrong with a reply, when it is asked for again."""
JSON_ECHO, CODE_ECHO = 2_000, 48_000
"""Characters of a useless reply that its model is shown again."""
KEPT = "All else in it was fine: keep that, and mend this alone."
"""Said of a reply that has its form, and one thing wrong with what it says."""

Form = TypeVar("Form", bound=BaseModel)


class Asks(Protocol):
    """Asks one model on a campaign's account: `asking.Asker`."""

    model_name: str

    def ask(self, ask: Ask, place: Place) -> Reply:
        """The stored answer, or one that is paid for now."""

    def key(self, ask: Ask, place: Place) -> str:
        """The key of that call."""


@dataclass(frozen=True)
class Parameters:
    """With what a model is asked."""

    max_output_tokens: int = 16_384
    """Reasoning counts as output."""
    temperature: float | None = None
    effort: str = ""

    def ask(self, purpose: str, system: str, user: str) -> Ask:
        """A question whose answer is free text."""
        return Ask(
            purpose=purpose,
            messages=(
                Message(role="system", content=system),
                Message(role="user", content=user),
            ),
            max_output_tokens=self.max_output_tokens,
            temperature=self.temperature,
            effort=self.effort,
        )


@dataclass(frozen=True)
class Typed(Generic[Form]):
    """What came of a question whose answer has a form."""

    form: Form | None
    """None: neither reply could be used."""
    call: str
    notes: tuple[str, ...] = ()
    """What was asked again and why, and how structure was asked for."""


def repeat_ask(ask: Ask, reply: Reply, fault: Unusable, request: str, echo: int) -> Ask:
    """The question once more, with the useless reply and what was wrong with it.

    A reply that was cut off is not shown, and gets twice the room.
    """
    if fault.outcome is ReplyOutcome.TRUNCATED:
        limit = ask.max_output_tokens * (2 if reply.finish is Finish.LENGTH else 1)
        return _with_more(ask, "", request).model_copy(update={"max_output_tokens": limit})
    return _with_more(ask, make_readable(reply.text)[:echo], request)


def ask_typed(
    asker: Asks,
    ask: Ask,
    form: type[Form],
    place: Place,
    *,
    schema: dict[str, JsonValue] | None = None,
    fault_of: Callable[[Form], str] = lambda _form: "",
) -> Typed[Form]:
    """Asks for a small JSON reply, and once again where it cannot be used.

    Args:
        schema: Of the reply; that of the form, unless said.
        fault_of: What is wrong with a reply of the right form; empty: nothing.
    """
    ask = ask.model_copy(
        update={"schema_name": form.__name__, "json_schema": schema or schema_of(form)}
    )
    notes: list[str] = []
    call = ""
    for turn in range(2):
        reply = asker.ask(ask, place.at_turn(turn))
        call = asker.key(ask, place.at_turn(turn))
        if reply.rung:
            notes.append(f"rung: {reply.rung}")
        value = read(reply.text, reply.finish, form)
        fault = value if isinstance(value, Unusable) else None
        if not isinstance(value, Unusable):
            said = fault_of(value)
            if not said:
                return Typed(value, call, tuple(dict.fromkeys(notes)))
            fault = Unusable(ReplyOutcome.INVALID_JSON, said)
        assert fault is not None
        reason = one_line(fault.reason, REASON_CHARACTERS)
        notes.append(f"{'asked again' if turn == 0 else 'given up'}: {fault.outcome}: {reason}")
        kept = "" if isinstance(value, Unusable) else KEPT
        request = render("again_json", problem=reason, kept=kept)
        ask = repeat_ask(ask, reply, replace(fault, reason=reason), request, JSON_ECHO)
    return Typed(None, call, tuple(dict.fromkeys(notes)))


def schema_of(form: type[BaseModel]) -> dict[str, JsonValue]:
    """The form's JSON schema as strict servers want it: everything required, nothing more."""
    schema: dict[str, JsonValue] = form.model_json_schema()
    return _tighten_schema(schema)


def _tighten_schema(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    kept: dict[str, JsonValue] = {}
    for key, value in schema.items():
        if key in ("title", "default") and not isinstance(value, dict):
            continue
        if isinstance(value, dict):
            kept[key] = _tighten_schema(value)
        elif isinstance(value, list):
            kept[key] = [
                _tighten_schema(each) if isinstance(each, dict) else each for each in value
            ]
        else:
            kept[key] = value
    properties = kept.get("properties")
    if isinstance(properties, dict):
        kept["required"] = list(properties)
        kept["additionalProperties"] = False
    return kept


def _with_more(ask: Ask, said: str, request: str) -> Ask:
    if said.strip():
        more = (Message(role="assistant", content=said), Message(role="user", content=request))
        return ask.model_copy(update={"messages": (*ask.messages, *more)})
    # Two messages of one role in a row are refused by some servers.
    last = ask.messages[-1]
    joined = Message(role=last.role, content=f"{last.content}\n\n{request}")
    return ask.model_copy(update={"messages": (*ask.messages[:-1], joined)})
