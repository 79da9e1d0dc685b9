# SPDX-License-Identifier: Apache-2.0
"""`list`, `show`, `view`, `report`: reading what campaigns left in the store."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import extras
from ..errors import NoStoreError, UsageError
from ..traces import names
from . import common
from .completing import complete_campaign

if TYPE_CHECKING:
    from ..config import Config
    from ..traces.fold import Entry
    from ..traces.lines import Line
    from ..traces.shapes import CandidateDocument
    from ..traces.store import Store
    from ..workbench.candidate import Candidate
    from ..workbench.home import Campaign
    from .shapes import ListDocument, ShowDocument


class ReportForm(StrEnum):
    """What a report is written as; its value is the file's ending."""

    HTML = "html"
    MD = "md"


CampaignArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="A campaign: its id, a unique part of it, or @last.",
        autocompletion=complete_campaign,
    ),
]


def list_campaigns(
    ctx: typer.Context, home: common.HomeOption = None, as_json: common.JsonOption = False
) -> None:
    """List the campaigns, newest first."""
    from .reindex import hint_stale

    config = common.load(ctx, home=home).config
    rows = []
    # A home that nobody used yet has no campaigns; that is no error here.
    with suppress(NoStoreError), reading(config) as store:
        rows = [_row(line, store.is_running(line.campaign)) for line in store.lines()]
        hint_stale(store, config)
    if as_json:
        document: ListDocument = {"home": str(config.home), "campaigns": rows}
        common.emit(document)
    elif rows:
        _print_list(config, rows)
    else:
        prose = common.console(config)
        prose.print(f"no campaigns in {config.home}; `kernelwright run PROBLEM` makes one")


def show(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="A campaign, or ID@best or ID/CANDIDATE.",
            autocompletion=complete_campaign,
        ),
    ],
    source: Annotated[
        bool, typer.Option("--source", help="Print the candidate's source and nothing else.")
    ] = False,
    every_check: common.AllOption = False,
    calls: Annotated[
        bool, typer.Option("--calls", help="What was asked of models, and what it cost.")
    ] = False,
    call: Annotated[
        str | None,
        typer.Option(
            "--call",
            metavar="N",
            help="One prompt and its reply, whole: by number, place or key.",
            show_default=False,
        ),
    ] = None,
    home: common.HomeOption = None,
    as_json: common.JsonOption = False,
) -> None:
    """Show a campaign, one of its candidates, or its calls of models."""
    from ..workbench.home import Home

    config = common.load(ctx, home=home).config
    if (source and (calls or call is not None)) or (calls and call is not None):
        raise UsageError("--source, --calls and --call exclude each other", hint="give one of them")
    wanted = names.parse(name)
    campaign = Home(config.home)[wanted.campaign]
    if calls or call is not None:
        _show_calls(config, campaign, wanted.candidate, call, as_json=as_json)
    elif wanted.candidate is not None:
        candidate = campaign[wanted.candidate]
        if source:
            sys.stdout.write(candidate.source)
        else:
            _show_candidate(config, candidate, as_json=as_json, is_full=every_check)
    elif source:
        raise UsageError(
            "--source needs a candidate", hint=f"kernelwright show {name}@best --source"
        )
    else:
        _show_campaign(config, campaign, as_json=as_json, is_full=every_check)


def _show_calls(
    config: Config, campaign: Campaign, name: str | None, call: str | None, *, as_json: bool
) -> None:
    from . import calls

    with campaign.open() as (store, sheet):
        candidate = sheet.find(name) if name is not None else None
        if call is None:
            calls.show_all(config, sheet, candidate, as_json=as_json)
        else:
            calls.show_one(store, sheet, call, as_json=as_json)


def _show_campaign(config: Config, campaign: Campaign, *, as_json: bool, is_full: bool) -> None:
    from ..traces import documents

    if not as_json:
        _print_campaign(config, campaign, is_full=is_full)
        return
    with campaign.open() as (store, sheet):
        row = _row(store.line(campaign.id), campaign.is_running)
        entries = [documents.entry_document(entry) for entry in sheet.list_entries()]
    document: ShowDocument = {**row, "candidates": entries}  # type: ignore[typeddict-item]
    common.emit(document)


def _show_candidate(config: Config, candidate: Candidate, *, as_json: bool, is_full: bool) -> None:
    if as_json:
        common.emit(_candidate_document(candidate))
    else:
        _print_candidate(config, candidate, is_full=is_full)


def view(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[ID|FILE]",
            help="Begin at this campaign or candidate, or open a bundle.",
            autocompletion=complete_campaign,
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond loopback with a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 8765,
    open_browser: Annotated[bool, typer.Option("--open", help="Open a browser.")] = False,
    home: common.HomeOption = None,
) -> None:
    """Look at the campaigns in a web browser, while they run or afterwards.

    A file that `kernelwright bundle` made is opened by itself.
    """
    extras.require("view", "the viewer")
    from ..traces.bundling import is_bundle, unpack
    from ..traces.view.links import ServerLinks
    from ..traces.view.server import serve

    if name is not None and is_bundle(Path(name)):
        with tempfile.TemporaryDirectory(prefix="kernelwright-bundle-") as folder:
            campaign = unpack(Path(name), Path(folder))
            path = ServerLinks(campaign).campaign(campaign)
            serve(Path(folder), host, port, open_browser, path)
        return
    config = common.load(ctx, home=home).config
    path = ServerLinks().home()
    if name is not None:
        with reading(config) as store:
            found = names.find(store, name)
        links = ServerLinks(found.campaign)
        path = links.campaign(found.campaign)
        if found.candidate is not None:
            path = links.candidate(found.candidate)
    serve(config.home, host, port, open_browser, path)


def report(
    ctx: typer.Context,
    campaign: CampaignArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            help="The file; - for stdout [default: report-ID.html, or .md].",
            show_default=False,
        ),
    ] = None,
    form: Annotated[
        ReportForm, typer.Option("--format", help="A page, or Markdown for a pull request.")
    ] = ReportForm.HTML,
    charts: Annotated[
        bool, typer.Option("--charts/--no-charts", help="Whether a page has charts.")
    ] = True,
    home: common.HomeOption = None,
) -> None:
    """Write a campaign as one file that needs nothing else."""
    extras.require("view", "the report")
    from ..workbench.home import Home

    wanted = names.parse(campaign)
    found = Home(common.load(ctx, home=home).config.home)[wanted.campaign]
    if wanted.candidate is not None:
        # It is refused where there is none; the report is of the whole campaign.
        with found.open() as (_, sheet):
            sheet.find(wanted.candidate)
    as_markdown = form is ReportForm.MD
    if output is not None and str(output) == "-":
        sys.stdout.write(found.render(as_markdown=as_markdown, charts=charts))
    else:
        path = output or Path(f"report-{found.id}.{form.value}")
        common.put(str(found.report(path, as_markdown=as_markdown, charts=charts)))


def reading(config: Config) -> Store:
    from ..traces.store import Store

    return Store.open(config.home, read_only=True)


def _row(line: Line, is_running: bool) -> dict[str, Any]:
    told = line.document
    why = None if is_running else told["why_no_winner"]
    return {**told, "why_no_winner": why, "state": line.state(is_running=is_running).told}


def _print_list(config: Config, rows: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    has_spending = any(row["tokens"] for row in rows)
    has_files = any(row["file"] for row in rows)
    spent = ("tokens", "usd") if has_spending else ()
    files = ("file",) if has_files else ()
    headings = ("campaign", "problem", *files, "workload", "target", "state", "evaluated", "best")
    for heading in (*headings, *spent, "began"):
        table.add_column(heading, no_wrap=heading in ("campaign", "began"))
    for row in rows:
        table.add_row(
            row["campaign"],
            row["problem"],
            *((escape(row["file"]),) if has_files else ()),
            row["workload"],
            row["target"],
            row["state"],
            str(row["evaluated"]),
            _headline(row["best"], row["leader"]),
            *(_format_spending(row) if has_spending else ()),
            _moment(row["started_at"]),
        )
    common.console(config, is_stderr=False).print(table)


def _format_spending(row: dict[str, Any]) -> tuple[str, str]:
    """Tokens and dollars; empty for a campaign that asked no model."""
    from ..traces.wording import tokens, usd

    if not row["tokens"]:
        return "", ""
    is_estimated = row["is_estimated"]
    return tokens(row["tokens"], is_estimated), usd(row["usd"], is_estimated)


def _moment(at: float) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    except (ValueError, OverflowError, OSError):
        return "-"


def _headline(best: dict[str, Any] | None, leader: dict[str, Any] | None) -> str:
    from ..traces.wording import micros, ratio

    if best is None:
        return f"{micros(leader['modelled_us'])} modelled" if leader else "-"
    speedup = best["speedup"].get(best["best_baseline"])
    if speedup is None:
        return str(best["status"])
    return f"{ratio(speedup['median'])} vs {best['best_baseline']}"


MOST_ROWS = 200
"""Candidates that `show` prints of a campaign, unless all are asked for."""


def _print_campaign(config: Config, campaign: Campaign, *, is_full: bool) -> None:
    from .summary import winner_lines

    with campaign.open() as (_, sheet):
        head = sheet.head
        best = sheet.read_whole([head.champion])[head.champion] if head.champion else None
        # Of too many those that rank first, as the lists of the viewer do.
        is_long = head.proposed > MOST_ROWS and not is_full
        entries = sheet.list_entries(
            sort="speedup" if is_long else "number", most=MOST_ROWS if is_long else -1
        )
    started = head.started
    common.put(f"{campaign.id}  {started.problem} / {started.workload} on {started.target}")
    common.put(f"{campaign.state}; {head.evaluated} evaluated; {started.brains}")
    for line in winner_lines(head, best, is_running=campaign.is_running):
        common.put(line)
    if head.audited_at is not None:
        common.put(f"audited {_moment(head.audited_at)}: {head.audit}")
    _print_entries(config, entries)
    if is_long:
        left = head.proposed - len(entries)
        common.put(f"the fastest {len(entries)}; --all prints {left} more")


def _print_entries(config: Config, entries: Sequence[Entry]) -> None:
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from .verdicts import brief, style_of

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("#", "candidate", "status", "family", "how", "result"):
        table.add_column(heading, no_wrap=heading != "result")
    for entry in entries:
        verdict = entry.verdict
        table.add_row(
            str(entry.number),
            entry.candidate[:10],
            str(verdict.status) if verdict else ("cut off" if entry.cut_off else "proposed"),
            entry.family,
            escape(entry.how),
            brief(verdict) if verdict else "",
            style=style_of(verdict.status) if verdict else "dim",
        )
    common.console(config, is_stderr=False).print(table)


def _candidate_document(candidate: Candidate) -> CandidateDocument:
    from ..traces import documents

    entry = candidate.entry
    assert entry is not None, "it is of a campaign"
    return {
        **documents.entry_document(entry),
        "verdicts": [documents.verdict_document(verdict) for verdict in entry.verdicts],
        "advice": entry.advice.model_dump(mode="json") if entry.advice else None,
        "source": candidate.source,
    }


def _print_candidate(config: Config, candidate: Candidate, *, is_full: bool) -> None:
    from .summary import print_verdict

    entry = candidate.entry
    assert entry is not None, "it is of a campaign"
    knobs = " ".join(f"{name}={value}" for name, value in entry.knobs.items())
    common.put(f"{entry.candidate}  #{entry.number}  {entry.family}  {knobs}".rstrip())
    common.put(f"{entry.how}; {entry.note}".rstrip("; "))
    if entry.verdict is not None:
        print_verdict(common.console(config, is_stderr=False), entry.verdict, is_full=is_full)
    if entry.advice is not None:
        common.put(f"judge: {entry.advice.bottleneck}. {entry.advice.change}")
