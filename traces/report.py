"""One campaign as one self-contained HTML file: it opens from a disk, without a network.

Made of the same templates as the viewer. Knows nothing of where the file goes.
"""

from __future__ import annotations

from markupsafe import Markup

from .history import History, derive
from .store import Store
from .view import charts as figures
from .view import pages
from .view.links import ReportLinks
from .view.redact import Redactor
from .view.render import asset, plotly_script, render

MOST_DETAILED = 60
"""Candidates shown with code and checks; the table always has all of them."""


def render_report(store: Store, campaign: str, *, charts: bool = True) -> str:
    """The report of a campaign. Home folders and keys are left out.

    Args:
        store: an open store; reading is enough.
        campaign: the whole id.
        charts: False leaves Plotly (about 5 MB) and the charts out; the tables stay.
    """
    redactor = Redactor(store.home)
    history = derive(redactor.event(event) for event in store.events(campaign))
    links = ReportLinks()
    chosen = _detailed(history)
    shown = [
        (
            pages.candidate_page(store, history, candidate, clean=redactor.text),
            _timing_charts(history, candidate) if charts else [],
        )
        for candidate in chosen
    ]
    return render(
        "report.html",
        links=links,
        row=pages.campaign_row(history, is_running=store.is_running(campaign)),
        charts=charts,
        has_charts=charts,
        figure=figures.campaign_chart(history, links.candidate) if charts else None,
        funnel=pages.funnel(history),
        isolation=pages.isolation_of(history),
        pages=shown,
        left_out=len(history.entries) - len(chosen),
        css=_inline("view.css"),
        js=_inline("view.js"),
        plotly_js=_script(plotly_script().read_text(encoding="utf-8")) if charts else "",
    )


def _detailed(history: History) -> list[str]:
    """The best, its ancestors, then the others in order, up to the limit; in order of number."""
    best = history.best
    first = [best, *pages.ancestors(history, best)] if best else []
    wanted = dict.fromkeys([entry.candidate for entry in first] + list(history.entries))
    return sorted(list(wanted)[:MOST_DETAILED], key=lambda c: history.entries[c].number)


def _timing_charts(history: History, candidate: str) -> list[figures.Figure]:
    verdict = history.entries[candidate].verdict
    return [figures.timing_chart(m) for m in verdict.measurements] if verdict else []


def _inline(name: str) -> Markup:
    return _script(asset(name))


def _script(text: str) -> Markup:
    """Our own or Plotly's text, made fit to stand inside an element of the page."""
    return Markup(text.replace("</script", "<\\/script").replace("<!--", "<\\!--"))
