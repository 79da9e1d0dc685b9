# SPDX-License-Identifier: Apache-2.0
"""One campaign as Markdown: what stands in a pull request beside the kernel that it brings.

The winner, how it was judged and timed, what it was changed from, and every candidate in a table.
Words of models, compilers and candidates stand in code, where they format nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..kernelbench.languages import language_of
from .fold import Entry
from .head import Head
from .records import Measurement
from .redact import Redactor
from .sheet import Sheet
from .store import Store
from .view.words import gain, local_time, sentence, shorten_id
from .why import list_ancestors
from .wording import NOTHING, duration, interval, micros, percent, ratio, speedup, usd

MOST_ROWS = 60
"""Candidates in the table; the champion and its ancestors always."""
MOST_SOURCE = 60_000
"""Characters: what is longer is left out, with a word."""


def render_markdown(store: Store, campaign: str) -> str:
    """The report of a campaign as Markdown. Home folders and keys are left out.

    Args:
        store: an open store; reading is enough.
        campaign: the whole id.
    """
    redactor = Redactor(store.home)
    sheet = Sheet.of_events([redactor.event(event) for event in store.events(campaign)])
    head = sheet.head
    started = head.started
    lines = [
        f"## {started.problem} on {started.target}: {_headline(head)}",
        "",
        f"Workload {_code(started.workload)}, {started.language}, workflow "
        f"{_code(started.workflow)}, {_code(started.brains)}; {head.evaluated} candidates were "
        f"judged in {duration(head.last_at - head.started_at)}, "
        f"{local_time(head.started_at)}. "
        f"{', '.join(f'{key} {value}' for key, value in started.machine.items())}.",
        "",
    ]
    if head.winner is not None:
        best = sheet.read_whole([head.winner.candidate])[head.winner.candidate]
        lines += [*_winner(sheet, best), *_code_of(store, redactor, best)]
    lines += _candidates(sheet)
    return "\n".join(lines).rstrip() + "\n"


def _headline(head: Head) -> str:
    best = head.best.verdict if head.best else None
    found = best.measurement if best else None
    if found and found.headline:
        return f"{speedup(found.headline)} against {found.best_baseline}"
    leader = head.leader
    if leader and leader.verdict:
        return f"{micros(leader.verdict.modelled_us)} modelled, nothing was timed"
    return f"no winner: {head.why_no_winner}" if head.why_no_winner else "no winner yet"


def _winner(sheet: Sheet, best: Entry) -> Iterator[str]:
    yield f"Candidate #{best.number} {_code(shorten_id(best.candidate))}. {sentence(best)}"
    if sheet.head.how_sure:
        yield f"It is {sheet.head.how_sure}."
    if sheet.head.what_decides:
        yield f"Knobs: {sheet.head.what_decides}."
    yield ""
    verdict = best.verdict
    for measurement in verdict.measurements if verdict else ():
        yield from _timing(measurement)
    path = [*list_ancestors(sheet.entries, best), best]
    if len(path) > 1:
        yield "How it came about:"
        yield ""
        for entry in path:
            yield f"- #{entry.number} {_code(entry.how)}: {gain(entry)}"
        yield ""


def _timing(measurement: Measurement) -> Iterator[str]:
    yield f"| {_cell(measurement.workload)} | median | 25–75 % | faster by | 95 % |"
    yield "|---|---|---|---|---|"
    sides = [("candidate", measurement.candidate), *measurement.baselines.items()]
    for name, timing in sides:
        found = measurement.speedup.get(name)
        yield (
            f"| {_cell(name)} | {micros(timing.median_us)} | {micros(timing.low_us)} – "
            f"{micros(timing.high_us)} | {ratio(found.median) if found else ''} | "
            f"{interval(found) if found else ''} |"
        )
    yield ""
    yield (
        f"{measurement.pairs} pairs; differences below {percent(measurement.mde)} cannot be told "
        f"from noise; {percent(measurement.roofline)} of the roofline."
    )
    yield ""


def _code_of(store: Store, redactor: Redactor, best: Entry) -> Iterator[str]:
    source = redactor.text(store.get_blob(best.candidate).decode("utf-8", "replace"))
    if len(source) > MOST_SOURCE:
        yield f"Its source has {len(source):,} characters and is left out."
        yield ""
        return
    # Longer than every fence within it.
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", source)), default=0))
    yield "<details><summary>Its source</summary>"
    yield ""
    yield fence + language_of(best.language).suffix.lstrip(".")
    yield source.rstrip("\n")
    yield fence
    yield ""
    yield "</details>"
    yield ""


def _candidates(sheet: Sheet) -> Iterator[str]:
    head, best = sheet.head, sheet.head.best
    first = [best, *list_ancestors(sheet.entries, best)] if best else []
    wanted = {e.candidate: e for e in (*first, *sheet.list_entries(most=MOST_ROWS))}
    chosen = list(wanted.values())[:MOST_ROWS]
    left = head.proposed - len(chosen)
    yield f"<details><summary>{head.proposed} candidates</summary>"
    yield ""
    if head.spent.tokens:
        yield f"Models took {head.spent.tokens:,} tokens, {usd(head.spent.usd)}."
        yield ""
    yield "| # | candidate | status | gain | family | how |"
    yield "|---|---|---|---|---|---|"
    for entry in sorted(chosen, key=lambda e: e.number):
        status = entry.verdict.status.value if entry.verdict else NOTHING
        cells = (shorten_id(entry.candidate), status, gain(entry), entry.family, entry.how)
        yield f"| {entry.number} | {' | '.join(map(_cell, cells))} |"
    yield ""
    if left:
        yield f"{left} more are left out."
        yield ""
    yield "</details>"


def _cell(text: str) -> str:
    """Within a table: one line, and no bar that ends a cell."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _code(text: str) -> str:
    """As it is, within a sentence."""
    plain = re.sub(r"[`\s]+", " ", text)
    return f"`{plain}`"
