# SPDX-License-Identifier: Apache-2.0
"""One campaign as one self-contained HTML file: it opens from a disk, without a network.

Made of the same templates as the viewer. Knows nothing of where the file goes.
"""

from __future__ import annotations

from markupsafe import Markup

from .redact import Redactor
from .sheet import Sheet
from .store import Store
from .view import charts as figures
from .view import pages
from .view.drawing import draw
from .view.links import ReportLinks
from .view.render import asset, render
from .view.trace import TRACE_SHOWN, Book, step_view
from .why import list_ancestors

CHART = "the table has the same figures"
MOST_DETAILED = 60
"""Candidates shown with code and checks; the table always has all of them."""


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
    details = [pages.candidate_page(store, sheet, name, clean=redactor.text) for name in chosen]
    shown = [(page, _draw(page) if charts else []) for page in details]
    # What is changed in a candidate is shown once: with its details, where it has them.
    book = Book(
        store,
        sheet,
        left=trace_shown,
        clean=redactor.text,
        shows_difference=lambda name: name not in chosen,
    )
    steps = [step_view(book, step) for step in sheet.list_steps()]
    return render(
        "report.html",
        links=links,
        row=pages.campaign_row(head, is_running=store.is_running(campaign)),
        sheet=sheet,
        entries=sheet.list_entries(),
        charts=charts,
        figure=draw(figures.campaign_chart(sheet, links.candidate), CHART) if charts else None,
        asked=sheet.count_calls(),
        spend_figure=draw(figures.spend_chart(head, links.candidate), CHART) if charts else None,
        steps=steps,
        has_no_room=book.left == 0,
        funnel=pages.funnel(head),
        pages=shown,
        left_out=head.proposed - len(chosen),
        css=_inline("view.css"),
        js=_inline("view.js"),
    )


def _choose_detailed(sheet: Sheet) -> list[str]:
    """The best, its ancestors, then the others in order, up to the limit; in order of number."""
    best = sheet.head.best
    first = [best, *list_ancestors(sheet.entries, best)] if best else []
    others = sheet.list_entries(most=MOST_DETAILED)
    wanted = {entry.candidate: entry.number for entry in (*first, *others)}
    return sorted(list(wanted)[:MOST_DETAILED], key=lambda name: wanted[name])


def _draw(page: pages.CandidatePage) -> list[Markup]:
    verdict = page.entry.verdict
    return [draw(figures.timing_chart(m), CHART) for m in verdict.measurements] if verdict else []


def _inline(name: str) -> Markup:
    return _script(asset(name))


def _script(text: str) -> Markup:
    """Our own text, made fit to stand inside an element of the page."""
    return Markup(text.replace("</script", "<\\/script").replace("<!--", "<\\!--"))
