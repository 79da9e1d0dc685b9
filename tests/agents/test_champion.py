"""Who may challenge and who displaces, at and around every limit."""

from __future__ import annotations

import pytest

from kernelwright.agents.search.championship import displaces, may_challenge
from kernelwright.agents.search.scale import Estimate
from kernelwright.tests.agents.played import verdict_with
from kernelwright.traces.records import Status


def confirmed(**figures: float) -> bool:
    verdict = verdict_with(0.5, status=Status.VERIFIED, **figures)
    return displaces(verdict, has_champion=True)


def test_a_first_champion_needs_only_to_be_verified() -> None:
    assert displaces(verdict_with(0.1, status=Status.VERIFIED), has_champion=False)
    assert not displaces(verdict_with(9.0, status=Status.SCREENED), has_champion=False)
    assert not displaces(verdict_with(None, status=Status.SUSPECT), has_champion=False)


@pytest.mark.parametrize(
    ("low", "mde", "expected"),
    [(1.021, 0.0, True), (1.02, 0.0, False), (1.04, 0.05, False), (1.051, 0.05, True)],
)
def test_a_champion_falls_only_to_a_gain_beyond_the_noise(
    low: float, mde: float, expected: bool
) -> None:
    assert confirmed(against_champion=low, mde=mde) is expected


def test_without_a_paired_timing_against_it_the_champion_stays() -> None:
    assert not confirmed()


@pytest.mark.parametrize(("ahead", "expected"), [(0.1, True), (-0.01, True), (-0.03, False)])
def test_who_is_within_the_noise_of_a_screening_may_challenge(ahead: float, expected: bool) -> None:
    assert may_challenge(Estimate(ahead, 0.05), has_champion=True) is expected


def test_who_was_not_timed_beside_the_champion_may_not_challenge_it() -> None:
    assert not may_challenge(None, has_champion=True)
    assert may_challenge(None, has_champion=False)
