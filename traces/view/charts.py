# SPDX-License-Identifier: Apache-2.0
"""Figures as Plotly's JSON: data and layout, built here and only drawn in the browser.

Colours are names of CSS tokens (`--pass`), which the page's script replaces, so that a chart
follows the theme. Text is escaped, since Plotly reads a small subset of HTML. Knows nothing of
pages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import accumulate
from typing import Any

from .. import wording
from ..fold import Entry
from ..head import Head
from ..records import Measurement, Status, Timing
from ..sheet import Sheet
from . import words
from .over import Over, over_numbers

SYMBOL = {
    Status.VERIFIED: "circle",
    Status.SCREENED: "diamond",
    Status.INCORRECT: "x",
    Status.NOT_DISCRIMINATING: "diamond-open",
    Status.SUSPECT: "star",
    Status.BUILD_FAILED: "square",
    Status.CRASHED: "triangle-up",
    Status.TIMED_OUT: "triangle-down",
    Status.RESOURCE: "cross",
    Status.PROTOCOL_ERROR: "square-open",
    Status.HARNESS_ERROR: "circle-open",
    Status.UNSUPPORTED: "triangle-up-open",
}

# SVG stays fluid up to about this many points, and a page is made of them within a blink.
MOST_POINTS = 1000

TASK_COLOURS = ("--accent", "--pass", "--broken", "--wrong", "--muted")
"""Of the tasks of a problem; more than so many are in the table alone."""

Figure = dict[str, Any]
Href = Callable[[str], str]


def make_axis(title: str, **more: Any) -> dict[str, Any]:
    """An axis as all charts have it."""
    return {
        "title": {"text": title, "standoff": 8},
        "gridcolor": "--grid",
        "linecolor": "--line",
        "zeroline": False,
        "automargin": True,
        **more,
    }


def make_layout(height: int, **more: Any) -> dict[str, Any]:
    """A layout as all charts have it; its height is in pixels."""
    return {
        "height": height,
        "margin": {"l": 60, "r": 16, "t": 12, "b": 44},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "system-ui, sans-serif", "size": 12, "color": "--text"},
        "hoverlabel": {"align": "left"},
        "hovermode": "closest",
        **more,
    }


def campaign_chart(sheet: Sheet, href: Href, over: Over | None = None) -> Figure:
    """Every candidate of a campaign: its speed-up, or its modelled time where nothing is timed.

    Args:
        over: what it stands over; None: the numbers of candidates.
    """
    over = over or over_numbers(sheet.head)
    chart = modelled_chart if sheet.head.leader else speedup_chart
    return chart(sheet, href, over)


def modelled_chart(sheet: Sheet, href: Href, over: Over) -> Figure:
    """Modelled times; what has none stands on a strip below."""
    entries = sheet.thin_entries(MOST_POINTS)
    rest = [e for e in entries if e.verdict and e.verdict.modelled_us is None]
    ranked = [e for e in entries if e.verdict and e.verdict.modelled_us is not None]
    data = [
        _points(status, group, href, over, is_timed=False)
        for status, group in _group_by_status(rest)
    ]
    for status, group in _group_by_status(ranked):
        times = [e.verdict.modelled_us for e in group if e.verdict]
        trace = _points(status, group, href, over, is_timed=False)
        data.append({**trace, "name": f"{status.value} (emulated)", "y": times, "yaxis": "y"})
    layout = make_layout(
        440,
        xaxis=_across(over),
        yaxis=make_axis("modelled time (µs, log)", type="log", domain=[0.2, 1], nticks=8),
        yaxis2=_strip("not emulated"),
        legend=LEGEND,
    )
    return {"data": data, "layout": layout}


def speedup_chart(sheet: Sheet, href: Href, over: Over) -> Figure:
    """Speed-ups: every candidate a point, the best so far a step line.

    Candidates without a measurement stand on a strip of their own below, as visible as the others.
    """
    entries = sheet.thin_entries(MOST_POINTS)
    timed = [e for e in entries if e.verdict and e.verdict.measurement]
    rest = [e for e in entries if e.verdict and not e.verdict.measurement]
    data = [_best_line(sheet.head, over)] if sheet.head.crowned else []
    for is_timed, group in ((True, timed), (False, rest)):
        data += [
            _points(status, of_it, href, over, is_timed=is_timed)
            for status, of_it in _group_by_status(group)
        ]
    layout = make_layout(
        440,
        xaxis=_across(over),
        yaxis=make_axis("speed-up (×, log)", type="log", domain=[0.2, 1], **_log_ticks(timed)),
        yaxis2=_strip("not timed"),
        legend=LEGEND,
        **_baseline(is_log=True),
    )
    return {"data": data, "layout": layout}


def _baseline(*, is_log: bool) -> Figure:
    """The line of the best baseline, with its name. Plotly places words on an axis by its log."""
    line = {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "yref": "y",
        "y0": 1,
        "y1": 1,
        "line": {"color": "--muted", "dash": "dash", "width": 1},
    }
    note = {
        "xref": "paper",
        "x": 1,
        "xanchor": "right",
        "yref": "y",
        "y": 0 if is_log else 1,
        "yanchor": "bottom",
        "text": "best baseline = 1",
        "showarrow": False,
        "font": {"color": "--muted", "size": 11},
    }
    return {"shapes": [line], "annotations": [note]}


def _across(over: Over) -> Figure:
    if not over.is_whole:
        room = 0.03 * over.last or 1.0
        return make_axis(over.title, range=[-room, over.last + room], anchor="y2")
    # Left alone, Plotly would put ticks at halves of so few candidates.
    ticks = {"dtick": 1} if over.last <= 12 else {}
    return make_axis(over.title, range=[0.4, over.last + 0.6], anchor="y2", tickformat="d", **ticks)


LEGEND: Figure = {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0}


def _strip(label: str) -> Figure:
    """The axis of the strip below, for candidates without a time."""
    return make_axis(
        "", domain=[0, 0.13], range=[-1, 1], tickvals=[0], ticktext=[label], showgrid=False
    )


def _log_ticks(timed: list[Entry]) -> dict[str, Any]:
    values = [1.0]
    for entry in timed:
        headline = _headline(entry)
        if headline:
            values += [headline[0], headline[1], headline[2]]
    low, high = min(values), max(values)
    steps = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 7, 10, 20, 50, 100, 200, 500, 1000]
    inside = [step for step in steps if low * 0.7 <= step <= high * 1.4]
    return {"tickvals": inside, "ticktext": [f"{step:g}×" for step in inside]}


def _headline(entry: Entry) -> tuple[float, float, float] | None:
    measurement = entry.verdict.measurement if entry.verdict else None
    speedup = measurement.headline if measurement else None
    return (speedup.median, speedup.low, speedup.high) if speedup else None


def _group_by_status(entries: Iterable[Entry]) -> list[tuple[Status, list[Entry]]]:
    groups: dict[Status, list[Entry]] = {}
    for entry in entries:
        if entry.verdict:
            groups.setdefault(entry.verdict.status, []).append(entry)
    return [(status, groups[status]) for status in Status if status in groups]


def _best_line(head: Head, over: Over) -> Figure:
    steps = head.best_so_far
    end = over.last + 0.6 if over.is_whole else over.last
    return {
        "type": "scatter",
        "mode": "lines",
        "name": "best so far, credited",
        "x": [over.place(step) for step in steps] + [end],
        # A logarithm has no place for what is not there.
        "y": [step.credited or None for step in [*steps, steps[-1]]],
        "line": {"shape": "hv", "color": "--accent", "width": 2},
        "hovertemplate": "%{y:.2f}× credited<extra></extra>",
    }


def _points(
    status: Status, entries: list[Entry], href: Href, over: Over, *, is_timed: bool
) -> Figure:
    headlines = [_headline(entry) or (1.0, 1.0, 1.0) for entry in entries]
    trace: Figure = {
        "type": "scatter",
        "mode": "markers",
        "name": status.value,
        "x": [over.place(entry) for entry in entries],
        "y": [h[0] for h in headlines] if is_timed else [0] * len(entries),
        "yaxis": "y" if is_timed else "y2",
        "text": [_hover(entry) for entry in entries],
        "customdata": [href(entry.candidate) for entry in entries],
        "hovertemplate": "%{text}<extra></extra>",
        "marker": {
            "symbol": SYMBOL[status],
            "color": f"--{words.GROUP[status]}",
            "size": 9,
            "line": {"width": 1, "color": f"--{words.GROUP[status]}"},
        },
    }
    if is_timed:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [h[2] - h[0] for h in headlines],
            "arrayminus": [h[0] - h[1] for h in headlines],
            "thickness": 1,
            "width": 3,
            "color": f"--{words.GROUP[status]}",
        }
    return trace


def spend_chart(head: Head, href: Href) -> Figure:
    """The best credited speed-up over what had been spent on models until then.

    Over tokens where the price of any call is unknown, or where nothing was charged.
    """
    in_usd = bool(head.spent.usd)
    steps = [
        (step.usd if in_usd else step.tokens, step.credited, step.candidate)
        for step in head.crowned
    ]
    total = head.spent.usd if in_usd else head.spent.tokens
    hover = [
        f"#{step.number}: {wording.ratio(step.credited)} credited after "
        + (wording.usd(step.usd) if in_usd else f"{wording.tokens(step.tokens)} tokens")
        for step in head.crowned
    ]
    trace: Figure = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "best so far, credited",
        "x": [*(step[0] for step in steps), total],
        "y": [*(step[1] for step in steps), *(step[1] for step in steps[-1:])],
        "text": [*hover, "all that was spent"],
        "customdata": [*(href(step[2]) for step in steps), None],
        "hovertemplate": "%{text}<extra></extra>",
        "line": {"shape": "hv", "color": "--accent", "width": 2},
        "marker": {"color": "--accent", "size": [*[9] * len(steps), 1]},
    }
    layout = make_layout(
        300,
        showlegend=False,
        xaxis=make_axis("spent on models (US dollars)" if in_usd else "tokens", rangemode="tozero"),
        yaxis=make_axis("credited speed-up (×)", rangemode="tozero"),
        **_baseline(is_log=False),
    )
    return {"data": [trace], "layout": layout}


def _hover(entry: Entry) -> str:
    lines = [f"<b>{entry.number}</b> · {escape(entry.family)} · {escape(entry.operator)}"]
    lines.append(escape(words.sentence(entry))[:160])
    return "<br>".join(lines)


def problem_chart(tasks: Sequence[tuple[str, Sequence[tuple[float, float, str]]]]) -> Figure:
    """Credited speed-ups of campaigns over time, a line of the best so far for each task.

    Args:
        tasks: the name of each, with the moment, credit and address of each of its campaigns.
    """
    data = []
    for (name, campaigns), colour in zip(tasks, TASK_COLOURS, strict=False):
        moments = [datetime.fromtimestamp(at, UTC).isoformat() for at, _, _ in campaigns]
        credits = [credit or None for _, credit, _ in campaigns]
        best = list(accumulate((credit for _, credit, _ in campaigns), max))
        common = {"type": "scatter", "name": escape(name), "x": moments}
        marks = {"color": colour, "size": 8}
        data += [
            {
                **common,
                "mode": "markers",
                "y": credits,
                "marker": marks,
                "customdata": [address for _, _, address in campaigns],
                "hovertemplate": "%{y:.2f}× credited<extra>" + escape(name) + "</extra>",
            },
            {
                **common,
                "mode": "lines",
                "y": [each or None for each in best],
                "line": {"shape": "hv", "color": colour, "width": 2},
                "showlegend": False,
                "hoverinfo": "skip",
            },
        ]
    layout = make_layout(
        360,
        xaxis=make_axis("when the campaign began", type="date"),
        yaxis=make_axis("credited speed-up (×)", rangemode="tozero"),
        legend=LEGEND,
    )
    return {"data": data, "layout": layout}


def timing_chart(measurement: Measurement) -> Figure:
    """Every sample of the candidate and of each baseline, on one logarithmic axis of time."""
    sides: list[tuple[str, Timing]] = sorted(
        measurement.baselines.items(), key=lambda side: -side[1].median_us
    )
    return _times([*sides, ("candidate", measurement.candidate)], mine={"candidate"})


def compare_chart(sides: Sequence[tuple[str, Timing]]) -> Figure:
    """Every sample of several candidates, on one logarithmic axis of time; the first on top."""
    return _times(sides[::-1], mine={sides[0][0]})


def _times(sides: Sequence[tuple[str, Timing]], mine: Collection[str]) -> Figure:
    data = []
    for row, (name, timing) in enumerate(sides):
        colour = "--pass" if name in mine else "--muted"
        samples = timing.samples_us or (timing.median_us,)
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": escape(name),
                "x": list(samples),
                "text": [wording.micros(sample) for sample in samples],
                # A fixed zigzag keeps equal samples from hiding each other.
                "y": [row + ((i * 7) % 11 - 5) / 25 for i in range(len(samples))],
                "marker": {"color": colour, "size": 5, "opacity": 0.6, "symbol": "circle-open"},
                "hovertemplate": "%{text}<extra>" + escape(name) + "</extra>",
            }
        )
        data.append(_median(timing, row, name, colour))
    layout = make_layout(
        90 + 46 * len(sides),
        showlegend=False,
        xaxis=make_axis("time per call (µs, log)", type="log", nticks=8),
        yaxis=make_axis(
            "",
            tickvals=list(range(len(sides))),
            ticktext=[escape(name) for name, _ in sides],
            range=[-0.6, len(sides) - 0.4],
        ),
    )
    return {"data": data, "layout": layout}


def _median(timing: Timing, row: int, name: str, colour: str) -> Figure:
    line = {"width": 3, "color": colour}
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [timing.median_us],
        "text": [wording.micros(timing.median_us)],
        "y": [row],
        "marker": {"color": colour, "size": 22, "symbol": "line-ns", "line": line},
        "hovertemplate": "median %{text}<extra>" + escape(name) + "</extra>",
    }
