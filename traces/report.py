# SPDX-License-Identifier: Apache-2.0
"""One campaign as one self-contained HTML file: it opens from a disk, without a network.

Made of the same templates as the viewer. Knows nothing of where the file goes.
"""

from __future__ import annotations

from markupsafe import Markup

from .history import History, derive
from .redact import Redactor
from .store import Store
from .transcript import transcribe
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
    events = [redactor.event(event) for event in store.events(campaign)]
    history, transcript = derive(events), transcribe(events)
    links = ReportLinks()
    chosen = _choose_detailed(history)
    shown = [
        (
            pages.candidate_page(store, history, candidate, clean=redactor.text),
            _timing_charts(history, candidate) if charts else [],
        )
        for candidate in chosen
    ]
    # What is changed in a candidate is shown once: with its details, where it has them.
    book = Book(
        store,
        history,
        left=trace_shown,
        clean=redactor.text,
        shows_difference=lambda name: name not in chosen,
    )
    return render(
        "report.html",
        links=links,
        row=pages.campaign_row(
            history,
            is_running=store.is_running(campaign),
            is_estimated=transcript.spending.is_estimated,
        ),
        charts=charts,
        figure=draw(figures.campaign_chart(history, links.candidate), CHART) if charts else None,
        transcript=transcript,
        spend_figure=draw(figures.spend_chart(history, transcript, links.candidate), CHART)
        if charts
        else None,
        steps=[step_view(book, step) for step in transcript.steps.values()],
        has_no_room=book.left == 0,
        funnel=pages.funnel(history),
        isolation=pages.isolation_of(history),
        pages=shown,
        left_out=len(history.entries) - len(chosen),
        css=_inline("view.css"),
        js=_inline("view.js"),
    )


def _choose_detailed(history: History) -> list[str]:
    """The best, its ancestors, then the others in order, up to the limit; in order of number."""
    best = history.best
    first = [best, *list_ancestors(history, best)] if best else []
    wanted = dict.fromkeys([entry.candidate for entry in first] + list(history.entries))
    return sorted(list(wanted)[:MOST_DETAILED], key=lambda c: history.entries[c].number)


def _timing_charts(history: History, candidate: str) -> list[Markup]:
    verdict = history.entries[candidate].verdict
    return [draw(figures.timing_chart(m), CHART) for m in verdict.measurements] if verdict else []


def _inline(name: str) -> Markup:
    return _script(asset(name))


def _script(text: str) -> Markup:
    """Our own text, made fit to stand inside an element of the page."""
    return Markup(text.replace("</script", "<\\/script").replace("<!--", "<\\!--"))
