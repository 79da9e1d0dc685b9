# SPDX-License-Identifier: Apache-2.0
"""One campaign as one self-contained HTML file: it opens from a disk, without a network.

Made of the same templates as the viewer. Knows nothing of where the file goes.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from markupsafe import Markup

from .fold import Entry
from .redact import Redactor
from .sheet import Sheet
from .store import Store
from .transcript import Step
from .view import charts as figures
from .view import pages
from .view.drawing import draw
from .view.links import ReportLinks
from .view.render import asset, render
from .view.trace import TRACE_SHOWN, Book, step_view
from .why import list_ancestors

CHART = "the table has the same figures"
MOST_DETAILED = 60
"""Candidates shown with checks, profile and what they changed."""
MOST_DRAWN = 16
"""Of these, whose samples are drawn: the best and its ancestors first."""
MOST_ROWS = 2000
"""Candidates in the table: the fastest of more."""
MOST_CALLS = 400
"""Calls of models in the table: the first of more."""
MOST_STEPS = 60
"""Places of the workflow in the trace: those of the best and its ancestors, then the first."""


def render_report(
    store: Store, campaign: str, *, charts: bool = True, trace_shown: int = TRACE_SHOWN
) -> str:
    """The report of a campaign. Home folders and keys are left out.

    Args:
        store: an open store; reading is enough.
        campaign: the whole id.
        charts: False leaves the charts out; the tables have the same figures.
        trace_shown: characters of prompts, replies and differences; the rest is left out.
    """
    redactor = Redactor(store.home)
    sheet = Sheet.of_events([redactor.event(event) for event in store.events(campaign)])
    head, links = sheet.head, ReportLinks()
    chosen = _choose_detailed(sheet)
    drawn = chosen[:MOST_DRAWN] if charts else []
    details = [_describe(store, sheet, name, redactor) for name in chosen]
    details.sort(key=lambda page: page.entry.number)
    shown = [(page, _draw(page) if page.entry.candidate in drawn else []) for page in details]
    # What is changed in a candidate is shown once: with its details, where it has them.
    book = Book(
        store,
        sheet,
        left=trace_shown,
        clean=redactor.text,
        shows_difference=lambda name: name not in chosen,
    )
    steps = [step_view(book, step) for step in _choose_steps(sheet)]
    is_long = head.proposed > MOST_ROWS
    return render(
        "report.html",
        links=links,
        row=pages.campaign_row(head, is_running=store.is_running(campaign)),
        sheet=sheet,
        entries=sheet.list_entries(sort="speedup" if is_long else "number", most=MOST_ROWS),
        calls=sheet.list_calls(most=MOST_CALLS),
        charts=charts,
        figure=draw(figures.campaign_chart(sheet, links.candidate), CHART) if charts else None,
        asked=sheet.count_calls(),
        spend_figure=draw(figures.spend_chart(head, links.candidate), CHART) if charts else None,
        steps=steps,
        has_no_room=book.left == 0 or len(steps) < sheet.count_steps(),
        funnel=pages.funnel(head),
        pages=shown,
        left_out=head.proposed - len(chosen),
        css=_inline("view.css"),
        js=_inline("view.js"),
    )


def _choose_detailed(sheet: Sheet) -> list[str]:
    """The best, its ancestors, then the others in order, up to the limit."""
    others = [entry.candidate for entry in sheet.list_entries(most=MOST_DETAILED)]
    return list(dict.fromkeys([entry.candidate for entry in _line(sheet)] + others))[:MOST_DETAILED]


def _line(sheet: Sheet) -> list[Entry]:
    """The best and its ancestors, from the best on."""
    best = sheet.head.winner
    return [best, *reversed(list_ancestors(sheet.entries, best))] if best else []


def _describe(store: Store, sheet: Sheet, name: str, redactor: Redactor) -> pages.CandidatePage:
    """A candidate, whole; of one with a parent what it changed in place of its whole source."""
    page = pages.candidate_page(store, sheet, name, clean=redactor.text)
    is_told = page.change is not None and not page.change.note and name != sheet.head.champion
    return replace(page, lines=(), hot=(), hot_lines=frozenset()) if is_told else page


def _choose_steps(sheet: Sheet) -> list[Step]:
    places = [entry.place for entry in _line(sheet)[:MOST_STEPS]]
    wanted = {number for place in places if (number := sheet.number_of_step(place))}
    others = (n for n in range(1, sheet.count_steps() + 1) if n not in wanted)
    wanted.update(islice(others, MOST_STEPS - len(wanted)))
    return [step for number in sorted(wanted) for step in sheet.list_steps(number - 1, 1)]


def _draw(page: pages.CandidatePage) -> list[Markup]:
    verdict = page.entry.verdict
    return [draw(figures.timing_chart(m), CHART) for m in verdict.measurements] if verdict else []


def _inline(name: str) -> Markup:
    return _script(asset(name))


def _script(text: str) -> Markup:
    """Our own text, made fit to stand inside an element of the page."""
    return Markup(text.replace("</script", "<\\/script").replace("<!--", "<\\!--"))
