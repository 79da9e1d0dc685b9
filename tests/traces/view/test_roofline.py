"""The roofline: the roof, who stands below it, and how each figure came about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kernelwright.traces.preparation import Bounds
from kernelwright.traces.records import Level, Metric, Profile
from kernelwright.traces.store import Store
from kernelwright.traces.view.roofline import Placed, list_sides, place_entry, roofline_chart

ROOF = Bounds(
    floor_us=100.0,
    roof="float32 multiply-adds",
    source="measured here",
    bytes=2e6,
    flops=4e7,
    gbs=20.0,
    gflops=100.0,
)


def test_the_roof_bends_where_memory_and_arithmetic_meet() -> None:
    figure = roofline_chart(ROOF, [Placed("#1", 800.0)])
    assert figure is not None
    roof, point = figure["data"]
    left, ridge, right = roof["x"]
    assert ridge == pytest.approx(100.0 / 20.0)
    assert left < min(ridge, 20.0) < max(ridge, 20.0) < right
    assert roof["y"] == pytest.approx([left * 20.0, 100.0, 100.0])
    assert (point["x"], point["y"]) == ([20.0], [pytest.approx(4e7 / 800.0 / 1e3)])
    assert "50% of the roof; each byte counted once" in point["text"][0]
    assert "measured" in point["text"][0]


def test_without_a_peak_the_roof_is_of_memory_alone() -> None:
    figure = roofline_chart(ROOF.model_copy(update={"gflops": 0.0}), [Placed("#1", 800.0)])
    assert figure is not None
    roof = figure["data"][0]
    assert roof["y"] == pytest.approx([x * 20.0 for x in roof["x"]])


def test_what_counters_told_stands_beside_what_must_be_moved() -> None:
    figure = roofline_chart(ROOF, [Placed("#1", 800.0, intensity=10.0)])
    assert figure is not None
    _, once, counted = figure["data"]
    assert (once["x"], counted["x"]) == ([20.0], [10.0])
    assert counted["marker"]["symbol"] == "square"
    assert "by the device's counters" in counted["text"][0]


@pytest.mark.parametrize("missing", ["bytes", "flops", "gbs"])
def test_no_roof_is_drawn_that_is_not_known(missing: str) -> None:
    assert roofline_chart(ROOF.model_copy(update={missing: 0.0}), [Placed("#1", 1.0)]) is None
    assert roofline_chart(None, [Placed("#1", 1.0)]) is None
    assert roofline_chart(ROOF, []) is None


def test_candidates_stand_beside_their_baselines(sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store, store.sheet(sample.campaign) as sheet:
        best = sheet.read_whole([sample.champion])[sample.champion]
    mine, *others = list_sides(best)
    assert best.verdict is not None
    measured = best.verdict.measurement
    assert measured is not None
    assert (mine.us, mine.is_mine, mine.intensity) == (measured.candidate.median_us, True, None)
    assert {other.name: other.us for other in others} == {
        name: timing.median_us for name, timing in measured.baselines.items()
    }
    counted = Metric(name="intensity", value=3.0, level=Level.MEASURED)
    verdict = best.verdict.model_copy(update={"profile": Profile(metrics=(counted,))})
    placed = place_entry(replace(best, verdicts=(verdict,)))
    assert placed is not None
    assert placed.intensity == 3.0


def test_a_failed_candidate_stands_nowhere(sample: Any) -> None:
    with Store.open(sample.home, read_only=True) as store, store.sheet(sample.campaign) as sheet:
        failed = [e for e in sheet.list_entries() if e.verdict and not e.verdict.status.is_pass]
    assert failed
    assert all(list_sides(entry) == [] for entry in failed)
