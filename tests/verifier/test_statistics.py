"""Statistics on simulated timers whose truth is known. All seeds are fixed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from kernelwright.traces.records import Depth, Speedup
from kernelwright.verifier.clock import statistics
from kernelwright.verifier.stands import contests

RUNS = 500
RESAMPLES = 300

Timer = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


def lognormal(rng: np.random.Generator, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    return 100 * rng.lognormal(0, 0.02, pairs), 100 * rng.lognormal(0, 0.02, pairs)


def drifting(rng: np.random.Generator, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    drift = np.linspace(1.0, 1.3, pairs)
    a, b = lognormal(rng, pairs)
    return a * drift, b * drift


def with_outliers(rng: np.random.Generator, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = lognormal(rng, pairs)
    for side in (a, b):
        side[rng.random(pairs) < 0.08] *= rng.uniform(1.5, 20)
    return a, b


def bimodal(rng: np.random.Generator, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    a, b = lognormal(rng, pairs)
    slow = np.where(rng.random(pairs) < 0.3, 1.15, 1.0)
    return a * slow, b * slow


TIMERS = [lognormal, drifting, with_outliers, bimodal]


def judged(timer: Timer, seed: int, pairs: int, gain: float = 1.0) -> tuple[Speedup, float]:
    rng = np.random.default_rng(seed)
    candidate, baseline = timer(rng, pairs)
    noise = statistics.mde([baseline], rng, splits=300)
    return statistics.speedup([candidate / gain], [baseline], rng, resamples=RESAMPLES), noise


@pytest.mark.parametrize("timer", TIMERS)
def test_equal_kernels_are_not_credited(timer: Timer) -> None:
    found = [judged(timer, seed, 40) for seed in range(RUNS)]
    # The interval alone leaves 2.5 % on the upper side; the margin on top makes it far rarer.
    assert sum(statistics.displaces(*pair) for pair in found) <= 0.005 * RUNS
    assert sum(gain.low > 1 for gain, _ in found) <= 0.05 * RUNS
    assert sum(gain.low <= 1 <= gain.high for gain, _ in found) >= 0.92 * RUNS


@pytest.mark.parametrize("timer", TIMERS)
@pytest.mark.parametrize("pairs", [30, 60])
def test_a_true_gain_of_a_tenth_is_seen(timer: Timer, pairs: int) -> None:
    runs = 60
    found = [judged(timer, seed, pairs, gain=1.10) for seed in range(runs)]
    # A timer with two modes 15 % apart cannot resolve a tenth as surely; it must not pretend to.
    power = 0.6 if timer is bimodal else 0.9
    assert sum(statistics.displaces(*pair) for pair in found) >= power * runs
    assert all(gain.low <= gain.median <= gain.high for gain, _ in found)


@pytest.mark.parametrize("pairs", [30, 60])
def test_a_true_gain_of_five_percent_is_seen_on_a_quiet_machine(pairs: int) -> None:
    runs = 60
    found = [judged(lognormal, seed, pairs, gain=1.05) for seed in range(runs)]
    assert sum(statistics.displaces(*pair) for pair in found) >= 0.8 * runs


def test_processes_that_differ_widen_the_interval() -> None:
    rng = np.random.default_rng(0)
    shifts = (0.97, 1.0, 1.03)
    blocks = [lognormal(rng, 20) for _ in shifts]
    candidate = [a * shift for (a, _), shift in zip(blocks, shifts, strict=True)]
    baseline = [b for _, b in blocks]
    staged = statistics.speedup(candidate, baseline, rng)
    pooled = statistics.speedup([np.concatenate(candidate)], [np.concatenate(baseline)], rng)
    assert staged.median == pytest.approx(pooled.median)
    assert staged.high - staged.low > 1.3 * (pooled.high - pooled.low)


T_OF_TWO, NORMAL = 4.302653, 1.959964
"""97.5 % quantiles: of t with two degrees of freedom, and of the normal."""


def test_three_processes_are_a_sample_of_more() -> None:
    """All draws are of the slowest once in 27 times: the lower end is that process, moved out."""
    baseline = [np.full(40, 100.0)] * 3
    candidate = [np.full(40, 100.0 * np.exp(shift)) for shift in (-0.02, 0.0, 0.02)]
    found = statistics.speedup(candidate, baseline, np.random.default_rng(1))
    assert found.median == pytest.approx(1.0)
    wider = np.sqrt(3 / 2) * T_OF_TWO / NORMAL
    assert found.low == pytest.approx(np.exp(-0.02 * wider), rel=1e-4)
    assert found.high == pytest.approx(np.exp(0.02 * wider), rel=1e-4)


def test_luck_of_one_process_is_not_credited() -> None:
    false = 0
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        pairs = [lognormal(rng, 12) for _ in range(3)]
        candidate = [a * rng.lognormal(0, 0.02) for a, _ in pairs]
        baseline = [b for _, b in pairs]
        noise = statistics.mde(baseline, rng, splits=200)
        gain = statistics.speedup(candidate, baseline, rng, resamples=RESAMPLES)
        false += statistics.displaces(gain, noise)
    assert false <= 0.025 * RUNS


def contest(seed: int, gain: float) -> bool:
    """A confirmation block by block on a noisy machine: whether the champion is displaced.

    Calls vary by 12 % on either side, processes by 1 %, as they do on one set of pages, and a
    block has as many pairs as calls of some 200 µs leave time for.
    """
    rng = np.random.default_rng(seed)
    candidate: list[np.ndarray] = []
    baseline: list[np.ndarray] = []
    least, most = contests.BLOCKS[Depth.CONFIRM], contests.OPEN_BLOCKS
    while True:
        pairs = 60 if len(baseline) < least else 60 * contests.MORE
        candidate.append(100 / gain * rng.lognormal(0, 0.12, pairs) * rng.lognormal(0, 0.01))
        baseline.append(100 * rng.lognormal(0, 0.12, pairs) * rng.lognormal(0, 0.01))
        if len(baseline) < least:
            continue
        if len(baseline) == most or statistics.is_decided(candidate, baseline, most, rng):
            found = statistics.speedup(candidate, baseline, rng, resamples=RESAMPLES)
            return statistics.displaces(found, statistics.mde(baseline, rng, splits=200))


def test_looking_block_by_block_credits_no_equal_kernel() -> None:
    runs = 100
    assert sum(contest(seed, 1.0) for seed in range(runs)) <= 0.02 * runs


def test_five_percent_are_seen_on_a_noisy_machine_block_by_block() -> None:
    runs = 40
    assert sum(contest(seed, 1.05) for seed in range(runs)) >= 0.8 * runs


def blocks_of(gain: float, apart: float) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Six blocks whose centres lie so far apart around a gain."""
    shifts = np.array([-1.0, 1.0, -0.5, 0.5, -1.0, 1.0]) * apart
    return [np.full(20, 100 / gain * np.exp(-s)) for s in shifts], [np.full(20, 100.0)] * 6


def test_a_contest_ends_where_more_blocks_would_change_nothing() -> None:
    rng = np.random.default_rng(0)
    cases = {"equal": (1.0, 0.03), "worse": (0.97, 0.001), "clear": (1.4, 0.03)}
    cases |= {"narrow": (1.06, 0.001), "known to a fifth": (1.3, 0.02)}
    for gain, apart in cases.values():
        assert statistics.is_decided(*blocks_of(gain, apart), 12, rng)
    assert not statistics.is_decided(*blocks_of(1.06, 0.03), 12, rng)


def test_blocks_of_unequal_length_pair_up() -> None:
    rng = np.random.default_rng(1)
    gain = statistics.speedup([[1.0] * 5, [1.0] * 9], [[2.0] * 5, [2.0] * 9], rng)
    assert (gain.low, gain.median, gain.high) == (2.0, 2.0, 2.0)


def test_one_seed_gives_one_interval() -> None:
    candidate, baseline = lognormal(np.random.default_rng(2), 30)
    first = statistics.speedup([candidate], [baseline], np.random.default_rng(3))
    assert first == statistics.speedup([candidate], [baseline], np.random.default_rng(3))


def test_mde_follows_the_noise() -> None:
    rng = np.random.default_rng(4)
    quiet = statistics.mde([100 * rng.lognormal(0, 0.01, 60)], rng)
    loud = statistics.mde([100 * rng.lognormal(0, 0.1, 60)], rng)
    assert 0.001 < quiet < 0.02
    assert loud > 4 * quiet
    assert statistics.mde([[5.0] * 10], rng) == 0


def test_the_margin_is_the_larger_of_two_percent_and_the_noise() -> None:
    assert statistics.displaces(Speedup(median=1.1, low=1.03, high=1.2), 0.0)
    assert not statistics.displaces(Speedup(median=1.1, low=1.019, high=1.2), 0.0)
    assert not statistics.displaces(Speedup(median=1.1, low=1.03, high=1.2), 0.05)


@pytest.mark.parametrize(
    ("candidate", "baseline"),
    [
        ([], []),
        ([[1.0]], [[1.0, 2.0]]),
        ([[0.0]], [[1.0]]),
        ([[float("nan")]], [[1.0]]),
        ([[]], [[]]),
    ],
)
def test_samples_that_cannot_be_are_refused(
    candidate: list[list[float]], baseline: list[list[float]]
) -> None:
    with pytest.raises(ValueError):
        statistics.speedup(candidate, baseline, np.random.default_rng(0))


def test_too_few_samples_for_an_a_a_split_are_refused() -> None:
    with pytest.raises(ValueError, match="too few"):
        statistics.mde([[1.0, 2.0, 3.0]], np.random.default_rng(0))


def test_a_timing_keeps_sixty_samples_in_order() -> None:
    found = statistics.timing([np.arange(1.0, 101.0), np.arange(101.0, 201.0)])
    assert found.median_us == pytest.approx(100.5)
    assert len(found.samples_us) == 60
    assert list(found.samples_us) == sorted(found.samples_us)
    assert (found.samples_us[0], found.samples_us[-1]) == (1.0, 200.0)
    assert found.low_us < found.median_us < found.high_us
