"""What holds of every Store, however it came to be open: its contract stands at the class."""

from __future__ import annotations

import hashlib
import itertools
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernelwright.errors import StorageError, UnknownNameError
from kernelwright.tests.agents import test_forge_resume, test_resume, test_spending
from kernelwright.tests.cli.test_earlier_release import KEPT
from kernelwright.tests.implementers import unheld
from kernelwright.tests.traces.store_parts import proposed
from kernelwright.traces.events import CampaignStarted, Event
from kernelwright.traces.history import derive
from kernelwright.traces.store import Store

SOURCE = "naïve\x00\r\n"
ABSENT = "0" * 64


@dataclass(frozen=True)
class Suite:
    """A store, and one that writes the same home."""

    store: Store
    writer: Store
    """The store itself, unless it was opened to be read."""


Opener = Callable[[Path, ExitStack, CampaignStarted], Suite]


def filled(home: Path, started: CampaignStarted) -> Path:
    """A home with two campaigns, of which the first was written to last."""
    with Store.open(home) as store:
        first, _ = store.create(started), store.create(started)
        store.append(first, proposed(1, store.put_blob("one")))
    return home


def earlier(folder: Path) -> Path:
    with tarfile.open(KEPT) as kept:
        kept.extractall(folder, filter="data")
    return folder


def new(folder: Path, stack: ExitStack, _: CampaignStarted) -> Suite:
    store = stack.enter_context(Store.open(folder / "home"))
    return Suite(store, store)


def reopened(folder: Path, stack: ExitStack, started: CampaignStarted) -> Suite:
    store = stack.enter_context(Store.open(filled(folder, started)))
    return Suite(store, store)


def reading(folder: Path, stack: ExitStack, started: CampaignStarted) -> Suite:
    """Beside somebody who writes."""
    writer = stack.enter_context(Store.open(filled(folder, started)))
    return Suite(stack.enter_context(Store.open(folder, read_only=True)), writer)


def of_earlier(folder: Path, stack: ExitStack, _: CampaignStarted) -> Suite:
    store = stack.enter_context(Store.open(earlier(folder)))
    return Suite(store, store)


def reading_earlier(folder: Path, stack: ExitStack, _: CampaignStarted) -> Suite:
    writer = stack.enter_context(Store.open(earlier(folder)))
    return Suite(stack.enter_context(Store.open(folder, read_only=True)), writer)


def double(kind: type[Store]) -> Opener:
    """One that would die or fill up, before it does."""

    def opened(folder: Path, stack: ExitStack, _: CampaignStarted) -> Suite:
        store = stack.enter_context(kind.open(folder))
        return Suite(store, store)

    return opened


STORES: dict[str, Opener] = {
    "new": new,
    "opened again": reopened,
    "read beside a writer": reading,
    "of an earlier version": of_earlier,
    "of an earlier version, read": reading_earlier,
    "mortal": double(test_resume.MortalStore),
    "mortal, at every event": double(test_forge_resume.MortalStore),
    "full": double(test_spending.FullStore),
}


@pytest.fixture(params=STORES)
def here(
    request: pytest.FixtureRequest, tmp_path: Path, new_campaign: CampaignStarted
) -> Iterator[Suite]:
    with ExitStack() as stack:
        yield STORES[request.param](tmp_path, stack, new_campaign)


def assert_holds(store: Store) -> None:
    """What is true of every store at any time."""
    campaigns = store.campaigns()
    assert len(set(campaigns)) == len(campaigns)
    assert [campaign for campaign, _ in store.starts()] == campaigns[::-1]
    of_each = {campaign: store.events(campaign) for campaign in campaigns}
    every = sorted(event.seq for events in of_each.values() for event in events)
    assert len(set(every)) == len(every) == store.count()
    assert store.last_seq() == max(every, default=0)
    firsts = dict(store.starts())
    for campaign, events in of_each.items():
        assert events[0].payload == firsts[campaign]
        assert_in_order(store, campaign, events)
        assert_told(store, campaign, events)
    if campaigns:
        assert store.resolve("@last") == campaigns[0]


def assert_in_order(store: Store, campaign: str, events: list[Event]) -> None:
    assert {event.campaign for event in events} == {campaign}
    assert all(a.seq < b.seq for a, b in itertools.pairwise(events))
    assert store.last_seq(campaign) == events[-1].seq
    middle = events[len(events) // 2].seq
    for after in (0, middle, events[-1].seq):
        newer = store.events(campaign, after=after)
        assert newer == [event for event in events if event.seq > after]
        assert store.count(campaign, after=after) == len(newer)


def assert_told(store: Store, campaign: str, events: list[Event]) -> None:
    """What each campaign means can be had, with every source that is named."""
    assert all(Event.model_validate_json(each.model_dump_json()) == each for each in events)
    history = derive(events)
    assert (history.campaign, store.resolve(campaign)) == (campaign, campaign)
    for entry in history.entries.values():
        assert hashlib.sha256(store.get_blob(entry.candidate)).hexdigest() == entry.candidate
    for entry in list(history.entries.values())[-1:]:
        assert store.resolve_candidate(campaign, str(entry.number)) == entry.candidate
    assert not store.is_running(campaign)
    assert store.cursor_path(campaign).is_relative_to(store.home)


def test_every_store_there_is_is_held_to_its_contract(
    tmp_path: Path, new_campaign: CampaignStarted
) -> None:
    held: set[str] = set()
    for number, opener in enumerate(STORES.values()):
        with ExitStack() as stack:
            suite = opener(tmp_path / str(number), stack, new_campaign)
            held.add(type(suite.store).__name__)
    assert unheld({"append", "put_blob"}, held) == []
    assert unheld({"append", "put_blob"}, held - {"Store"}) == ["traces/store.py: Store"]


def test_it_tells_what_was_there_before(here: Suite) -> None:
    assert_holds(here.store)


def test_what_is_written_is_there_at_once_and_as_it_was(
    here: Suite, new_campaign: CampaignStarted
) -> None:
    store, writer = here.store, here.writer
    known = store.campaigns()
    first, second = writer.create(new_campaign), writer.create(new_campaign)
    assert store.campaigns() == [second, first, *known]
    before = store.last_seq()
    written = []
    for number, campaign in enumerate((first, second, first), 1):
        event = writer.append(campaign, proposed(number, writer.put_blob(f"source {number}")))
        written.append(event)
        assert store.events(campaign)[-1] == event
    assert [event.payload for event in written] == [
        proposed(number, hashlib.sha256(f"source {number}".encode()).hexdigest())
        for number in (1, 2, 3)
    ]
    assert store.events(first)[1:] == [written[0], written[2]]
    assert store.events(second, after=before) == [written[1]]
    assert store.count(after=before) == 3
    assert_holds(store)


def test_an_event_that_is_refused_leaves_nothing(
    here: Suite, new_campaign: CampaignStarted
) -> None:
    campaign = here.writer.create(new_campaign)
    before, last = here.store.events(campaign), here.store.last_seq()
    half = proposed(1).model_copy(update={"note": "\ud800"})
    with pytest.raises(StorageError, match=r"candidate\.proposed cannot be written"):
        here.writer.append(campaign, half)
    with pytest.raises(UnknownNameError, match="no campaign named 'nope'"):
        here.writer.append("nope", proposed(1))
    assert (here.store.events(campaign), here.store.last_seq()) == (before, last)


def test_a_campaign_that_is_not_there_is_named(here: Suite, new_campaign: CampaignStarted) -> None:
    name = here.writer.create(new_campaign)
    calls: tuple[Callable[[str], Any], ...] = (
        here.store.events,
        here.store.last_seq,
        here.store.count,
        here.store.lease,
        here.store.resolve,
    )
    for call in calls:
        with pytest.raises(UnknownNameError, match="no campaign named 'nope'") as caught:
            call("nope")
        assert name in caught.value.hint


def test_a_blob_is_what_its_name_says_or_nothing(here: Suite) -> None:
    sha = here.writer.put_blob(SOURCE)
    assert (
        sha == here.writer.put_blob(SOURCE.encode()) == hashlib.sha256(SOURCE.encode()).hexdigest()
    )
    assert here.store.get_blob(sha) == SOURCE.encode()
    path = here.store.home / "blobs" / sha[:2] / sha[2:]
    path.write_bytes(b"tampered")
    with pytest.raises(StorageError, match="was changed after it was written"):
        here.store.get_blob(sha)
    assert here.writer.put_blob(SOURCE) == sha
    assert here.store.get_blob(sha) == SOURCE.encode()
    with pytest.raises(UnknownNameError, match="there is no blob"):
        here.store.get_blob(ABSENT)
    with pytest.raises(StorageError, match="not the name of a blob"):
        here.store.get_blob("../../etc/passwd")


def test_threads_lose_nothing(here: Suite, new_campaign: CampaignStarted) -> None:
    campaign = here.writer.create(new_campaign)
    sha = here.writer.put_blob(SOURCE)
    seen: list[int] = []

    def write() -> None:
        for _ in range(5):
            here.writer.append(campaign, proposed(1, sha))

    def read() -> None:
        seen.extend(here.store.count(campaign) for _ in range(10))

    threads = [threading.Thread(target=work) for work in (write, read, write)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert here.store.count(campaign) == 11
    assert_holds(here.store)
    assert seen == sorted(seen)


def test_everybody_sees_that_a_campaign_is_held(here: Suite, new_campaign: CampaignStarted) -> None:
    campaign = here.writer.create(new_campaign)
    with here.writer.lease(campaign):
        assert here.store.is_running(campaign)
    assert not here.store.is_running(campaign)


def test_who_reads_changes_nothing(here: Suite, new_campaign: CampaignStarted) -> None:
    campaign = here.writer.create(new_campaign)
    with Store.open(here.store.home, read_only=True) as reader:
        files = sorted(path for path in reader.home.rglob("*") if path.is_file())
        calls: tuple[Callable[[], Any], ...] = (
            lambda: reader.create(new_campaign),
            lambda: reader.append(campaign, proposed(1)),
            lambda: reader.put_blob("not kept"),
            lambda: reader.lease(campaign),
        )
        for call in calls:
            with pytest.raises(StorageError):
                call()
        assert len(reader.events(campaign)) == 1
        assert sorted(path for path in reader.home.rglob("*") if path.is_file()) == files


def test_closing_twice_is_harmless_and_another_finds_it_all(
    here: Suite, new_campaign: CampaignStarted
) -> None:
    campaign = here.writer.create(new_campaign)
    events = here.store.events(campaign)
    with Store.open(here.store.home) as other:
        other.close()
        other.close()
    with Store.open(here.store.home) as another:
        assert another.events(campaign) == events
        assert_holds(another)
