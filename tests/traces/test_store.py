"""The store: events and blobs come back as they were written, in their order."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from kernelwright.errors import StorageError, UnknownNameError
from kernelwright.tests.traces.store_parts import proposed
from kernelwright.traces.events import CampaignStarted
from kernelwright.traces.store import Store


def test_events_come_back_as_they_were(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    times = iter([10.0, 11.5, 12.0])
    with Store.open(tmp_path / "home", clock=lambda: next(times)) as store:
        campaign = store.create(new_campaign)
        written = [store.append(campaign, proposed(n)) for n in (1, 2)]
        events = store.events(campaign)
    assert [e.payload for e in events] == [new_campaign, proposed(1), proposed(2)]
    assert [e.at for e in events] == [10.0, 11.5, 12.0]
    assert events[1:] == written
    assert [e.seq for e in events] == sorted({e.seq for e in events})


def test_half_a_character_is_an_error_and_leaves_nothing(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        half = proposed(1).model_copy(update={"note": "\ud800"})
        with pytest.raises(StorageError, match=r"candidate\.proposed cannot be written"):
            store.append(campaign, half)
        assert len(store.events(campaign)) == 1


def test_ids_sort_by_time_and_are_unique(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    times = iter([1_700_000_000.0 + 0.5 * i for i in range(20)])
    with Store.open(tmp_path, clock=lambda: next(times)) as store:
        ids = [store.create(new_campaign) for _ in range(20)]
        assert store.campaigns() == ids[::-1]
    assert ids == sorted(set(ids))
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{7}", name) for name in ids)


def test_only_newer_events_are_given_after_a_seq(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        first, second = store.create(new_campaign), store.create(new_campaign)
        seqs = [store.append(first, proposed(n)).seq for n in (1, 2, 3)]
        store.append(second, proposed(9))
        assert [e.seq for e in store.events(first, after=seqs[0])] == seqs[1:]
        assert store.last_seq(first) == seqs[-1]
        assert store.last_seq() == seqs[-1] + 1
        assert store.count(first, after=seqs[0]) == 2
        assert store.count(after=seqs[0]) == 3


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


def test_blobs_are_kept_by_content_and_verified(tmp_path: Path) -> None:
    with Store.open(tmp_path) as store:
        name = store.put_blob("naïve\x00")
        assert name == store.put_blob("naïve\x00".encode())
        assert store.get_blob(name) == "naïve\x00".encode()
        path = tmp_path / "blobs" / name[:2] / name[2:]
        path.write_bytes(b"tampered")
        with pytest.raises(StorageError, match="was changed after it was written"):
            store.get_blob(name)
        assert store.put_blob("naïve\x00") == name
        assert store.get_blob(name) == "naïve\x00".encode()
        with pytest.raises(UnknownNameError, match="there is no blob"):
            store.get_blob("0" * 64)
        with pytest.raises(StorageError, match="not the name of a blob"):
            store.get_blob("../../etc/passwd")
