"""The line of each campaign beside its events: always what the events tell."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import StorageError
from kernelwright.tests.traces.store_parts import proposed
from kernelwright.traces.documents import line_document
from kernelwright.traces.events import CampaignResumed, CampaignStarted, CandidateProposed
from kernelwright.traces.history import derive
from kernelwright.traces.store import Store

FILE = "kernelwright.sqlite"


def told(store: Store, campaign: str) -> Any:
    """What the events tell, as JSON gives it back."""
    return json.loads(json.dumps(line_document(derive(store.events(campaign)))))


def stored(home: Path) -> list[tuple[str, int, str]]:
    """The rows themselves."""
    with closing(sqlite3.connect(home / FILE)) as connection:
        return connection.execute("SELECT campaign, seq, document FROM lines").fetchall()


@pytest.mark.parametrize("kind", ["sample", "asked"])
def test_the_line_is_what_the_events_tell_after_each_of_them(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    written = request.getfixturevalue(kind)
    with Store.open(written.home, read_only=True) as store:
        first, *rest = store.events(written.campaign)
    with Store.open(tmp_path / "copy") as store:
        assert isinstance(first.payload, CampaignStarted)
        campaign = store.create(first.payload)
        for event in rest:
            seq = store.append(campaign, event.payload).seq
            ((name, line_seq, document),) = stored(store.home)
            assert (name, line_seq) == (campaign, seq)
            assert json.loads(document) == told(store, campaign)
        (line,) = store.lines()
        assert line.document == told(store, campaign)


def test_two_that_write_in_turn_know_of_each_other(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as one, Store.open(tmp_path) as other:
        campaign = one.create(new_campaign)
        for number in range(1, 9):
            (one if number % 3 else other).append(campaign, proposed(number))
            (line,) = one.lines()
            assert line.document["proposed"] == number
            assert stored(tmp_path)[0][1] == one.last_seq(campaign)


def test_what_was_refused_is_in_no_line(tmp_path: Path, new_campaign: CampaignStarted) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        store.append(campaign, proposed(1))
        half: CandidateProposed = proposed(2).model_copy(update={"family": "\ud800"})
        with pytest.raises(StorageError):
            store.append(campaign, half)
        store.append(campaign, proposed(2))
        (line,) = store.lines()
        assert line.document == told(store, campaign)
        assert line.document["proposed"] == 2


def test_events_that_make_no_sense_have_no_line_and_are_refused_as_ever(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)
        store.append(campaign, new_campaign)  # it starts a second time
        store.append(campaign, CampaignResumed())
        assert not stored(tmp_path)
        with pytest.raises(StorageError, match="starts a second time"):
            store.lines()


@pytest.mark.parametrize("damage", ["", "{", "[1]", "null"])
def test_a_damaged_line_is_told_by_its_events(damage: str, sample: Any) -> None:
    with closing(sqlite3.connect(sample.home / FILE)) as connection, connection:
        connection.execute("UPDATE lines SET document = ?", (damage,))
    with Store.open(sample.home, read_only=True) as store:
        (line,) = store.lines()
        assert line.document == line_document(derive(store.events(sample.campaign)))
