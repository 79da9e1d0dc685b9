"""Figures in words: units, digits, and what is said where there is no figure."""

from __future__ import annotations

import pytest

from kernelwright.traces import wording
from kernelwright.traces.records import Measurement, Speedup, Status, Timing


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.4, "0.4 µs"),
        (999.2, "999 µs"),
        (999.7, "1 ms"),
        (1540, "1.54 ms"),
        (12_345, "12.3 ms"),
        (999_700, "1 s"),
        (2.5e6, "2.5 s"),
        (4_321e6, "4,321 s"),
    ],
)
def test_times(value: float | None, text: str) -> None:
    assert wording.micros(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0"),
        (0.5, "0.5"),
        (0.12345, "0.123"),
        (28262, "28,262"),
        (28262.4, "28,262"),
        (999.7, "1,000"),
        (4.1e-8, "4.1e-08"),
        (1234567.0, "1.23e+06"),
        (float("inf"), "inf"),
    ],
)
def test_figures(value: float | None, text: str) -> None:
    assert wording.figure(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (0, "$0.00"),
        (0.00001, "under $0.0001"),
        (0.00042, "$0.0004"),
        (0.3, "$0.30"),
        (0.3125, "$0.3125"),
        (1.23456, "$1.23"),
    ],
)
def test_money(value: float | None, text: str) -> None:
    assert wording.usd(value) == text


def test_what_nobody_counted_is_marked() -> None:
    assert wording.usd(0.3, is_estimated=True) == "≈ $0.30"
    assert wording.tokens(2000, is_estimated=True) == "≈ 2,000"
    assert wording.usd(0.0, is_estimated=True) == "$0.00"
    assert wording.price(None) == "at an unknown price"


def test_speed_ups() -> None:
    assert wording.speedup(Speedup(median=1.844, low=1.8, high=1.88)) == "1.84× (95 % 1.80–1.88)"
    assert [wording.ratio(each) for each in (None, 0.0, 0.8)] == ["–", "–", "0.80×"]
    assert wording.interval(None) == "–"


@pytest.mark.parametrize(
    ("prepare_us", "calls", "text"),
    [
        (None, None, ""),
        (812.4, 3, "812 µs for a pattern, pays after 3 calls"),
        (12.0, 1, "12 µs for a pattern, pays after 1 call"),
        (9e3, 4096, "9 ms for a pattern, pays after 4,096 calls"),
        (1.0, None, "1 µs for a pattern, does not pay against a baseline that prepares nothing"),
    ],
)
def test_preparing(prepare_us: float | None, calls: int | None, text: str) -> None:
    own = Timing(median_us=1, low_us=1, high_us=1)
    found = Measurement(workload="w", candidate=own, prepare_us=prepare_us, pays_after_calls=calls)
    assert wording.preparing(found) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0.0 s"),
        (59.9, "59.9 s"),
        (59.97, "1 min 0 s"),
        (3599.7, "1 h 0 min"),
        (3700, "1 h 1 min"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert wording.duration(seconds) == text


def test_every_status_has_words() -> None:
    assert set(wording.MEANING) == set(Status)
