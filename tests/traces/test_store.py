"""The store in SQLite: times, ids, and a table that is only added to."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from kernelwright.tests.traces.store_parts import proposed
from kernelwright.traces.events import CampaignStarted
from kernelwright.traces.store import Store


def test_an_event_carries_the_time_at_which_it_was_written(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    times = iter([10.0, 11.5, 12.0])
    with Store.open(tmp_path / "home", clock=lambda: next(times)) as store:
        campaign = store.create(new_campaign)
        written = [store.append(campaign, proposed(n)) for n in (1, 2)]
        assert [e.at for e in store.events(campaign)] == [10.0, 11.5, 12.0]
    assert [e.at for e in written] == [11.5, 12.0]


def test_ids_sort_by_time_and_are_unique(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    times = iter([1_700_000_000.0 + 0.5 * i for i in range(20)])
    with Store.open(tmp_path, clock=lambda: next(times)) as store:
        ids = [store.create(new_campaign) for _ in range(20)]
        assert store.campaigns() == ids[::-1]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{7}", name) for name in ids)


def test_events_can_be_neither_changed_nor_deleted(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        store.create(new_campaign)
        connection = sqlite3.connect(store.path)
        for statement in ("UPDATE events SET at = 0", "DELETE FROM events"):
            with pytest.raises(sqlite3.IntegrityError, match="events are never"):
                connection.execute(statement)
        connection.close()
