"""Stores that something else has written to: what can be read is read, the rest is an error."""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from kernelwright.errors import KernelwrightError
from kernelwright.tests.cli import stored
from kernelwright.tests.fuzz.target import Target, edited, edits, json_edited, json_edits
from kernelwright.traces import documents
from kernelwright.traces.events import AuditOutcome, CampaignAudited, CampaignFinished
from kernelwright.traces.history import derive
from kernelwright.traces.records import Depth, Status
from kernelwright.traces.report import render_report
from kernelwright.traces.sheet import Sheet
from kernelwright.traces.store import Store
from kernelwright.traces.view import charts
from kernelwright.traces.view.links import ReportLinks
from kernelwright.workbench.home import Campaign

FILE = "kernelwright.sqlite"


@cache
def template() -> tempfile.TemporaryDirectory[str]:
    """A home with one campaign in it, its journal merged; kept for the life of the process."""
    folder = tempfile.TemporaryDirectory(prefix="kw-fuzz-")
    home = Path(folder.name) / "home"
    campaign = stored.fill(home)
    with Store.open(home) as store:
        verdict = stored.verdict(2, Status.VERIFIED, Depth.CONFIRM)
        store.append(
            campaign,
            CampaignAudited(
                candidate=verdict.candidate, outcome=AuditOutcome.HOLDS, verdicts=(verdict,)
            ),
        )
    with closing(sqlite3.connect(home / FILE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@contextmanager
def copied() -> Iterator[Path]:
    """A copy of the template's home."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        shutil.copytree(Path(template().name) / "home", home)
        yield home


def look_at_everything(home: Path) -> None:
    """Reads as every reading command does; only errors for people may come out."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress(KernelwrightError), Store.open(home, read_only=True) as store:
            for campaign in store.campaigns():
                with suppress(KernelwrightError):
                    _look_at(store, campaign)
        with suppress(KernelwrightError), Store.open(home) as store:
            for campaign in store.campaigns():
                with suppress(KernelwrightError):
                    store.append(campaign, CampaignFinished(stopped_by="seconds"))


def _look_at(store: Store, campaign: str) -> None:
    # An index and a table that were damaged apart may say different things; neither may raise.
    for seq in (store.last_seq(), store.last_seq(store.resolve(campaign))):
        assert isinstance(seq, int)
    history = derive(store.events(campaign))
    document = documents.campaign_document(history)
    json.dumps(document, allow_nan=False)
    for entry in history.entries.values():
        json.dumps(documents.entry_document(entry), allow_nan=False)
        with suppress(KernelwrightError):
            store.get_blob(entry.candidate)
    looked = Campaign(store.home, campaign, store.is_running(campaign))
    assert looked.state
    assert "<!doctype html>" in render_report(store, campaign, charts=False).lower()
    with suppress(KernelwrightError), looked.open() as (_, sheet):
        _look_at_sheet(sheet)
    measurements = (m for e in history.entries.values() for v in e.verdicts for m in v.measurements)
    json.dumps([charts.timing_chart(measurement) for measurement in measurements])


def _look_at_sheet(sheet: Sheet) -> None:
    """What stands beside the events may be damaged by itself."""
    for read in (
        lambda: charts.campaign_chart(sheet, ReportLinks().candidate),
        lambda: [each.number for each in sheet.list_entries()],
        lambda: [each.candidate for each in sheet.read_whole(sheet.entries).values()],
        lambda: [each.family for each in sheet.list_families()],
        lambda: [each.model for each in sheet.share_spending()],
        lambda: [each.number for each in sheet.list_calls()],
        lambda: [len(each.calls) for each in sheet.list_steps()],
        lambda: sheet.find_call("1").number,
    ):
        with suppress(KernelwrightError):
            json.dumps(read())


def check_rows(drawn: tuple[str, str, int, Any, list[Any]]) -> None:
    """One cell of a table holds something else."""
    table, column, row, value, changes = drawn
    with copied() as home:
        with closing(sqlite3.connect(home / FILE)) as connection:
            connection.executescript("DROP TRIGGER events_stay; DROP TRIGGER events_remain;")
            rows = connection.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
            if not rows:  # no model was asked
                return
            rowid, held = rows[row % len(rows)]
            if column == "payload" and changes:
                value = json.dumps(json_edited(json.loads(held), changes))
            with suppress(sqlite3.Error):
                connection.execute(
                    f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, rowid)
                )
                connection.commit()
        look_at_everything(home)


def check_file(drawn: tuple[str, list[Any]]) -> None:
    """The file, or one beside it, holds other bytes."""
    name, changes = drawn
    with copied() as home:
        path = home / name
        path.write_bytes(edited(path.read_bytes() if path.exists() else b"", changes))
        look_at_everything(home)


def check_blob(drawn: tuple[int, list[Any]]) -> None:
    """A source that was changed is never shown as the one that was verified."""
    number, changes = drawn
    sha = stored.IDS[number]
    with copied() as home:
        path = home / "blobs" / sha[:2] / sha[2:]
        path.write_bytes(edited(path.read_bytes(), changes))
        with Store.open(home, read_only=True) as store, suppress(KernelwrightError):
            assert store.get_blob(sha).decode() == stored.SOURCES[number]
        look_at_everything(home)


_CELLS = st.sampled_from(
    [("events", "payload")] * 6
    + [("events", column) for column in ("campaign", "at", "kind", "seq")]
    + [("campaigns", "id"), ("campaigns", "at")]
    + [("lines", column) for column in ("document", "head", "seq", "form")]
    + [("candidates", column) for column in ("outline", "number", "grade", "parents", "status")]
    + [("steps", column) for column in ("seqs", "place", "number")]
    + [("calls", column) for column in ("row", "step", "call", "usd")]
)
_HELD = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.binary(max_size=12),
    st.text(max_size=12),
    st.sampled_from(("../../x", "{}", "[" * 50_000, "NaN", "")),
)

TARGETS = (
    Target(
        "store rows",
        st.tuples(_CELLS, st.integers(0, 99), _HELD, json_edits()).map(
            lambda drawn: (*drawn[0], *drawn[1:])
        ),
        check_rows,
        25,
    ),
    Target(
        "store files",
        st.tuples(st.sampled_from([FILE] * 3 + [f"{FILE}-wal", f"{FILE}-shm"]), edits()),
        check_file,
        20,
    ),
    Target("store blobs", st.tuples(st.integers(0, 2), edits()), check_blob, 10),
)
