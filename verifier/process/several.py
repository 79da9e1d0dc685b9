# SPDX-License-Identifier: Apache-2.0
"""One verdict of several workloads: the candidate is right on all, and as fast as they weigh.

The score is the weighted geometric mean of the workloads' ratios, each against the best baseline
there. Its interval follows from theirs: workloads are timed in processes of their own, so that what
they are wrong by, in logarithms, adds up as squares. The verdict holds this joint measurement
first, and then each workload's own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...traces.records import (
    CHAMPION,
    MODELLED_US,
    Check,
    Measurement,
    Profile,
    Speedup,
    Timing,
    Verdict,
)

BEST_OF_EACH = "best of each"
"""The baseline that is the fastest one of each workload."""


def join_verdicts(name: str, verdicts: Sequence[Verdict], weights: Sequence[float]) -> Verdict:
    """The verdict on all of them, or the first that is no pass, with the workload in its reasons.

    Args:
        name: Of the workloads together.
        verdicts: On each, in the order of `weights`; none behind the first that is no pass.
        weights: How much each workload counts; any positive numbers.
    """
    first, last = verdicts[0], verdicts[-1]
    common: dict[str, object] = {
        "workload": name,
        "seconds": _add_up([verdict.seconds for verdict in verdicts]),
        "checks": tuple(check for verdict in verdicts for check in _place_checks(verdict)),
        "unchecked": tuple(dict.fromkeys(what for each in verdicts for what in each.unchecked)),
        "champion": next((v.champion for v in verdicts if v.champion is not None), None),
    }
    if not last.status.is_pass:
        told = tuple(f"on {last.workload}: {reason}" for reason in last.reasons)
        return last.model_copy(update={**common, "reasons": told})
    timed = [verdict.measurement for verdict in verdicts]
    together = [found for found in timed if found is not None]
    if len(together) == len(verdicts):
        common["measurements"] = (join_measurements(name, together, weights), *together)
    return first.model_copy(update={**common, "profile": _join_profiles(verdicts, weights)})


def join_measurements(
    name: str, found: Sequence[Measurement], weights: Sequence[float]
) -> Measurement:
    """The weighted geometric means, with the interval that follows from the workloads'."""
    common = [set(each.against_baselines) for each in found]
    shared = sorted(set.intersection(*common))
    speedup = {
        BEST_OF_EACH: _join_ratios([_best_of(each) for each in found], weights),
        **{b: _join_ratios([each.speedup[b] for each in found], weights) for b in shared},
    }
    if all(CHAMPION in each.speedup for each in found):
        speedup[CHAMPION] = _join_ratios([each.speedup[CHAMPION] for each in found], weights)
    best = [each.baselines[each.best_baseline] for each in found]

    def mean(of: Callable[[Measurement], float]) -> float:
        return geometric_mean([of(each) for each in found], weights)

    rooflines = [each.roofline for each in found]
    return Measurement(
        workload=name,
        candidate=_join_timings([each.candidate for each in found], weights),
        baselines={
            BEST_OF_EACH: _join_timings(best, weights),
            **{b: _join_timings([each.baselines[b] for each in found], weights) for b in shared},
        },
        speedup=speedup,
        best_baseline=BEST_OF_EACH,
        missing={what: why for each in found for what, why in each.missing.items()},
        pairs=min(each.pairs for each in found),
        blocks=min(each.blocks for each in found),
        disturbed_blocks=max(each.disturbed_blocks for each in found),
        mde=max(each.mde for each in found),
        floor_us=mean(lambda each: max(each.floor_us, 1e-6)),
        roof=found[0].roof,
        roofline=None if None in rooflines else mean(lambda each: max(each.roofline or 0, 1e-9)),
        clock_ratio=found[0].clock_ratio,
        cpu_us=found[0].cpu_us,
        threads=found[0].threads,
        is_launch_bound=any(each.is_launch_bound for each in found),
    )


def geometric_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """exp(Σ w log v / Σ w); values and weights above zero."""
    pairs = zip(values, weights, strict=True)
    return math.exp(sum(w * math.log(v) for v, w in pairs) / sum(weights))


def _best_of(found: Measurement) -> Speedup:
    return found.speedup[found.best_baseline]


def _join_ratios(ratios: Sequence[Speedup], weights: Sequence[float]) -> Speedup:
    """The mean ratio; errors of single ratios are independent, and their logarithms near normal."""
    median = geometric_mean([each.median for each in ratios], weights)

    def reach(end: Callable[[Speedup], float]) -> float:
        off = [math.log(max(end(each), 1e-9) / each.median) for each in ratios]
        squares = sum((w * o) ** 2 for w, o in zip(weights, off, strict=True))
        return math.sqrt(squares) / sum(weights)

    return Speedup(
        median=median,
        low=median * math.exp(-reach(lambda each: each.low)),
        high=median * math.exp(reach(lambda each: each.high)),
        blocks=min(each.blocks for each in ratios),
    )


def _join_timings(timings: Sequence[Timing], weights: Sequence[float]) -> Timing:
    return Timing(
        median_us=geometric_mean([each.median_us for each in timings], weights),
        low_us=geometric_mean([each.low_us for each in timings], weights),
        high_us=geometric_mean([each.high_us for each in timings], weights),
    )


def _join_profiles(verdicts: Sequence[Verdict], weights: Sequence[float]) -> Profile | None:
    """The first workload's; a time that is only modelled is the mean of all."""
    first = verdicts[0].profile
    if first is None:
        return None
    modelled = [verdict.modelled_us for verdict in verdicts]
    times = [us for us in modelled if us is not None]
    metrics = first.metrics
    if len(times) == len(verdicts):
        mean = geometric_mean(times, weights)
        metrics = tuple(
            each.model_copy(update={"value": mean}) if each.name == MODELLED_US else each
            for each in metrics
        )
    of = f"of {verdicts[0].workload}, the weightiest of {len(verdicts)} workloads"
    return first.model_copy(update={"metrics": metrics, "remarks": (of, *first.remarks)})


def _place_checks(verdict: Verdict) -> list[Check]:
    """Each with its workload, where it says none of its own."""
    place = {"workload": verdict.workload}
    return [each if each.workload else each.model_copy(update=place) for each in verdict.checks]


def _add_up(seconds: Sequence[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for each in seconds for name in each)
    return {name: sum(each.get(name, 0.0) for each in seconds) for name in names}
