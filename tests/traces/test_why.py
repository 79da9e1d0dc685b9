"""The way to a winner, and where time went, from histories as they are recorded."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from kernelwright.traces.history import derive
from kernelwright.traces.records import CHAMPION, Level, Metric, Profile, Status
from kernelwright.traces.sheet import Sheet
from kernelwright.traces.store import Store
from kernelwright.traces.why import (
    Step,
    compare_profiles,
    find_gain,
    list_ancestors,
    list_steps,
    share_seconds,
    share_time,
)


@pytest.fixture
def history(sample: Any) -> Any:
    with Store.open(sample.home, read_only=True) as store:
        return derive(store.events(sample.campaign))


@pytest.fixture
def sheet(sample: Any) -> Iterator[Sheet]:
    with Store.open(sample.home, read_only=True) as store, store.sheet(sample.campaign) as read:
        yield read


@pytest.fixture
def way(sheet: Sheet) -> list[Step]:
    best = sheet.head.best
    assert best is not None
    return list_steps(sheet, [*list_ancestors(sheet.entries, best), best])


def test_the_way_leads_from_the_first_to_the_winner(way: list[Step], history: Any) -> None:
    steps = way
    assert steps[-1].entry.candidate == history.champion
    assert steps[0].parent is None
    assert not steps[0].entry.parents
    for before, after in itertools.pairwise(steps):
        assert after.parent is before.entry
        assert after.entry.parents[0] == before.entry.candidate
        assert after.advice is before.entry.advice


def test_a_way_may_begin_later(way: list[Step], sheet: Sheet) -> None:
    later = list_steps(sheet, [step.entry for step in way[1:]], way[0].entry)
    assert later == way[1:]


def test_a_gain_is_paired_only_beside_the_parent(way: list[Step], history: Any, sheet: Any) -> None:
    for step in way[1:]:
        assert step.parent is not None
        gain = find_gain(sheet.head.crowned, step.entry, step.parent)
        timed = [each.verdict.measurement for each in (step.entry, step.parent) if each.verdict]
        if not all(timed):
            assert gain is None
            continue
        assert gain is not None
        previous = {e.candidate: e.previous for e in (change.event for change in history.changes)}
        is_paired = (
            previous.get(step.entry.candidate) == step.parent.candidate
            and CHAMPION in timed[0].speedup
        )
        assert (gain.low is not None) == is_paired
        if not is_paired:
            ratio = timed[1].candidate.median_us / timed[0].candidate.median_us
            assert gain.ratio == pytest.approx(ratio)


def profile(**values: float) -> Profile:
    metrics = [Metric(name=name, value=value) for name, value in values.items()]
    return Profile(metrics=(*metrics, Metric(name="emulated", value=1, level=Level.EMULATED)))


def test_what_changed_in_a_profile_is_told_by_size_and_level() -> None:
    before = profile(same=5.0, nearly=100.0, halved=8.0, doubled=1.0, gone=4.0, lost=1.0)
    after = profile(same=5.0, nearly=104.0, halved=4.0, doubled=2.0, gone=0.0, new=1.0)
    changed = [(change.after.name, change.ratio) for change in compare_profiles(before, after)]
    assert changed == [("gone", 0.0), ("halved", 0.5), ("doubled", 2.0)]
    measured = Profile(metrics=(Metric(name="t", value=2, level=Level.MEASURED), *after.metrics))
    earlier = Profile(metrics=(Metric(name="t", value=1, level=Level.MEASURED), *before.metrics))
    assert compare_profiles(earlier, measured)[0].after.name == "t"
    assert compare_profiles(None, after) == ()
    static = Profile(metrics=(Metric(name="t", value=9, level=Level.STATIC),))
    assert compare_profiles(earlier, static) == ()


def test_shares_of_time_add_up_to_what_was_spent(sheet: Sheet, history: Any) -> None:
    time = share_time(sheet)
    whole = history.preparation_s + history.spent_s
    assert sum(part.seconds for part in time) == pytest.approx(whole)
    assert sum(part.share for part in time) == pytest.approx(1.0)
    evaluations = share_seconds(sheet.head.seconds)
    verdicts = [v for entry in history.entries.values() for v in entry.verdicts]
    spent = sum(sum(verdict.seconds.values()) for verdict in verdicts)
    assert sum(part.seconds for part in evaluations) == pytest.approx(spent)


def test_failures_are_told_with_their_most_frequent_reason(sheet: Sheet, history: Any) -> None:
    failures = sheet.head.failures
    counts = {failure.status: failure.candidates for failure in failures}
    assert counts == {s: n for s, n in history.by_status.items() if not s.is_pass}
    assert all(failure.reason for failure in failures)
    assert [f.candidates for f in failures] == sorted(counts.values(), reverse=True)


def test_who_may_be_faster_was_screened_above_the_winner(sheet: Sheet, history: Any) -> None:
    headline = history.best.verdict.measurement.headline.median
    found, count = sheet.list_unconfirmed(headline, 100)
    estimates = [e.verdict.screen_estimate.median for e in found if e.verdict.screen_estimate]
    assert len(estimates) == count
    assert len(sheet.list_unconfirmed(headline, 1)[0]) == min(count, 1)
    assert estimates == sorted(estimates, reverse=True)
    assert all(estimate > headline for estimate in estimates)
    screened = [
        entry
        for entry in history.entries.values()
        if entry.verdict
        and entry.verdict.status is Status.SCREENED
        and entry.verdict.screen_estimate
        and entry.verdict.screen_estimate.median > headline
    ]
    assert len(estimates) == len(screened)
