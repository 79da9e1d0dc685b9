"""What stands beside a campaign's events is what they tell, after each of them and however made."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import StorageError, UnknownNameError, UsageError
from kernelwright.tests.traces.store_parts import proposed
from kernelwright.traces.database import SCHEMA_VERSION
from kernelwright.traces.events import CampaignStarted, Event
from kernelwright.traces.head import head_of
from kernelwright.traces.history import derive, find_candidate
from kernelwright.traces.index import grade
from kernelwright.traces.outline import outline
from kernelwright.traces.records import Status
from kernelwright.traces.sheet import SORTS, Sheet
from kernelwright.traces.store import Store
from kernelwright.traces.transcript import transcribe
from kernelwright.traces.view.reader import CampaignReader

FILE = "kernelwright.sqlite"


@pytest.fixture(params=["sample", "asked"])
def written(request: pytest.FixtureRequest) -> Any:
    """A campaign in a store: without models and with them."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def events(written: Any) -> list[Event]:
    with Store.open(written.home, read_only=True) as store:
        return store.events(written.campaign)


@pytest.fixture(params=["stored", "folded"])
def sheet(request: pytest.FixtureRequest, written: Any, events: list[Event]) -> Iterator[Sheet]:
    if request.param == "folded":
        yield Sheet.of_events(events)
        return
    with Store.open(written.home, read_only=True) as store, store.sheet(written.campaign) as read:
        yield read


def check(sheet: Sheet, events: list[Event]) -> None:
    """That the sheet tells what the events do."""
    history, transcript = derive(events), transcribe(events)
    assert sheet.head == head_of(history)
    assert sheet.list_entries() == [outline(entry) for entry in history.entries.values()]
    whole = sheet.read_whole(history.entries)
    assert whole == {name: replace(entry, fallen=None) for name, entry in history.entries.items()}
    assert [(b.candidate, b.parents) for b in sheet.list_branches()] == [
        (entry.candidate, entry.parents) for entry in history.entries.values()
    ]
    assert sheet.list_calls() == [call.row for call in transcript.calls.values()]
    assert sheet.count_calls() == len(transcript.calls)
    assert sheet.list_steps() == list(transcript.steps.values())
    assert sheet.count_steps() == len(transcript.steps)


def test_after_each_event_the_sheet_is_what_the_events_tell(
    events: list[Event], tmp_path: Path
) -> None:
    first, *rest = events
    with Store.open(tmp_path / "copy") as store:
        assert isinstance(first.payload, CampaignStarted)
        campaign = store.create(first.payload)
        for event in rest:
            store.append(campaign, event.payload)
            with store.sheet(campaign) as sheet:
                check(sheet, store.events(campaign))
        assert not store.stale()


def test_a_sheet_is_the_same_however_it_was_made(sheet: Sheet, events: list[Event]) -> None:
    check(sheet, events)


def test_what_is_written_anew_is_what_stood_there(written: Any, events: list[Event]) -> None:
    with Store.open(written.home) as store:
        before = _dump(written.home)
        assert list(store.rebuild_index([written.campaign])) == [written.campaign]
        assert _dump(written.home) == before
        with store.sheet(written.campaign) as sheet:
            check(sheet, events)


def _dump(home: Path) -> dict[str, list[Any]]:
    with closing(sqlite3.connect(home / FILE)) as connection:
        return {
            table: sorted(connection.execute(f"SELECT * FROM {table}").fetchall())
            for table in ("lines", "candidates", "steps", "calls")
        }


@pytest.mark.parametrize("sort", list(SORTS))
def test_lists_are_sorted_cut_and_chosen(sheet: Sheet, events: list[Event], sort: str) -> None:
    entries = list(derive(events).entries.values())
    keys = {
        "number": lambda entry: entry.number,
        "speedup": lambda entry: (*grade(entry.verdict), entry.number),
        "status": lambda entry: (str(entry.verdict.status) if entry.verdict else "~", entry.number),
        "family": lambda entry: (entry.family, entry.number),
    }
    expected = [entry.candidate for entry in sorted(entries, key=keys[sort])]
    assert [entry.candidate for entry in sheet.list_entries(sort=sort)] == expected
    assert [e.candidate for e in sheet.list_entries("", sort, 1, 2)] == expected[1:3]
    for status in Status:
        found = sheet.list_entries(status.value, sort)
        assert len(found) == sheet.count(status.value)
        assert {entry.candidate for entry in found} == {
            entry.candidate for entry in entries if entry.verdict and entry.verdict.status is status
        }


def test_shares_of_spending_are_sums_of_its_calls(sheet: Sheet, events: list[Event]) -> None:
    history, calls = derive(events), transcribe(events).calls.values()
    found = defaultdict(list)
    for call in calls:
        found[call.requested.model, call.requested.purpose].append(call)
    shares = sheet.share_spending()
    assert {(s.model, s.purpose) for s in shares} == set(found)
    for share in shares:
        mine = found[share.model, share.purpose]
        assert share.calls == len(mine)
        assert share.tokens == sum(call.tokens for call in mine)
        assert share.usd == pytest.approx(sum(call.usd or 0.0 for call in mine))
        assert share.seconds == pytest.approx(sum(call.seconds for call in mine))
        assert share.is_estimated == any(call.is_estimated for call in mine)
    assert sum(share.tokens for share in shares) == sheet.head.spent.tokens == history.tokens


def test_names_mean_the_same_as_to_the_fold(sheet: Sheet, events: list[Event]) -> None:
    history = derive(events)
    for entry in history.entries.values():
        for name in (str(entry.number), entry.candidate, entry.candidate[:20]):
            assert sheet.find(name) == find_candidate(history, name)
    assert sheet.find("@best") == history.champion
    for wrong in ("99999", "9" * 40, "zz", "", "%", "_"):
        with pytest.raises((UnknownNameError, UsageError)) as theirs:
            find_candidate(history, wrong)
        with pytest.raises(type(theirs.value)) as ours:
            sheet.find(wrong)
        assert str(ours.value) == str(theirs.value)


def test_neighbours_and_children(sheet: Sheet, events: list[Event]) -> None:
    entries = list(derive(events).entries.values())
    for at, entry in enumerate(entries):
        before, after = sheet.find_neighbours(entry)
        assert (before and before.candidate) == (entries[at - 1].candidate if at else None)
        assert (after and after.candidate) == (
            entries[at + 1].candidate if at + 1 < len(entries) else None
        )
        assert [child.candidate for child in sheet.list_children(entry.candidate)] == [
            each.candidate for each in entries if entry.candidate in each.parents
        ]
    assert [entry.candidate for entry in sheet.thin_entries(len(entries))] == [
        entry.candidate for entry in entries
    ]
    few = sheet.thin_entries(2)
    assert {crowned.candidate for crowned in sheet.head.crowned} <= {e.candidate for e in few}
    assert len(few) <= 2 + len(sheet.head.crowned)


def test_a_call_has_many_names(asked: Any) -> None:
    with Store.open(asked.home, read_only=True) as store, store.sheet(asked.campaign) as sheet:
        third = list(transcribe(store.events(asked.campaign)).calls)[2]
        for name in ("3", "1/0/judge repair/0", third, third[:16]):
            assert sheet.find_call(name).number == 3
        with pytest.raises(UnknownNameError, match="99"):
            sheet.find_call("99")


@pytest.mark.parametrize("version", [1, 2])
def test_a_store_of_an_earlier_version_has_sheets_and_gets_an_index(
    version: int, written: Any, events: list[Event], new_campaign: CampaignStarted
) -> None:
    make_earlier(written.home, version)
    with Store.open(written.home, read_only=True) as store:
        with store.sheet(written.campaign) as sheet:
            check(sheet, events)
        assert store.stale() == [written.campaign]
    with Store.open(written.home) as store:
        store.create(new_campaign)
        with store.sheet(written.campaign) as sheet:
            check(sheet, events)
        assert list(store.rebuild_index(store.stale())) == [written.campaign]
        assert not store.stale()
        with store.sheet(written.campaign) as sheet:
            check(sheet, events)
        store.delete(written.campaign)
        assert store.campaigns() == [line.campaign for line in store.lines()]
    with closing(sqlite3.connect(written.home / FILE)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)


def make_earlier(home: Path, version: int) -> None:
    """A store as versions 1 (without lines) and 2 (without rows) left it."""
    with closing(sqlite3.connect(home / FILE)) as connection, connection:
        for table in ("candidates", "steps", "calls"):
            connection.execute(f"DROP TABLE {table}")
        if version == 1:
            connection.execute("DROP TABLE lines")
        else:
            connection.execute("ALTER TABLE lines DROP COLUMN head")
            connection.execute("UPDATE lines SET form = 1")
        connection.execute(f"PRAGMA user_version = {version}")


def test_who_goes_on_with_an_old_campaign_indexes_all_of_it(
    written: Any, events: list[Event]
) -> None:
    make_earlier(written.home, 2)
    with Store.open(written.home) as store:
        store.append(written.campaign, proposed(99))
        assert not store.stale()
        with store.sheet(written.campaign) as sheet:
            check(sheet, store.events(written.campaign))
    assert len(events) + 1 == len(store_events(written))


def store_events(written: Any) -> list[Event]:
    with Store.open(written.home, read_only=True) as store:
        return store.events(written.campaign)


def test_a_damaged_head_is_told_by_its_events(written: Any, events: list[Event]) -> None:
    with closing(sqlite3.connect(written.home / FILE)) as connection, connection:
        connection.execute("UPDATE lines SET head = '{'")
    with Store.open(written.home, read_only=True) as store, store.sheet(written.campaign) as sheet:
        check(sheet, events)


def test_who_reads_at_once_sees_one_whole_campaign(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    reader = CampaignReader(tmp_path)
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)

        def look(_: int) -> None:
            with reader.campaign(campaign) as (_, sheet):
                numbers = [entry.number for entry in sheet.list_entries()]
                assert numbers == list(range(1, sheet.head.proposed + 1))
                assert sheet.head.last_seq == 1 + len(numbers)

        with ThreadPoolExecutor(4) as pool:
            looks = []
            for number in range(1, 40):
                store.append(campaign, proposed(number))
                looks += [pool.submit(look, number) for _ in range(3)]
            for each in looks:
                each.result()


def test_events_that_make_no_sense_are_told_each_time(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    reader = CampaignReader(tmp_path)
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        with reader.campaign(campaign):
            pass
        store.append(campaign, new_campaign)
    for _ in range(2):
        with (
            pytest.raises(StorageError, match="starts a second time"),
            reader.campaign(campaign),
        ):
            pass


def test_a_page_of_an_old_campaign_is_folded_once(written: Any, monkeypatch: Any) -> None:
    make_earlier(written.home, 1)
    reader, folded = CampaignReader(written.home), []
    whole = Store.events

    def count(self: Store, campaign: str, after: int = 0) -> list[Event]:
        folded.append(campaign)
        return whole(self, campaign, after)

    monkeypatch.setattr(Store, "events", count)
    for _ in range(3):
        with reader.campaign(written.campaign) as (_, sheet):
            assert sheet.head.proposed
    assert folded == [written.campaign]
