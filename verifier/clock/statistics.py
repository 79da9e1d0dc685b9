# SPDX-License-Identifier: Apache-2.0
"""From times to claims: what speed-up may be credited, and how small a one could be seen.

Pure functions of samples and a random generator, which the referee seeds. They know no clock. A
block is the pairs of one process: `candidate[b][i]` and `baseline[b][i]` were taken side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from ...traces.records import Speedup, Timing

Blocks = Sequence[npt.ArrayLike]

RESAMPLES = 10_000
LEVEL = 0.95
MINIMUM_GAIN = 0.02
"""No champion is displaced for less: A/A runs differ by 1.5–1.9 % (verification.md §4)."""
PRECISE = 0.01
"""Half the width of an interval, as a share, that needs no more blocks."""
PRECISE_SHARE = 0.2
"""The same as a share of the gain that is told: 10 % more or less needs no second decimal place."""
TOLD = 0.03
"""The same of a gain over a library, which is told and decides nothing."""
CLEAR = 1.1
"""An interval that lies above it needs no more blocks either."""
NORMAL_QUANTILE = 1.959964
"""Of a normal distribution at LEVEL, both sides."""
LUCK = 1.5
"""Standard deviations by which the rest of a contest may be better than what is known of it."""
GLANCE = 1_000
"""Resamples that tell whether more blocks are needed."""
SPLITS = 1_000
KEPT_SAMPLES = 60
SEATS = 0.03
"""What it may be worth, as a share, to sit in the candidate's process or in the baselines': six
kernels in both were 2 % apart at most in the mean of five runs, and single runs up to 4 %
(docs/results/fairness.md). A candidate is charged for its answer's way and for whatever it uses
before and behind a call; a library is called from Python."""
_CHUNK = 100


def speedup(
    candidate_blocks: Blocks,
    baseline_blocks: Blocks,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
) -> Speedup:
    """Baseline over candidate, from the ratios of the pairs, with the 95 % interval of a bootstrap.

    What is told is the mean of the middle third of the logarithms of the pairs' ratios: what slows
    both sides of a pair for a while cancels, and what hits one of them now and then is left out.
    Pairs are resampled as pairs. With several blocks the blocks are resampled
    first and pairs within them second: processes differ more than calls do (`_spread`).

    Raises:
        ValueError: the two sides do not pair up, or a time is not positive and finite.
    """
    candidate, baseline = _pair_blocks(candidate_blocks, baseline_blocks)
    logs = [np.log(theirs / ours) for ours, theirs in zip(candidate, baseline, strict=True)]
    told = float(_middle(np.concatenate(logs)))
    spread = _spread(logs)
    drawn = np.concatenate(
        [
            _resample(spread, rng, min(_CHUNK, resamples - start))
            for start in range(0, resamples, _CHUNK)
        ]
    )
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    # The estimate itself is always inside: a skewed bootstrap could leave it a hair outside.
    low, high = min(float(low), told), max(float(high), told)
    return Speedup(
        median=math.exp(told), low=math.exp(low), high=math.exp(high), blocks=len(candidate)
    )


def beside_library(found: Speedup, slowed: float = 1.0) -> Speedup:
    """The ratio to a baseline, whose interval also holds what the seats are worth (SEATS).

    Where the baseline took `slowed` times its time, since others used the machine, its lower end
    is of the time that it takes undisturbed: nobody is credited with what slowed a library.

    It is a systematic part that no number of calls makes smaller, and so is added as it is (JCGM
    100:2008, "Guide to the expression of uncertainty in measurement", section 4.3, type B). Two
    candidates beside each other sit in the same seat, and have no such part.
    """
    more = 1.0 + SEATS
    low = found.low / (more * max(1.0, slowed))
    return found.model_copy(update={"low": low, "high": found.high * more})


def _spread(logs: list[np.ndarray]) -> list[np.ndarray]:
    """The blocks as far apart as those they are a sample of.

    Drawing k of k blocks understates how much they differ by the root of (k − 1)/k, and takes their
    spread for known, which t does not: with both the interval of few blocks is as wide as it must
    be (Hesterberg 2015, "What teachers should know about the bootstrap", section 4.2).
    """
    if len(logs) < 2:
        return logs
    centres = np.array([_middle(block) for block in logs])
    more = math.sqrt(len(logs) / (len(logs) - 1)) * wider(len(logs)) - 1
    shifts = (centres - centres.mean()) * more
    return [block + shift for block, shift in zip(logs, shifts, strict=True)]


@cache
def wider(blocks: int) -> float:
    """Student's t over the normal quantile, for so many blocks: two at least."""
    from scipy.special import stdtrit

    return float(stdtrit(blocks - 1, (1 + LEVEL) / 2)) / NORMAL_QUANTILE


def _middle(values: np.ndarray) -> np.ndarray:
    """The mean of the middle third along the last axis, of three values at least."""
    ordered = np.sort(values, axis=-1)
    out = min(values.shape[-1] // 3, max(0, (values.shape[-1] - 3) // 2))
    return np.asarray(ordered[..., out : values.shape[-1] - out].mean(axis=-1))


def mde(baseline_blocks: Blocks, rng: np.random.Generator, *, splits: int = SPLITS) -> float:
    """95th percentile of |A/A ratio − 1| over random interleaved splits of one side's samples.

    Neighbours in time are the pairs, and a coin deals them to the two sides, as candidate and
    baseline are. There are half as many of them as of real pairs; the spread of such a mean shrinks
    with the root of their number, so the figure is divided by the root of two.

    Raises:
        ValueError: there are fewer than four samples in every block.
    """
    whole = [_to_samples(block) for block in baseline_blocks]
    neighbours = [block[: len(block) // 2 * 2].reshape(-1, 2) for block in whole]
    pairs = np.concatenate(neighbours)
    if len(pairs) < 2:
        raise ValueError(f"{sum(map(len, whole))} samples are too few for an A/A split")
    logs = np.log(pairs[:, 0] / pairs[:, 1])
    coins = rng.integers(0, 2, size=(splits, len(pairs)), dtype=np.int8) * 2 - 1
    found = np.abs(np.expm1(_middle(logs * coins)))
    return float(np.quantile(found, LEVEL) / np.sqrt(2.0))


def displaces(gain: Speedup, noise: float) -> bool:
    """Whether the gain is large and sure enough to replace a champion; `noise` is the MDE."""
    return gain.low > 1.0 + max(MINIMUM_GAIN, noise)


def is_decided(
    candidate_blocks: Blocks, champion_blocks: Blocks, most: int, rng: np.random.Generator
) -> bool:
    """Whether more blocks, of `most` in all, would not change what is said of a challenger.

    So it is where the champion is not going to be displaced any more, or the interval is narrow, or
    far from 1. That a gain has just become large enough to be credited is no reason to stop: an
    interval that is looked at until it pleases says less than it claims.
    """
    if is_lost(candidate_blocks, champion_blocks, most):
        return True
    gain = speedup(candidate_blocks, champion_blocks, rng, resamples=GLANCE)
    precise = max(PRECISE, PRECISE_SHARE * abs(gain.median - 1))
    is_narrow = (gain.high - gain.low) / 2 < precise * gain.median
    return is_narrow or gain.low > CLEAR


def is_told(candidate_blocks: Blocks, baseline_blocks: Blocks, rng: np.random.Generator) -> bool:
    """Whether the gain over a baseline is known as closely as TOLD. How large it is has no part in
    it."""
    gain = speedup(candidate_blocks, baseline_blocks, rng, resamples=GLANCE)
    return (gain.high - gain.low) / 2 < TOLD * gain.median


def is_lost(candidate_blocks: Blocks, champion_blocks: Blocks, most: int) -> bool:
    """Whether all blocks together would not displace the champion, with some luck in the rest.

    The centres of blocks are taken for normal: the mean of `most` of them is within LUCK standard
    deviations of what is left to chance, and their interval as wide as their spread says now.
    """
    candidate, champion = _pair_blocks(candidate_blocks, champion_blocks)
    logs = [np.log(theirs / ours) for ours, theirs in zip(candidate, champion, strict=True)]
    centres = np.array([_middle(block) for block in logs])
    done = len(centres)
    if done < 2:
        return False
    apart = float(centres.std(ddof=1))
    luck = LUCK * apart * math.sqrt(max(0.0, 1 / done - 1 / most))
    half = apart * wider(most) * NORMAL_QUANTILE / math.sqrt(most)
    return float(centres.mean()) + luck - half < math.log1p(MINIMUM_GAIN)


def timing(blocks: Blocks) -> Timing:
    """Median and quartiles of one side, with at most 60 samples spread over the run."""
    samples = np.concatenate([_to_samples(block) for block in blocks])
    low, median, high = np.quantile(samples, [0.25, 0.5, 0.75])
    count = min(len(samples), KEPT_SAMPLES)
    kept = samples[np.linspace(0, len(samples) - 1, count).round().astype(int)]
    return Timing(
        median_us=float(median),
        low_us=float(low),
        high_us=float(high),
        samples_us=tuple(round(float(sample), 4) for sample in kept),
    )


def _resample(logs: list[np.ndarray], rng: np.random.Generator, count: int) -> np.ndarray:
    sizes = np.array([len(block) for block in logs])
    starts = np.cumsum(sizes) - sizes
    draw = round(float(sizes.mean()))
    chosen = np.zeros((count, 1), dtype=np.int64)
    if len(sizes) > 1:
        chosen = rng.integers(0, len(sizes), size=(count, len(sizes)))
    within = rng.random((count, chosen.shape[1], draw)) * sizes[chosen][..., None]
    index = (starts[chosen][..., None] + within.astype(np.int64)).reshape(count, -1)
    return _middle(np.concatenate(logs)[index])


def _pair_blocks(candidate: Blocks, baseline: Blocks) -> tuple[list[np.ndarray], list[np.ndarray]]:
    ours = [_to_samples(block) for block in candidate]
    theirs = [_to_samples(block) for block in baseline]
    if [len(block) for block in ours] != [len(block) for block in theirs]:
        raise ValueError(
            f"blocks do not pair up: {[len(b) for b in ours]} against {[len(b) for b in theirs]}"
        )
    if not ours:
        raise ValueError("there are no samples")
    return ours, theirs


def _to_samples(block: npt.ArrayLike) -> np.ndarray:
    samples = np.asarray(block, dtype=np.float64)
    if not samples.size or not bool(np.all((samples > 0) & np.isfinite(samples))):
        raise ValueError("every block needs samples, each a positive finite time")
    return samples
