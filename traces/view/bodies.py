# SPDX-License-Identifier: Apache-2.0
"""Each page as HTML: what is read for it, and the template that it fills. Knows no HTTP."""

from __future__ import annotations

import math
from typing import Any

from ...errors import UnknownNameError
from .. import finding
from ..conversation import MOST_READ
from ..names import BEST, parse
from ..place import Place
from ..sheet import SORTS
from ..suites import average, find_suites, sum_up
from . import (
    archive_page,
    charts,
    compare_page,
    home_page,
    pages,
    problem_page,
    tree_page,
    why_page,
)
from . import trace as traced
from .api import list_rows
from .links import ServerLinks
from .over import AXES, list_axes
from .reader import CampaignReader, ReadCampaign
from .render import plotly_version, render
from .roofline import list_sides, roofline_chart

ROWS_PER_PAGE = 200


def fill_page(template: str, links: ServerLinks, *, has_charts: bool, **context: Any) -> str:
    """A page of the live viewer."""
    return render(template, links=links, has_charts=has_charts, plotly=plotly_version(), **context)


def _row(read: ReadCampaign) -> pages.CampaignRow:
    head = read.sheet.head
    return pages.campaign_row(head, is_running=read.store.is_running(head.campaign))


def campaigns_html(reader: CampaignReader, *, query: str, sort: str, page: int) -> str:
    """The list of campaigns."""
    key = _choice("sort", sort, home_page.SORTS)
    with reader.store() as store:
        seq, rows = store.last_seq(), list_rows(store)
    found = sorted(home_page.search(rows, query), key=key)
    page, count = _find_page(len(found), page)
    return fill_page(
        "campaigns.html",
        ServerLinks(),
        has_charts=False,
        rows=found[_skip(page) : _skip(page) + ROWS_PER_PAGE],
        has_spending=any(row.told["tokens"] for row in rows),
        seq=seq,
        query=query,
        sort=sort,
        sorts=list(home_page.SORTS),
        found=len(found),
        total=len(rows),
        page=page,
        pages=count,
    )


def suites_html(reader: CampaignReader, name: str) -> str:
    """The suites that there are, and the table of one: by default of the one begun last."""
    with reader.store() as store:
        seq = store.last_seq()
        found = find_suites(store.starts())
        if name and name not in found:
            raise UnknownNameError.for_name("suite", name, found)
    name = name or next(reversed(found), "")
    rows = []
    for campaign in found.get(name, ()):
        with reader.campaign(campaign) as read:
            rows.append(sum_up(read.sheet))
    won = [row for row in rows if row.gain]
    return fill_page(
        "suites.html",
        ServerLinks(),
        has_charts=False,
        seq=seq,
        suites=list(found),
        name=name,
        rows=sorted(rows, key=lambda row: (row.task, row.workload)),
        won=len(won),
        mean=average([row.gain.low for row in won if row.gain]),
    )


def problem_html(reader: CampaignReader, problem: str) -> str:
    """The best of each task of a problem, over all campaigns."""
    with reader.store() as store:
        seq, rows = store.last_seq(), list_rows(store)
    tasks = problem_page.list_tasks(rows, problem)
    if not tasks:
        raise UnknownNameError.for_name("problem", problem, {row.told["problem"] for row in rows})
    links = ServerLinks()
    told = [
        (
            " ".join(row.task),
            [
                (each.told["started_at"], each.credited, links.campaign(each.id))
                for each in row.campaigns
                if each.credited
            ],
        )
        for row in tasks
        if row.steps
    ]
    return fill_page(
        "problem.html",
        links,
        has_charts=bool(told),
        seq=seq,
        problem=problem,
        tasks=tasks,
        campaigns=sum(len(row.campaigns) for row in tasks),
        figure=charts.problem_chart(told) if told else None,
    )


def search_html(read: ReadCampaign, query: str, at: finding.At) -> str:
    """Where words stand in what a campaign left."""
    return fill_page(
        "search.html",
        ServerLinks(at=read.sheet.campaign),
        has_charts=False,
        row=_row(read),
        query=query,
        at=at,
        found=finding.search(*read, query, at) if query.strip() else None,
        asked=read.sheet.count_calls(),
    )


def archive_html(read: ReadCampaign, generation: int | None) -> str:
    """What the search keeps."""
    return fill_page(
        "archive.html",
        ServerLinks(at=read.sheet.campaign),
        has_charts=False,
        row=_row(read),
        page=archive_page.archive_page(read.sheet, generation),
    )


def tree_html(read: ReadCampaign) -> str:
    """Who came of whom."""
    return fill_page(
        "tree.html",
        ServerLinks(at=read.sheet.campaign),
        has_charts=False,
        row=_row(read),
        page=tree_page.tree_page(read.sheet),
    )


def campaign_html(
    read: ReadCampaign, *, status: str, sort: str, page: int, calls: int, over: str
) -> str:
    """One campaign."""
    sheet = read.sheet
    head = sheet.head
    axis = _choice("axis", over, AXES)(head)
    links = ServerLinks(at=head.campaign)
    _choice("sort", sort, SORTS)
    found, asked = sheet.count(status), sheet.count_calls()
    page, count = _find_page(found, page)
    calls, call_pages = _find_page(asked, calls)
    return fill_page(
        "campaign.html",
        links,
        has_charts=True,
        row=_row(read),
        figure=charts.campaign_chart(sheet, links.candidate, axis),
        over=over,
        axes=list_axes(head),
        sheet=sheet,
        has_trace=bool(sheet.count_steps()),
        spend_figure=charts.spend_chart(head, links.candidate),
        calls=sheet.list_calls(_skip(calls), ROWS_PER_PAGE) if asked else [],
        asked=asked,
        call_page=calls,
        call_pages=call_pages,
        funnel=pages.funnel(head),
        entries=sheet.list_entries(status, sort, _skip(page), ROWS_PER_PAGE),
        found=found,
        status=status,
        sort=sort,
        sorts=list(SORTS),
        sort_link=lambda name: links.query(status=status, sort=name, over=over) + "#candidates",
        page=page,
        pages=count,
    )


def compare_html(reader: CampaignReader, names: list[str]) -> str:
    """Two to four candidates beside each other, each named as CAMPAIGN/CANDIDATE."""
    if not names:
        return fill_page(
            "error.html",
            ServerLinks(),
            has_charts=False,
            title="Nothing is chosen yet",
            message="No candidate was ticked to be compared.",
            hint=compare_page.HOW,
        )
    found = {}
    for name in map(parse, names[: compare_page.MOST + 1]):
        with reader.campaign(name.campaign) as (store, sheet):
            column = compare_page.column_of(store, sheet, name.candidate or BEST)
            found[column.address] = column
    columns = list(found.values())
    compare_page.check_count(len(columns))
    several = len({column.head.campaign for column in columns}) > 1
    sides = [
        (f"#{column.entry.number}" + (f" {column.head.campaign}" if several else ""), timing)
        for column in columns
        if (timing := column.measurement.candidate if column.measurement else None)
    ]
    page = compare_page.compare_page(columns)
    return fill_page(
        "compare.html",
        ServerLinks(),
        has_charts=bool(sides),
        page=page,
        figure=charts.compare_chart(sides) if sides and page.is_one_task else None,
        has_campaigns=several,
        links_of=lambda column: ServerLinks(at=column.head.campaign),
    )


def why_html(read: ReadCampaign) -> str:
    """Who won, why, and where time and money went."""
    page = why_page.why_page(read.store, read.sheet)
    return fill_page(
        "why.html",
        ServerLinks(at=read.sheet.campaign),
        has_charts=page.roofline is not None,
        row=_row(read),
        page=page,
        most_changes=why_page.MOST_CHANGES,
        sheet=read.sheet,
        asked=read.sheet.count_calls(),
    )


def trace_html(read: ReadCampaign, page: int, at: str) -> str:
    """What was asked, answered and decided in one campaign."""
    return fill_page(
        "trace.html",
        ServerLinks(at=read.sheet.campaign),
        has_charts=False,
        row=_row(read),
        sheet=read.sheet,
        trace=traced.trace_page(traced.Book(*read), page=page, at=Place.parse(at)),
    )


def call_html(read: ReadCampaign, number: str) -> str:
    """One question to a model and its answer, whole."""
    sheet = read.sheet
    book = traced.Book(*read, message_shown=MOST_READ, left=4 * MOST_READ)
    return fill_page(
        "call.html",
        ServerLinks(at=sheet.campaign),
        has_charts=False,
        row=_row(read),
        sheet=sheet,
        view=traced.call_view(book, sheet.find_call(number)),
        total=sheet.count_calls(),
    )


def candidate_html(read: ReadCampaign, name: str) -> str:
    """One candidate."""
    page = pages.candidate_page(read.store, read.sheet, read.sheet.find(name))
    verdict, prepared = page.entry.verdict, read.sheet.head.first_preparation
    bounds = prepared.bounds if prepared else None
    return fill_page(
        "candidate.html",
        ServerLinks(at=read.sheet.campaign),
        has_charts=bool(verdict and verdict.measurements),
        row=_row(read),
        page=page,
        figures=[charts.timing_chart(m) for m in verdict.measurements] if verdict else [],
        roofline=roofline_chart(bounds, list_sides(page.entry)),
        bounds=bounds,
    )


def _choice(kind: str, name: str, known: dict[str, Any]) -> Any:
    if name not in known:
        raise UnknownNameError.for_name(kind, name, known)
    return known[name]


def _find_page(count: int, page: int) -> tuple[int, int]:
    """The nearest page that there is of so many rows, and how many pages there are."""
    pages = max(math.ceil(count / ROWS_PER_PAGE), 1)
    return min(max(page, 1), pages), pages


def _skip(page: int) -> int:
    return (page - 1) * ROWS_PER_PAGE
