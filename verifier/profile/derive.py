# SPDX-License-Identifier: Apache-2.0
"""Which metrics go with the time: chosen from measured candidates, as CudaForge describes.

For each task (a problem with its workload) the fastest and the slowest candidates are taken, so
that the spread is large. What hardly varies goes, what is the time under another name goes, and of
two that always move together the one that tells less goes. The rest is held against the time by
Pearson's r on the logarithm of the time, which spans orders of magnitude. Kept is what is among the
strongest of a task, points the same way in every task that tells it, and is strong on average
(workflows.md §1.1, peers.md). Correlation over few kernels is a hint for a Judge, not a cause.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from ...errors import UsageError
from ...traces.history import History

EXTREMES = 5
"""Fastest and slowest candidates of a task that are looked at, each."""
LEAST = 6
"""A task with fewer measured candidates says nothing."""
FLAT = 0.01
"""Spread over mean below which a metric does not vary."""
ALIAS = 0.999
"""|r| of logarithms from which a metric is the time itself, or its reciprocal."""
CLOCKS = re.compile(r"time_duration|__cycles_(active|elapsed)\.(avg|max|min|sum)$")
"""Counters that are clocks. Beside times of other calls, with a cold cache, they correlate by 0.97
and not by ALIAS, and before all that could explain it (docs/results/metrics-derived.md)."""
COLLINEAR = 0.95
TOP = 20
"""Strongest metrics of a task that may be kept."""
QUANTILE = 0.75
"""Of the mean |r| of all that are left: what must be exceeded or met."""


class MeasuredSample(NamedTuple):
    """One measured candidate."""

    task: str
    target: str
    tags: tuple[str, ...]
    time_us: float
    metrics: Mapping[str, float]


class Fate(StrEnum):
    """What became of a metric."""

    KEPT = "kept"
    FLAT = "hardly varies"
    ALIAS = "is the time under another name"
    COLLINEAR = "moves with another"
    WEAK = "too weak"
    UNSTABLE = "its sign changes"
    ONCE = "told by one task only"


@dataclass(frozen=True)
class Ranked:
    """One metric and what was found of it."""

    name: str
    fate: Fate
    strength: float = 0.0
    """Mean of |r| over the tasks that tell it."""
    r: Mapping[str, float] = field(default_factory=dict)
    """By task; positive: slower kernels have more of it."""
    note: str = ""


@dataclass(frozen=True)
class Derived:
    """The outcome for one target."""

    ranked: tuple[Ranked, ...]
    """Kept first, the strongest first."""
    tasks: Mapping[str, int]
    """Candidates looked at, by task."""
    left_out: Mapping[str, str]
    """Tasks that say nothing, with the reason."""

    @property
    def kept(self) -> tuple[str, ...]:
        """The names to feed a Judge."""
        return tuple(one.name for one in self.ranked if one.fate is Fate.KEPT)


class _Column(NamedTuple):
    """One metric of a task, over those of its candidates that tell it."""

    time: np.ndarray
    """Natural logarithm, of the extreme candidates."""
    values: np.ndarray
    """Likewise."""
    every: Mapping[int, float]
    """Of all that tell it, by their places among the task's candidates."""


class _Task(NamedTuple):
    """The metrics of a task that enough of its candidates tell."""

    metrics: dict[str, _Column]

    @property
    def looked_at(self) -> int:
        """The most candidates that a metric was taken of."""
        return max(column.values.size for column in self.metrics.values())


def samples_of(history: History, tags: Sequence[str]) -> list[MeasuredSample]:
    """The measured candidates of a campaign with their profiles."""
    found = []
    for entry in history.entries.values():
        verdict = entry.verdict
        if verdict is None or verdict.profile is None or verdict.measurement is None:
            continue
        metrics = {metric.name: metric.value for metric in verdict.profile.metrics}
        task = f"{verdict.problem}/{verdict.workload}"
        time_us = verdict.measurement.candidate.median_us
        found.append(MeasuredSample(task, verdict.target, tuple(tags), time_us, metrics))
    return found


def read_samples(lines: Iterable[str], where: str) -> list[MeasuredSample]:
    """Samples from JSON lines: `{"task", "target", "tags", "time_us", "metrics": {name: value}}`.

    Raises:
        UsageError: a line does not have this form.
    """
    found = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            one = json.loads(line)
            metrics = {str(k): float(v) for k, v in one["metrics"].items() if v is not None}
            time_us = float(one["time_us"])
            tags = tuple(str(tag) for tag in one.get("tags", ()))
            if not (time_us > 0 and math.isfinite(time_us)):
                raise ValueError(f"time_us is {time_us}")
            found.append(
                MeasuredSample(str(one["task"]), str(one.get("target", "")), tags, time_us, metrics)
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(
                f"{where}:{number} is no sample ({type(error).__name__}: {error})",
                hint='a line is {"task": "spmm/cora", "target": "sm_90", "time_us": 12.5, '
                '"metrics": {"name": 1.0}}',
            ) from error
    return found


def derive(
    samples: Sequence[MeasuredSample], *, extremes: int = EXTREMES, quantile: float = QUANTILE
) -> Derived:
    """Ranks the metrics of samples that were taken on one target.

    Raises:
        UsageError: no task has enough candidates.
    """
    tasks, left_out = _tasks(samples, extremes)
    if not tasks:
        told = "; ".join(f"{task}: {why}" for task, why in left_out.items()) or "none was measured"
        raise UsageError(
            f"no task has enough measured candidates to derive metrics from ({told})",
            hint=f"run campaigns until a task has at least {LEAST} candidates with a profile",
        )
    names = dict.fromkeys(name for task in tasks.values() for name in task.metrics)
    dropped, r = _correlations(tasks, names)
    dropped += _find_unsteady(tasks, r)
    dropped += _find_collinear(tasks, _drop_metrics(r, dropped))
    chosen = _choose_strongest(_drop_metrics(r, dropped), tasks, quantile)
    ranked = sorted([*chosen, *dropped], key=lambda o: (o.fate is not Fate.KEPT, -o.strength))
    return Derived(tuple(ranked), {name: one.looked_at for name, one in tasks.items()}, left_out)


def _tasks(
    samples: Sequence[MeasuredSample], extremes: int
) -> tuple[dict[str, _Task], dict[str, str]]:
    """The tasks with their metrics, and the tasks that have too few candidates.

    Counters are read of those candidates that a Judge looked at, so that each metric has its own.
    """
    by_task: dict[str, list[MeasuredSample]] = {}
    for sample in samples:
        by_task.setdefault(sample.task, []).append(sample)
    tasks, left_out = {}, {}
    for name, found in by_task.items():
        ordered = sorted(found, key=lambda sample: sample.time_us)
        names = dict.fromkeys(metric for sample in ordered for metric in sample.metrics)
        columns = {metric: _column(ordered, metric, extremes) for metric in names}
        told = {metric: one for metric, one in columns.items() if len(one.every) >= LEAST}
        if len(ordered) < LEAST:
            left_out[name] = f"{len(ordered)} measured candidates, {LEAST} are needed"
        elif not told:
            left_out[name] = f"no metric is told by {LEAST} of its {len(ordered)} candidates"
        else:
            tasks[name] = _Task(told)
    return tasks, left_out


def _column(ordered: Sequence[MeasuredSample], name: str, extremes: int) -> _Column:
    """A metric of the fastest and slowest candidates that tell it."""
    told = [(at, sample) for at, sample in enumerate(ordered) if name in sample.metrics]
    ends = told if len(told) <= 2 * extremes else [*told[:extremes], *told[-extremes:]]
    return _Column(
        np.log([sample.time_us for _, sample in ends]),
        np.array([sample.metrics[name] for _, sample in ends]),
        {at: sample.metrics[name] for at, sample in told},
    )


def _correlations(
    tasks: Mapping[str, _Task], names: Iterable[str]
) -> tuple[list[Ranked], dict[str, dict[str, float]]]:
    """r with the time by metric and task; and the metrics that vary nowhere or are the time."""
    dropped = []
    r: dict[str, dict[str, float]] = {}
    for name in names:
        told = {task: one.metrics[name] for task, one in tasks.items() if name in one.metrics}
        varying = {task: one for task, one in told.items() if _varies(one.values)}
        if not varying:
            dropped.append(Ranked(name, Fate.FLAT))
        elif CLOCKS.search(name) or all(_is_the_time(o.values, o.time) for o in varying.values()):
            dropped.append(Ranked(name, Fate.ALIAS, 1.0))
        else:
            r[name] = {t: _pearson(one.values, one.time) for t, one in varying.items()}
    return dropped, r


def _find_unsteady(
    tasks: Mapping[str, _Task], r: Mapping[str, Mapping[str, float]]
) -> list[Ranked]:
    """Metrics that only one of several tasks tells, or whose sign is not the same in all."""
    found = []
    for name, by_task in r.items():
        if len(by_task) < min(2, len(tasks)):
            found.append(Ranked(name, Fate.ONCE, _strength(by_task), by_task))
        elif len({value > 0 for value in by_task.values()}) > 1:
            found.append(Ranked(name, Fate.UNSTABLE, _strength(by_task), by_task))
    return found


def _find_collinear(
    tasks: Mapping[str, _Task], r: Mapping[str, Mapping[str, float]]
) -> list[Ranked]:
    """Metrics that move with a stronger one in every task that tells both.

    Over all candidates: at the extremes whatever goes with the time goes with everything else.
    """
    kept: list[str] = []
    dropped = []
    for name in sorted(r, key=lambda name: -_strength(r[name])):
        twin = next((other for other in kept if _move_together(tasks, r, name, other)), None)
        if twin is None:
            kept.append(name)
        else:
            strength = _strength(r[name])
            dropped.append(Ranked(name, Fate.COLLINEAR, strength, r[name], f"with {twin}"))
    return dropped


def _move_together(
    tasks: Mapping[str, _Task], r: Mapping[str, Mapping[str, float]], name: str, other: str
) -> bool:
    shared = r[name].keys() & r[other].keys()
    pairs = [_pair_up(tasks[t].metrics[name].every, tasks[t].metrics[other].every) for t in shared]
    # Two that too few candidates tell both of may move as they like.
    pairs = [pair for pair in pairs if pair[0].size >= LEAST]
    return bool(pairs) and all(abs(_pearson(*pair)) > COLLINEAR for pair in pairs)


def _pair_up(one: Mapping[int, float], other: Mapping[int, float]) -> tuple[np.ndarray, np.ndarray]:
    """The values of the candidates that tell both."""
    both = sorted(one.keys() & other.keys())
    return np.array([one[at] for at in both]), np.array([other[at] for at in both])


def _choose_strongest(
    r: Mapping[str, Mapping[str, float]], tasks: Mapping[str, _Task], quantile: float
) -> list[Ranked]:
    """What is among the strongest of a task, and strong on average."""
    top = {
        name
        for task in tasks
        for name in sorted((n for n in r if task in r[n]), key=lambda n: -abs(r[n][task]))[:TOP]
    }
    strengths = {name: _strength(by_task) for name, by_task in r.items()}
    limit = float(np.quantile([strengths[name] for name in top], quantile)) if top else 0.0
    return [
        Ranked(
            name,
            Fate.KEPT if name in top and strengths[name] >= limit else Fate.WEAK,
            strengths[name],
            by_task,
        )
        for name, by_task in r.items()
    ]


def _drop_metrics(
    r: Mapping[str, Mapping[str, float]], dropped: Sequence[Ranked]
) -> dict[str, Mapping[str, float]]:
    gone = {one.name for one in dropped}
    return {name: by_task for name, by_task in r.items() if name not in gone}


def _strength(by_task: Mapping[str, float]) -> float:
    return float(np.mean([abs(value) for value in by_task.values()]))


def _varies(values: np.ndarray) -> bool:
    scale = float(np.abs(values).mean())
    return scale > 0 and float(values.std()) > FLAT * scale


def _is_the_time(values: np.ndarray, log_time: np.ndarray) -> bool:
    return bool((values > 0).all()) and abs(_pearson(np.log(values), log_time)) >= ALIAS


def _pearson(left: np.ndarray, right: np.ndarray) -> float:
    a, b = left - left.mean(), right - right.mean()
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale > 0 else 0.0
