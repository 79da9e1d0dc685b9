# SPDX-License-Identifier: Apache-2.0
"""What the scores of a bench show, workflow by workflow.

Every (problem, seed) counts, and one without a verified winner counts as 0. Intervals come from a
bootstrap that draws problems first and seeds within them second: kernels of one problem are more
alike than kernels of two. Pure functions of scores; the random numbers are seeded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from .plan import Bench
from .scores import Score, Spent

if TYPE_CHECKING:
    import numpy as np

    Statistic = Callable[[np.ndarray], np.ndarray]
    """Along the last axis."""

THRESHOLDS = (0.0, 1.0, 1.5, 2.0)
"""The p of fast_p: the share of kernels that are right and more than p times as fast."""

RESAMPLES = 10_000
LEVEL = 0.95
SEED = 20_260


class IntervalEstimate(NamedTuple):
    """A figure with its 95 % interval, which a single campaign does not have."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class WorkflowScores:
    """One workflow over all problems and seeds."""

    workflow: str
    scores: tuple[Score, ...]
    fast: dict[float, float]
    """fast_p by p; at 0 it is the share of correct ones."""
    median: IntervalEstimate
    geometric_mean: IntervalEstimate
    """0 as soon as one campaign found nothing."""
    among_verified: IntervalEstimate | None
    """The geometric mean of those that found something; None where none did."""
    difference: IntervalEstimate | None
    """Mean paired difference to the first arm; None for that one."""
    anytime: dict[str, list[tuple[float, float]]]
    """By cap: what was spent of it, and the mean credited speed-up from there on."""

    @property
    def correct(self) -> float:
        """The share of campaigns with a verified winner."""
        return sum(score.is_verified for score in self.scores) / len(self.scores)

    @property
    def per_kernel(self) -> dict[str, float | None]:
        """Means over the campaigns."""
        whole = {name: self._mean(name) for name in Spent._fields}
        calls = sum(score.calls for score in self.scores) / len(self.scores)
        return {**whole, "calls": calls}

    @property
    def stopped_by(self) -> dict[str, int]:
        """How often each end came about."""
        return dict(Counter(score.stopped_by for score in self.scores).most_common())

    def _mean(self, name: str) -> float | None:
        found = [getattr(score.spent, name) for score in self.scores]
        return None if None in found else sum(found) / len(found)


def summarise(bench: Bench, scores: Iterable[Score]) -> list[WorkflowScores]:
    """The arms in the order of the workflows; every trial of the bench must have its score."""
    known = {score.trial: score for score in scores}
    by_arm = {
        workflow: [
            [known[trial] for trial in bench.trials(problem) if trial.workflow == workflow]
            for problem in bench.problems
        ]
        for workflow in bench.workflows
    }
    first = _credited_array(by_arm[bench.workflows[0]])
    arms = []
    for workflow, rows in by_arm.items():
        credited = _credited_array(rows)
        is_first = workflow == bench.workflows[0]
        arms.append(
            WorkflowScores(
                workflow=workflow,
                scores=tuple(score for row in rows for score in row),
                fast={p: float((credited > p).mean()) for p in THRESHOLDS},
                median=estimate(credited, _median),
                geometric_mean=estimate(credited, _geometric_mean),
                among_verified=_among_verified(credited),
                difference=None if is_first else estimate(credited - first, _mean),
                anytime={cap: _average_stairs(rows, cap) for cap in bench.limits},
            )
        )
    return arms


def estimate(values: np.ndarray, statistic: Statistic) -> IntervalEstimate:
    """The statistic of `values[problem, seed]` with its interval."""
    import numpy as np

    value = float(statistic(values.reshape(-1)))
    if values.size < 2:
        return IntervalEstimate(value)
    rng = np.random.default_rng(SEED)
    problems, seeds = values.shape
    rows = rng.integers(0, problems, (RESAMPLES, problems, 1))
    columns = rng.integers(0, seeds, (RESAMPLES, problems, seeds))
    drawn = statistic(values[rows, columns].reshape(RESAMPLES, -1))
    # A draw of nothing but failures has no mean among the verified.
    drawn = drawn[~np.isnan(drawn)]
    low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return IntervalEstimate(value, min(float(low), value), max(float(high), value))


def _credited_array(rows: Sequence[Sequence[Score]]) -> np.ndarray:
    import numpy as np

    return np.array([[score.credited for score in row] for row in rows], dtype=np.float64)


def _among_verified(credited: np.ndarray) -> IntervalEstimate | None:
    return estimate(credited, _mean_of_positive) if bool((credited > 0).any()) else None


def _median(values: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.asarray(np.median(values, axis=-1))


def _mean(values: np.ndarray) -> np.ndarray:
    import numpy as np

    return np.asarray(values.mean(axis=-1))


def _geometric_mean(values: np.ndarray) -> np.ndarray:
    import numpy as np

    with np.errstate(divide="ignore"):
        return np.asarray(np.exp(np.log(values).mean(axis=-1)))


def _mean_of_positive(values: np.ndarray) -> np.ndarray:
    import numpy as np

    is_found = values > 0
    logs = np.log(np.where(is_found, values, 1.0))
    with np.errstate(invalid="ignore"):
        return np.asarray(np.exp(logs.sum(axis=-1) / is_found.sum(axis=-1)))


def _average_stairs(rows: Sequence[Sequence[Score]], cap: str) -> list[tuple[float, float]]:
    """The mean of the campaigns' stairs; a spend that is not known is left out."""
    stairs = []
    for score in (score for row in rows for score in row):
        steps = [(getattr(step.spent, cap), step.credited) for step in score.steps]
        if any(spent is None for spent, _ in steps):
            return []
        stairs.append(steps)
    corners = sorted({0.0, *(float(spent) for steps in stairs for spent, _ in steps)})

    def height(steps: list[tuple[float, float]], spent: float) -> float:
        reached = [credited for at, credited in steps if at <= spent]
        return reached[-1] if reached else 0.0

    return [(at, sum(height(steps, at) for steps in stairs) / len(stairs)) for at in corners]
