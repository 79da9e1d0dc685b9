# SPDX-License-Identifier: Apache-2.0
"""Fits the model of time to what was measured: one factor for each of its terms, one for launches.

The terms of each candidate stand in its profile, so a store of campaigns on a device is enough.
The factors minimise the squared logarithm of modelled over measured time, and are drawn towards 1,
where few candidates say anything of a term. What they are worth is told on tasks that the fit has
not seen, each left out in turn; factors that are no better there are of no use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...errors import UsageError
from .derive import MeasuredSample
from .model import LAUNCH_US

LAUNCHING = "launching"
"""The factor of what a launch takes by itself."""
FITTED = "fitted_model"
"""The metric of profiles whose terms are scaled already: nothing is fitted to those."""
LEAST = 8
"""Candidates without which nothing is fitted."""
LEAST_TASKS = 2
DRAWN = 0.3
"""Of the logarithm of a factor: its pull towards 0, where an error of one candidate weighs 1."""
_FIRST, _LAST = "model_", "_us"
_LAUNCHING = "launching_us"
_POWER = 4
"""Of the terms, as model.Estimate joins them."""


class Errors(NamedTuple):
    """How modelled times stand to measured ones."""

    bias: float
    """The median of modelled over measured."""
    nine_of_ten: float
    """Within this factor lie nine of ten."""
    squares: float
    """The mean square of the logarithm."""


@dataclass(frozen=True)
class Fitted:
    """The factors for one target, and what they are worth."""

    scales: Mapping[str, float]
    """By term, as metrics name it: `memory`, `load_store`, `launching`."""
    candidates: Mapping[str, int]
    """By task."""
    before: Errors
    after: Errors
    """On the same candidates."""
    held_out: Errors
    """On each task with the factors of all others."""

    @property
    def is_better(self) -> bool:
        """Whether tasks that were left out are told better than before."""
        return self.held_out.squares < self.before.squares


def fit(samples: Sequence[MeasuredSample]) -> Fitted:
    """The factors of candidates measured on one target.

    Raises:
        UsageError: too few of them have terms of the model, or they are of one task.
    """
    known = [one for one in samples if _terms(one.metrics) and FITTED not in one.metrics]
    tasks = sorted({one.task for one in known})
    if len(known) < LEAST or len(tasks) < LEAST_TASKS:
        raise UsageError(
            f"{len(known)} measured candidates of {len(tasks)} tasks have modelled terms, at least "
            f"{LEAST} of {LEAST_TASKS} are needed",
            hint="run campaigns of several problems on the device first",
        )
    held_out: list[float] = []
    for task in tasks:
        others = [one for one in known if one.task != task]
        scales = _solve(others)
        held_out += [_off(one, scales) for one in known if one.task == task]
    scales = _solve(known)
    return Fitted(
        scales,
        {task: sum(one.task == task for one in known) for task in tasks},
        _errors([_off(one, {}) for one in known]),
        _errors([_off(one, scales) for one in known]),
        _errors(held_out),
    )


def modelled_us(metrics: Mapping[str, float], scales: Mapping[str, float]) -> float:
    """The time by the terms of a profile; of several launches their terms are added up."""
    terms = [scales.get(name, 1.0) * value for name, value in _terms(metrics).items()]
    work = math.pow(sum(term**_POWER for term in terms), 1 / _POWER)
    launching = metrics.get(_LAUNCHING, LAUNCH_US * metrics.get("launches", 1.0))
    return work + scales.get(LAUNCHING, 1.0) * launching


def _terms(metrics: Mapping[str, float]) -> dict[str, float]:
    return {
        name.removeprefix(_FIRST).removesuffix(_LAST): value
        for name, value in metrics.items()
        if name.startswith(_FIRST) and name.endswith(_LAST) and value > 0
    }


def _off(sample: MeasuredSample, scales: Mapping[str, float]) -> float:
    return math.log(modelled_us(sample.metrics, scales) / sample.time_us)


def _errors(off: Sequence[float]) -> Errors:
    found = np.array(off)
    return Errors(
        math.exp(float(np.median(found))),
        math.exp(float(np.quantile(np.abs(found), 0.9))),
        float(np.mean(found**2)),
    )


def _solve(samples: Sequence[MeasuredSample]) -> dict[str, float]:
    from scipy.optimize import least_squares

    names = [*sorted({name for one in samples for name in _terms(one.metrics)}), LAUNCHING]

    def residuals(logs: np.ndarray) -> np.ndarray:
        scales = dict(zip(names, np.exp(logs).tolist(), strict=True))
        return np.array([*(_off(one, scales) for one in samples), *(DRAWN * logs)])

    found = least_squares(residuals, np.zeros(len(names)), bounds=(-math.log(10), math.log(10)))
    return dict(zip(names, np.exp(found.x).tolist(), strict=True))
