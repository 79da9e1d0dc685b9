# SPDX-License-Identifier: Apache-2.0
"""`list`, `show`, `view`, `report`: reading what campaigns left in the store."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .. import extras
from ..errors import UsageError
from ..traces import names
from . import common

if TYPE_CHECKING:
    from ..config import Config
    from ..traces.fold import Entry
    from ..traces.history import History
    from ..traces.store import Store

CampaignArgument = Annotated[
    str, typer.Argument(metavar="ID", help="A campaign: its id, a unique part of it, or @last.")
]


def list_campaigns(
    ctx: typer.Context, home: common.HomeOption = None, as_json: common.JsonOption = False
) -> None:
    """List the campaigns, newest first."""
    config = common.load(ctx, home=home).config
    rows = []
    if _has_store(config):
        with reading(config) as store:
            rows = [_row(store, campaign) for campaign in store.campaigns()]
    if as_json:
        common.emit({"home": str(config.home), "campaigns": rows})
    elif rows:
        _print_list(config, rows)
    else:
        prose = common.console(config)
        prose.print(f"no campaigns in {config.home}; `kernelwright run PROBLEM` makes one")


def show(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A campaign, or ID@best or ID/CANDIDATE.")
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
    from ..traces.history import derive
    from . import documents

    config = common.load(ctx, home=home).config
    if calls or call is not None:
        if source or (calls and call is not None):
            raise UsageError(
                "--source, --calls and --call exclude each other", hint="give one of them"
            )
        _show_calls(config, name, call, as_json=as_json)
        return
    with reading(config) as store:
        found = names.find(store, name)
        history = derive(store.events(found.campaign))
        if found.candidate is not None:
            entry = history.entries[found.candidate]
            text = store.get_blob(entry.candidate).decode("utf-8", "replace")
            if source:
                sys.stdout.write(text)
            elif as_json:
                common.emit(_candidate_document(entry, text))
            else:
                _print_candidate(config, entry, is_full=every_check)
            return
        if source:
            raise UsageError(
                "--source needs a candidate", hint=f"kernelwright show {name}@best --source"
            )
        is_running = store.is_running(found.campaign)
        state = documents.state_of(history, is_running=is_running)
        if as_json:
            entries = [documents.entry_document(entry) for entry in history.entries.values()]
            document = documents.campaign_document(history, is_running=is_running)
            common.emit({**document, "state": state, "candidates": entries})
        else:
            _print_campaign(config, history, state, is_running=is_running)


def _show_calls(config: Config, name: str, call: str | None, *, as_json: bool) -> None:
    from . import calls

    with reading(config) as store:
        found = names.find(store, name)
        if call is not None:
            calls.show_one(store, found.campaign, call, as_json=as_json)
        else:
            calls.show_all(config, store, found, as_json=as_json)


def view(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Begin at this campaign or candidate.")
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 takes a free one.", min=0, max=65535)] = 8765,
    open_browser: Annotated[bool, typer.Option("--open", help="Open a browser.")] = False,
    home: common.HomeOption = None,
) -> None:
    """Look at the campaigns in a web browser, while they run or afterwards."""
    extras.require("view", "the viewer")
    from ..traces.view.links import ServerLinks
    from ..traces.view.server import serve

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
            help="The file; - for stdout [default: report-ID.html].",
            show_default=False,
        ),
    ] = None,
    home: common.HomeOption = None,
) -> None:
    """Write a campaign as one HTML file that needs nothing else."""
    extras.require("view", "the report")
    from ..traces.report import render_report

    config = common.load(ctx, home=home).config
    with reading(config) as store:
        found = names.find(store, campaign).campaign
        text = render_report(store, found)
    if output is not None and str(output) == "-":
        sys.stdout.write(text)
        return
    path = output or Path(f"report-{found}.html")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"the report cannot be written to {path}: {error.strerror}", hint="name another with -o"
        ) from error
    common.put(str(path))


def _has_store(config: Config) -> bool:
    from ..traces.database import FILE_NAME

    return (config.home / FILE_NAME).exists()


def reading(config: Config) -> Store:
    from ..traces.store import Store

    return Store.open(config.home, read_only=True)


def _row(store: Store, campaign: str) -> dict[str, Any]:
    from ..traces.history import derive
    from ..traces.transcript import transcribe
    from . import documents

    events = store.events(campaign)
    history = derive(events)
    is_running = store.is_running(campaign)
    document = documents.campaign_document(history, is_running=is_running)
    state = documents.state_of(history, is_running=is_running)
    is_estimated = transcribe(events).is_estimated
    more = {"started_at": history.started_at, "state": state, "is_estimated": is_estimated}
    return {**document, **more}


def _print_list(config: Config, rows: list[dict[str, Any]]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    has_spending = any(row["tokens"] for row in rows)
    spent = ("tokens", "usd") if has_spending else ()
    headings = ("campaign", "problem", "workload", "target", "state", "evaluated", "best")
    for heading in (*headings, *spent, "began"):
        table.add_column(heading, no_wrap=heading in ("campaign", "began"))
    for row in rows:
        table.add_row(
            row["campaign"],
            row["problem"],
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


def _print_campaign(config: Config, history: History, state: str, *, is_running: bool) -> None:
    from rich import box
    from rich.table import Table

    from ..traces.audits import audit_sentence
    from .summary import winner_lines
    from .verdicts import brief, style_of

    started = history.started
    common.put(f"{history.campaign}  {started.problem} / {started.workload} on {started.target}")
    common.put(f"{state}; {history.evaluated} evaluated; {started.model} + {started.judge_model}")
    for line in winner_lines(history, is_running=is_running):
        common.put(line)
    for at, audit in history.audits[-1:]:
        common.put(f"audited {_moment(at)}: {audit_sentence(history, audit)}")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("#", "candidate", "status", "family", "how", "result"):
        table.add_column(heading, no_wrap=heading != "result")
    for entry in history.entries.values():
        verdict = entry.verdict
        table.add_row(
            str(entry.number),
            entry.candidate[:10],
            str(verdict.status) if verdict else ("cut off" if entry.cut_off else "proposed"),
            entry.family,
            entry.operator,
            brief(verdict) if verdict else "",
            style=style_of(verdict.status) if verdict else "dim",
        )
    common.console(config, is_stderr=False).print(table)


def _candidate_document(entry: Entry, text: str) -> dict[str, Any]:
    from . import documents

    return {
        **documents.entry_document(entry),
        "verdicts": [documents.verdict_document(verdict) for verdict in entry.verdicts],
        "advice": entry.advice.model_dump(mode="json") if entry.advice else None,
        "source": text,
    }


def _print_candidate(config: Config, entry: Entry, *, is_full: bool) -> None:
    from .summary import print_verdict

    knobs = " ".join(f"{name}={value}" for name, value in entry.knobs.items())
    common.put(f"{entry.candidate}  #{entry.number}  {entry.family}  {knobs}".rstrip())
    common.put(f"{entry.operator}; {entry.note}".rstrip("; "))
    if entry.verdict is not None:
        print_verdict(common.console(config, is_stderr=False), entry.verdict, is_full=is_full)
    if entry.advice is not None:
        common.put(f"judge: {entry.advice.bottleneck}. {entry.advice.change}")
