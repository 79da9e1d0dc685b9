"""A campaign that was read before is read on: what pages see is what all of its events tell."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import StorageError
from kernelwright.tests.traces.store_parts import proposed
from kernelwright.traces.documents import line_document
from kernelwright.traces.events import CampaignStarted
from kernelwright.traces.history import derive
from kernelwright.traces.store import Store
from kernelwright.traces.transcript import transcribe
from kernelwright.traces.view.reader import CampaignReader


@pytest.mark.parametrize("kind", ["sample", "asked"])
def test_each_event_is_taken_in_as_it_comes(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    written: Any = request.getfixturevalue(kind)
    with Store.open(written.home, read_only=True) as store:
        first, *rest = store.events(written.campaign)
    reader = CampaignReader(tmp_path / "copy")
    with Store.open(tmp_path / "copy") as store:
        assert isinstance(first.payload, CampaignStarted)
        campaign = store.create(first.payload)
        for event in rest:
            store.append(campaign, event.payload)
            with reader.campaign(campaign) as read:
                events = store.events(campaign)
                whole = derive(events)
                assert read.history.entries == whole.entries
                assert line_document(read.history) == line_document(whole)
                assert read.transcript.steps == transcribe(events).steps


def test_who_reads_at_once_sees_one_whole_campaign(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    reader = CampaignReader(tmp_path)
    with Store.open(tmp_path) as store:
        campaign = store.create(new_campaign)

        def look(_: int) -> None:
            with reader.campaign(campaign) as (_, history, _):
                numbers = [entry.number for entry in history.entries.values()]
                assert numbers == list(range(1, len(history.entries) + 1))
                assert history.last_seq == 1 + len(numbers)

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
