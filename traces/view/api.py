# SPDX-License-Identifier: Apache-2.0
"""The JSON side of the viewer: stored records as they are, sources as text, tables as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response

from ..conversation import call_row, whole_call
from ..events import Event
from ..fold import Entry
from ..sheet import Sheet
from ..store import Store
from ..transcript import CallRow
from . import pages
from .home_page import HomeRow, summarize
from .reader import CampaignReader

CSV_COLUMNS = (
    "number",
    "candidate",
    "status",
    "family",
    "operator",
    "credited",
    "median",
    "low",
    "high",
    "median_us",
    "roofline",
    "parents",
    "screen_estimate",
    "modelled_us",
)
CALL_COLUMNS = (
    "number",
    "call",
    "place",
    "purpose",
    "model",
    "attempts",
    "failures",
    "outcome",
    "tokens",
    "usd",
    "is_estimated",
    "seconds",
    "candidate",
    "missing",
)


def api_router(reader: CampaignReader) -> APIRouter:
    """The routes below /api. What names a candidate comes last, since it would match any word."""
    router = APIRouter()
    _add_campaigns(router, reader)
    _add_tables(router, reader)
    _add_calls(router, reader)
    _add_candidates(router, reader)
    return router


def _add_campaigns(router: APIRouter, reader: CampaignReader) -> None:
    @router.get("/campaigns")
    def campaigns() -> dict[str, Any]:
        with reader.store() as store:
            rows = list_rows(store)
        return {"schema_version": 1, "campaigns": [summarize(row) for row in rows]}

    @router.get("/c/{campaign}")
    def campaign(campaign: str) -> dict[str, Any]:
        with reader.campaign(campaign) as (store, sheet):
            head = sheet.head
            return summarize(
                HomeRow(store.line(head.campaign), store.is_running(head.campaign))
            ) | {
                "schema_version": 1,
                "started": head.started.model_dump(mode="json"),
                "funnel": {step.name: step.count for step in pages.funnel(head)},
            }

    @router.get("/c/{campaign}/events")
    def events(campaign: str, after: int = 0) -> list[Event]:
        with reader.store() as store:
            return store.events(store.resolve(campaign), after)


def _add_tables(router: APIRouter, reader: CampaignReader) -> None:
    @router.get("/c/{campaign}/candidates.csv")
    def candidates_csv(campaign: str) -> Response:
        with reader.campaign(campaign) as (_, sheet):
            return _csv(table_of(sheet.list_entries()), sheet.campaign)

    @router.get("/c/{campaign}/calls.csv")
    def calls_csv(campaign: str) -> Response:
        with reader.campaign(campaign) as (_, sheet):
            return _csv(calls_table(sheet.list_calls()), f"{sheet.campaign}-calls")


def _add_calls(router: APIRouter, reader: CampaignReader) -> None:
    @router.get("/c/{campaign}/calls")
    def calls(campaign: str) -> dict[str, Any]:
        with reader.campaign(campaign) as (_, sheet):
            rows = [call_row(call) for call in sheet.list_calls()]
        return {"schema_version": 1, "calls": rows}

    @router.get("/c/{campaign}/calls/{number}")
    def call(campaign: str, number: str) -> dict[str, Any]:
        with reader.campaign(campaign) as (store, sheet):
            return {"schema_version": 1, **whole_call(store, sheet.find_call(number))}


def _add_candidates(router: APIRouter, reader: CampaignReader) -> None:
    @router.get("/c/{campaign}/{candidate}")
    def candidate(campaign: str, candidate: str) -> dict[str, Any]:
        with reader.campaign(campaign) as (_, sheet):
            return describe_stored(_find_whole(sheet, candidate))

    @router.get("/c/{campaign}/{candidate}/samples.csv")
    def samples_csv(campaign: str, candidate: str) -> Response:
        with reader.campaign(campaign) as (_, sheet):
            entry = _find_whole(sheet, candidate)
            return _csv(samples_of(entry), f"{sheet.campaign}-{entry.number}-samples")

    @router.get("/c/{campaign}/{candidate}/source")
    def source(campaign: str, candidate: str) -> PlainTextResponse:
        with reader.campaign(campaign) as (store, sheet):
            name = sheet.find(candidate)
            return PlainTextResponse(store.get_blob(name).decode(errors="replace"))


def _find_whole(sheet: Sheet, candidate: str) -> Entry:
    name = sheet.find(candidate)
    return sheet.read_whole([name])[name]


def _csv(text: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="kernelwright-{name}.csv"'}
    return Response(text, media_type="text/csv", headers=headers)


def list_rows(store: Store) -> list[HomeRow]:
    """A row of every campaign, newest first."""
    return [HomeRow(line, store.is_running(line.campaign)) for line in store.lines()]


def describe_stored(entry: Entry) -> dict[str, Any]:
    """A candidate with its verdicts as they are stored."""
    return {
        "schema_version": 1,
        "candidate": entry.candidate,
        "number": entry.number,
        "language": entry.language,
        "family": entry.family,
        "knobs": entry.knobs,
        "parents": list(entry.parents),
        "operator": entry.operator,
        "note": entry.note,
        "strategy": entry.strategy,
        "techniques": list(entry.techniques),
        "notes": list(entry.notes),
        "at": entry.at,
        "cut_off": entry.cut_off,
        "verdicts": [verdict.model_dump(mode="json") for verdict in entry.verdicts],
        "advice": entry.advice.model_dump(mode="json") if entry.advice else None,
    }


def table_of(entries: Iterable[Entry]) -> str:
    """The candidates as CSV."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(CSV_COLUMNS)
    for entry in entries:
        verdict = entry.verdict
        measurement = verdict.measurement if verdict else None
        speedup = measurement.headline if measurement else None
        writer.writerow(
            [
                entry.number,
                entry.candidate,
                verdict.status.value if verdict else "",
                _cell(entry.family),
                _cell(entry.operator),
                _figure(verdict.credited if verdict else None),
                speedup.median if speedup else "",
                speedup.low if speedup else "",
                speedup.high if speedup else "",
                measurement.candidate.median_us if measurement else "",
                measurement.roofline if measurement and measurement.roofline else "",
                " ".join(entry.parents),
                verdict.screen_estimate.median if verdict and verdict.screen_estimate else "",
                _figure(verdict.modelled_us if verdict else None),
            ]
        )
    return out.getvalue()


def samples_of(entry: Entry) -> str:
    """Every sample that is kept of a candidate and of what it was held against, as CSV."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(("protocol", "workload", "side", "sample", "us"))
    for verdict in entry.verdicts:
        for measurement in verdict.measurements:
            sides = {"candidate": measurement.candidate, **measurement.baselines}
            for side, timing in sides.items():
                for number, sample in enumerate(timing.samples_us):
                    row = (verdict.protocol.value, measurement.workload, side, number, sample)
                    writer.writerow(row)
    return out.getvalue()


def _figure(value: float | None) -> float | str:
    return "" if value is None else value


def calls_table(calls: Iterable[CallRow]) -> str:
    """The calls as CSV."""
    out = io.StringIO()
    writer = csv.DictWriter(out, CALL_COLUMNS, extrasaction="ignore")
    writer.writeheader()
    for call in calls:
        row = call_row(call)
        row["usd"] = "unknown" if row["usd"] is None else row["usd"]
        writer.writerow({k: _cell(v) if isinstance(v, str) else v for k, v in row.items()})
    return out.getvalue()


def _cell(text: str) -> str:
    # Spreadsheets run a cell that begins like a formula; these words come from a model.
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
