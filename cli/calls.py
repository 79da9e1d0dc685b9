# SPDX-License-Identifier: Apache-2.0
"""`show --calls` and `show --call N`: what models were asked and answered, and at what cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..traces.conversation import (
    FullReply,
    Prompt,
    call_row,
    read_answer,
    read_prompt,
    spell_controls,
    whole_call,
)
from ..traces.events import ModelFailed
from ..traces.head import Spent
from ..traces.sheet import Sheet
from ..traces.transcript import Call, CallRow
from ..traces.wording import duration, tokens, usd
from . import common
from .summary import booked_words

if TYPE_CHECKING:
    from ..config import Config
    from ..traces.store import Store
    from .shapes import CallsDocument, OneCallDocument


def show_all(config: Config, sheet: Sheet, candidate: str | None, *, as_json: bool) -> None:
    """Prints the calls of a campaign, or of the place where one candidate was proposed."""
    spent = sheet.head.spent
    place = None if candidate is None else sheet.entries[candidate].place
    calls = sheet.list_calls(place=place)
    if as_json:
        document: CallsDocument = {
            "campaign": sheet.campaign,
            "tokens": spent.tokens,
            "usd": spent.usd,
            "is_estimated": spent.is_estimated,
            "calls": [call_row(call) for call in calls],
        }
        common.emit(document)
        return
    common.put(_total(spent, sheet.count_calls()))
    if calls:
        _print_table(config, calls, sheet)


def show_one(store: Store, sheet: Sheet, name: str, *, as_json: bool) -> None:
    """Prints one call whole."""
    call = sheet.find_call(name)
    if as_json:
        document: OneCallDocument = {"campaign": sheet.campaign, **whole_call(store, call)}
        common.emit(document)
        return
    for line in _heading(call):
        common.put(line)
    _print_prompt(read_prompt(store.get_blob, call.requested.ask))
    if call.replied is not None:
        _print_answer(read_answer(store.get_blob, call.replied.reply))


def _total(spent: Spent, calls: int) -> str:
    if not calls:
        return "no model was asked"
    price = usd(spent.usd, spent.is_estimated)
    if spent.usd is None:
        price = f"price unknown of {spent.unpriced} answers, the others {usd(spent.priced_usd)}"
    note = "  (≈ estimated)" if spent.is_estimated else ""
    booked = f"; {booked_words(spent.booked)}" if spent.booked.attempts else ""
    taken = tokens(spent.tokens, spent.is_estimated)
    return f"{calls} calls, {taken} tokens, {price}{note}{booked}"


def _print_table(config: Config, calls: list[CallRow], sheet: Sheet) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("#", "place", "purpose", "model", "tries", "ended", "tokens", "usd", "time"):
        table.add_column(heading, no_wrap=heading != "model")
    table.add_column("what came of it", overflow="fold")
    for call in calls:
        cells = (
            str(call.number),
            str(call.place),
            call.purpose,
            call.model,
            str(call.attempts),
            call.outcome,
            tokens(call.tokens, call.is_estimated),
            usd(call.usd, call.is_estimated),
            duration(call.seconds),
            _result(call, sheet),
        )
        style = "" if call.is_answered else "red"
        table.add_row(*(Text(spell_controls(cell)) for cell in cells), style=style)
    common.console(config, is_stderr=False).print(table)


def _result(call: CallRow, sheet: Sheet) -> str:
    if call.missing:
        return f"no candidate: {call.missing}"
    if call.candidate:
        made = sheet.entries[call.candidate]
        label = made.verdict.label if made.verdict else ""
        return f"#{made.number} {made.candidate[:10]} {label}".rstrip()
    return "advice" if call.is_advice else call.setback


def _heading(call: Call) -> list[str]:
    asked = call.requested
    taken = tokens(call.tokens, call.is_estimated)
    price = usd(call.usd, call.is_estimated)
    lines = [
        f"call {call.number}  {asked.purpose} at {asked.place}  {asked.model}",
        f"{call.outcome}; {taken} tokens, {price}, {duration(call.seconds)}",
    ]
    for attempt in call.attempts:
        if isinstance(attempt.outcome, ModelFailed):
            fault = attempt.outcome
            lines.append(f"attempt {fault.attempt}: {fault.fault}: {spell_controls(fault.reason)}")
    return lines


def _print_prompt(prompt: Prompt) -> None:
    if prompt.problem:
        common.put(prompt.problem)
    for message in prompt.messages:
        _print_part(message.role, message.text)
    if prompt.schema:
        _print_part("schema of the reply", prompt.schema)


def _print_answer(answer: FullReply) -> None:
    if answer.reasoning:
        _print_part("reasoning (recorded only, never fed back)", answer.reasoning)
    _print_part("reply", answer.problem or answer.text)
    told: dict[str, Any] = {k: v for k, v in answer.facts.items() if k != "finish"}
    common.put("  ".join(spell_controls(f"{name}={value}") for name, value in told.items()))


def _print_part(title: str, text: str) -> None:
    common.put(f"\n──── {title} " + "─" * max(4, 72 - len(title)))
    common.put(text.rstrip("\n"))
