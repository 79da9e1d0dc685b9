"""From times to claims: what speed-up may be credited, and how small a one could be seen.

Pure functions of samples and a random generator, which the referee seeds. They know no clock. A
block is the pairs of one process: `candidate[b][i]` and `baseline[b][i]` were taken side by side.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ..traces.records import Speedup, Timing

Blocks = Sequence[npt.ArrayLike]

RESAMPLES = 10_000
LEVEL = 0.95
MINIMUM_GAIN = 0.02
"""No champion is displaced for less: A/A runs differ by 1.5–1.9 % (verification.md §4)."""
SPLITS = 1_000
KEPT_SAMPLES = 60
_CHUNK = 1_000


def speedup(
    candidate_blocks: Blocks,
    baseline_blocks: Blocks,
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
) -> Speedup:
    """Ratio of medians baseline / candidate with the 95 % interval of a paired bootstrap.

    Pairs are resampled as pairs, so that what slows both sides cancels. With several blocks the
    blocks are resampled first and pairs within them second: processes differ more than calls do.

    Raises:
        ValueError: the two sides do not pair up, or a time is not positive and finite.
    """
    candidate, baseline = _paired(candidate_blocks, baseline_blocks)
    median = float(np.median(np.concatenate(baseline)) / np.median(np.concatenate(candidate)))
    ratios = np.concatenate([
        _resample(candidate, baseline, rng, min(_CHUNK, resamples - start))
        for start in range(0, resamples, _CHUNK)
    ])  # fmt: skip
    low, high = np.quantile(ratios, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    # The estimate itself is always inside: a skewed bootstrap could leave it a hair outside.
    return Speedup(median=median, low=min(float(low), median), high=max(float(high), median))


def mde(baseline_blocks: Blocks, rng: np.random.Generator, *, splits: int = SPLITS) -> float:
    """95th percentile of |A/A ratio − 1| over random interleaved splits of one side's samples.

    Neighbours in time are dealt to the two sides by a coin, as candidate and baseline are. Each
    side has half of the samples; the spread of a median shrinks with the root of their number, so
    the figure is divided by the root of two.

    Raises:
        ValueError: there are fewer than four samples in every block.
    """
    whole = [_checked(block) for block in baseline_blocks]
    neighbours = [block[: len(block) // 2 * 2].reshape(-1, 2) for block in whole]
    pairs = np.concatenate(neighbours)
    if len(pairs) < 2:
        raise ValueError(f"{sum(map(len, whole))} samples are too few for an A/A split")
    coins = rng.integers(0, 2, size=(splits, len(pairs)), dtype=np.int8).astype(bool)
    left = np.median(np.where(coins, pairs[:, 0], pairs[:, 1]), axis=1)
    right = np.median(np.where(coins, pairs[:, 1], pairs[:, 0]), axis=1)
    return float(np.quantile(np.abs(left / right - 1.0), LEVEL) / np.sqrt(2.0))


def displaces(gain: Speedup, noise: float) -> bool:
    """Whether the gain is large and sure enough to replace a champion; `noise` is the MDE."""
    return gain.low > 1.0 + max(MINIMUM_GAIN, noise)


def timing(blocks: Blocks) -> Timing:
    """Median and quartiles of one side, with at most 60 samples spread over the run."""
    samples = np.concatenate([_checked(block) for block in blocks])
    low, median, high = np.quantile(samples, [0.25, 0.5, 0.75])
    count = min(len(samples), KEPT_SAMPLES)
    kept = samples[np.linspace(0, len(samples) - 1, count).round().astype(int)]
    return Timing(
        median_us=float(median),
        low_us=float(low),
        high_us=float(high),
        samples_us=tuple(round(float(sample), 4) for sample in kept),
    )


def _resample(
    candidate: list[np.ndarray], baseline: list[np.ndarray], rng: np.random.Generator, count: int
) -> np.ndarray:
    sizes = np.array([len(block) for block in candidate])
    starts = np.cumsum(sizes) - sizes
    draw = round(float(sizes.mean()))
    chosen = np.zeros((count, 1), dtype=np.int64)
    if len(sizes) > 1:
        chosen = rng.integers(0, len(sizes), size=(count, len(sizes)))
    within = rng.random((count, chosen.shape[1], draw)) * sizes[chosen][..., None]
    index = (starts[chosen][..., None] + within.astype(np.int64)).reshape(count, -1)
    ours = np.median(np.concatenate(candidate)[index], axis=1)
    theirs = np.median(np.concatenate(baseline)[index], axis=1)
    return np.asarray(theirs / ours)


def _paired(candidate: Blocks, baseline: Blocks) -> tuple[list[np.ndarray], list[np.ndarray]]:
    ours = [_checked(block) for block in candidate]
    theirs = [_checked(block) for block in baseline]
    if [len(block) for block in ours] != [len(block) for block in theirs]:
        raise ValueError(
            f"blocks do not pair up: {[len(b) for b in ours]} against {[len(b) for b in theirs]}"
        )
    if not ours:
        raise ValueError("there are no samples")
    return ours, theirs


def _checked(block: npt.ArrayLike) -> np.ndarray:
    samples = np.asarray(block, dtype=np.float64)
    if not samples.size or not bool(np.all((samples > 0) & np.isfinite(samples))):
        raise ValueError("every block needs samples, each a positive finite time")
    return samples
