"""Campaigns are taken away whole, and blobs that none of the others names."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import StorageError, UnknownNameError, UsageError
from kernelwright.traces.cleaning import find_garbage, find_named, remove
from kernelwright.traces.database import FILE_NAME
from kernelwright.traces.events import CandidateProposed
from kernelwright.traces.store import Store

OLD = -1.0
"""Seconds for which a file is left alone: none."""


def propose(store: Store, campaign: str, source: str) -> str:
    sha = store.put_blob(source)
    store.append(
        campaign,
        CandidateProposed(candidate=sha, number=99, language="cpp", family="f", operator="o"),
    )
    return sha


def test_a_campaign_is_taken_away_and_the_others_stay(
    sample: Any, write_sample: Callable[..., Any]
) -> None:
    other = write_sample(is_finished=False)
    with Store.open(sample.home) as store:
        before, kept = store.events(other.campaign), store.count(sample.campaign)
        newest = store.last_seq()
        assert store.delete(sample.campaign) == kept
        assert store.campaigns() == [other.campaign]
        assert [line.campaign for line in store.lines()] == [other.campaign]
        assert store.events(other.campaign) == before
        with pytest.raises(UnknownNameError):
            store.events(sample.campaign)
        # Numbers of events are never given again.
        propose(store, other.campaign, "int x;")
        assert store.last_seq() > newest
    # Events still cannot be changed or removed one by one.
    connection = sqlite3.connect(sample.home / FILE_NAME)
    with pytest.raises(sqlite3.DatabaseError, match="never deleted"):
        connection.execute("DELETE FROM events")
    connection.close()


def test_who_runs_is_not_taken_away(sample: Any) -> None:
    with Store.open(sample.home) as store, Store.open(sample.home) as another:
        count = store.count(sample.campaign)
        with another.lease(sample.campaign), pytest.raises(UsageError, match="already being run"):
            store.delete(sample.campaign)
        assert store.count(sample.campaign) == count


def test_a_store_that_is_read_deletes_nothing(sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store, pytest.raises(StorageError):
        store.delete(sample.campaign)
    with Store.open(sample.home, read_only=True) as store:
        assert store.campaigns() == [sample.campaign]


def test_what_no_campaign_names_is_found(sample: Any, write_sample: Callable[..., Any]) -> None:
    other = write_sample(is_finished=False)
    with Store.open(sample.home) as store:
        assert find_garbage(store, OLD).paths == ()
        shared, own = (propose(store, sample.campaign, text) for text in ("both", "one alone"))
        assert propose(store, other.campaign, "both") == shared
        lost = store.put_blob("nobody names it")
        draft = store.blobs.path(lost).with_name(".new-half")
        draft.write_bytes(b"half")
        garbage = find_garbage(store, OLD)
        assert set(garbage.paths) == {store.blobs.path(lost), draft}
        assert garbage.bytes == len("nobody names it") + len("half")
        assert find_garbage(store).paths == ()
        store.delete(sample.campaign)
        remove(find_garbage(store, OLD).paths)
        store.vacuum()
        assert store.get_blob(shared) == b"both"
        for sha in (own, lost):
            with pytest.raises(UnknownNameError):
                store.get_blob(sha)
        assert shared in find_named(store)


def test_events_that_nobody_understands_keep_their_blobs(sample: Any) -> None:
    with Store.open(sample.home) as store:
        sha = store.put_blob("of a later version")
    with sqlite3.connect(sample.home / FILE_NAME) as connection:
        connection.execute(
            "INSERT INTO events (campaign, at, kind, payload) VALUES (?, 0, 'new', ?)",
            (sample.campaign, f'{{"kind": "new", "of": "{sha}"}}'),
        )
    with Store.open(sample.home) as store:
        assert store.blobs.path(sha) not in find_garbage(store, OLD).paths


def test_a_file_that_cannot_be_removed_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(StorageError, match="could not be removed"):
        remove([folder])
    assert os.path.isdir(folder)
