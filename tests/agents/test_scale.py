"""The scale of a campaign's pairs: least squares, pair by pair, and what it says of doubt."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.agents.search.scale import BASELINE, Estimate, Pair, Scale, pairs_of
from kernelwright.tests.agents.played import verdict_with
from kernelwright.traces.records import CHAMPION, Measurement, Speedup

NAMES = [BASELINE, *"abcdef"]


@st.composite
def connected(draw: st.DrawFn) -> list[Pair]:
    """Pairs that join each name to an earlier one, and some more."""
    figures = st.floats(-1.0, 1.0).map(lambda x: round(x, 3))
    errors = st.floats(0.01, 0.2).map(lambda x: round(x, 3))
    pairs = [
        Pair(name, draw(st.sampled_from(NAMES[:at])), draw(figures), draw(errors))
        for at, name in enumerate(NAMES)
        if at
    ]
    for _ in range(draw(st.integers(0, 8))):
        one, other = draw(st.permutations(NAMES))[:2]
        pairs.append(Pair(one, other, draw(figures), draw(errors)))
    return pairs


@given(connected())
def test_pair_by_pair_is_least_squares_of_all_pairs(pairs: list[Pair]) -> None:
    scale = Scale(pairs)
    index = {name: at for at, name in enumerate(NAMES[1:])}
    rows, told = np.zeros((len(pairs), len(index))), np.zeros(len(pairs))
    for at, pair in enumerate(pairs):
        for name, sign in ((pair.one, 1.0), (pair.other, -1.0)):
            if name in index:
                rows[at, index[name]] = sign / pair.error
        told[at] = pair.gain / pair.error
    covariance = np.linalg.inv(rows.T @ rows)
    means = covariance @ (rows.T @ told)
    for name, at in index.items():
        found = scale.speed_of(name)
        assert found is not None
        assert found.mean == pytest.approx(means[at], abs=1e-6)
        assert found.error == pytest.approx(scale.noise * math.sqrt(covariance[at, at]), rel=1e-5)


def test_who_was_timed_beside_another_stands_by_that_pair_and_not_by_the_library() -> None:
    """Both were held against the library, minutes apart; only one of them at a good moment."""
    scale = Scale([Pair("a", BASELINE, 1.2, 0.08)])
    scale.add(Pair("b", "a", 0.1, 0.02))
    scale.add(Pair("b", BASELINE, 0.9, 0.08))
    known = scale.compare("b", "a")
    assert known is not None
    assert known.mean == pytest.approx(0.1, abs=0.02)
    assert known.chance > 0.99


def test_pairs_that_disagree_make_all_errors_larger() -> None:
    calm, wild = Scale(), Scale()
    for turn in range(20):
        calm.add(Pair("a", BASELINE, 0.5, 0.05))
        wild.add(Pair("a", BASELINE, 0.5 + 0.2 * (-1) ** turn, 0.05))
    known = [scale.speed_of("a") for scale in (calm, wild)]
    assert known[0] is not None
    assert known[1] is not None
    assert calm.noise < 1.0 < wild.noise
    assert known[1].error > 3 * known[0].error


def test_nobody_is_compared_who_was_in_no_pair() -> None:
    scale = Scale([Pair("a", BASELINE, 0.1, 0.05)])
    assert "b" not in scale
    assert scale.speed_of("b") is None
    assert scale.compare("a", "b") is None


def test_more_candidates_than_there_was_room_for_at_first() -> None:
    scale = Scale(Pair(f"c{n}", f"c{n - 1}" if n else BASELINE, 0.01, 0.01) for n in range(200))
    found = scale.speed_of("c199")
    assert found is not None
    assert found.mean == pytest.approx(2.0)
    assert found.error == pytest.approx(0.01 * math.sqrt(200))


@given(st.floats(-0.3, 0.3), st.floats(0.005, 0.2))
def test_a_gain_is_what_is_expected_above_zero(mean: float, error: float) -> None:
    drawn = np.random.default_rng(0).normal(mean, error, 40_000)
    known = Estimate(mean, error)
    assert known.gain == pytest.approx(np.maximum(drawn, 0.0).mean(), abs=0.01 * error + 1e-9)
    assert known.chance == pytest.approx((drawn > 0).mean(), abs=0.01)


def test_a_measurement_holds_a_pair_with_the_library_and_one_with_the_champion() -> None:
    measured = verdict_with(2.0, against_champion=1.1).measurement
    assert measured is not None
    told = pairs_of("b", "a", measured)
    assert [(pair.one, pair.other) for pair in told] == [("b", BASELINE), ("b", "a")]
    assert told[1].error < told[0].error
    assert [pair.other for pair in pairs_of("b", "", measured)] == [BASELINE]
    assert [pair.other for pair in pairs_of("a", "a", measured)] == [BASELINE]


def test_more_processes_are_worth_more() -> None:
    def error_with(blocks: int) -> float:
        wide = Speedup(median=1.0, low=0.99, high=1.01, blocks=blocks)
        timing = verdict_with(2.0).measurement
        assert timing is not None
        found = Measurement(workload="usual", candidate=timing.candidate, speedup={CHAMPION: wide})
        (pair,) = pairs_of("b", "a", found)
        return pair.error

    assert error_with(12) < error_with(4) < error_with(1)
