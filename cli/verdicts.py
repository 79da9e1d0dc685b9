# SPDX-License-Identifier: Apache-2.0
"""How verdicts and winners are put into words for a terminal. Pure; prints nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..kernelbench.languages import Tier
from ..traces.grouped_checks import group_checks
from ..traces.records import (
    CHAMPION,
    Enforcement,
    Measurement,
    Profile,
    Status,
    Verdict,
)
from ..traces.wording import MEANING, figure, micros, percent, preparing, ratio, sharing, speedup

if TYPE_CHECKING:
    from rich.table import Table

EMULATED = "right in an emulation of the target; it did not run there and was not timed"

_STYLE = {
    Status.VERIFIED: "bold green",
    Status.SCREENED: "green",
    Status.SUSPECT: "yellow",
    Status.HARNESS_ERROR: "magenta",
    Status.UNSUPPORTED: "dim",
}


def style_of(status: Status) -> str:
    """The colour of a status; never the only sign of it."""
    return _STYLE.get(status, "red")


def brief(verdict: Verdict) -> str:
    """What one line can say after the status: the headline, or the first reason."""
    measurement = verdict.measurement
    if verdict.modelled_us is not None:
        return f"{micros(verdict.modelled_us)} modelled"
    if measurement is None:
        return verdict.reasons[0] if verdict.reasons else MEANING[verdict.status]
    time = micros(measurement.candidate.median_us)
    headline = measurement.headline
    if headline is None:
        return time
    name = "screen estimate " if verdict.screen_estimate else ""
    told = f"{time}, {name}{speedup(headline)} vs {measurement.best_baseline}"
    rival = measurement.speedup.get(CHAMPION)
    # What quick looks are ranked by: the two took turns.
    return f"{told}, {ratio(rival.median)} beside the leader" if rival and name else told


def explain(verdict: Verdict) -> Iterator[str]:
    """Status, reasons and isolation, line by line."""
    is_emulated = verdict.emulated and verdict.status.is_pass
    meaning = EMULATED if is_emulated else MEANING[verdict.status]
    yield f"{verdict.label}: {meaning}"
    for reason in verdict.reasons:
        yield f"  - {reason}"
    if verdict.tier is Tier.HOST_CODE:
        yield "tier: host-code (a Python module; it may call any library)"
    for missing in verdict.unchecked:
        yield f"not checked: {missing}"
    if verdict.champion is not None:
        why = f"{verdict.champion.status}: {brief(verdict.champion)}"
        yield f"timed without the champion, which no longer holds: {why}"
    isolation = verdict.isolation
    if isolation is not None:
        weak = [
            f"{name} {capability.state}"
            for name, capability in isolation.capabilities.items()
            if capability.state is not Enforcement.ENFORCED
        ]
        yield f"sandbox: {isolation.mechanism}" + (
            f"; not fully enforced: {', '.join(weak)}" if weak else ""
        )


def checks_table(verdict: Verdict, *, is_full: bool = False) -> Table:
    """The checks with their figures; unless `is_full`, those of one kind that passed in one row."""
    table = _table("check", "", "worst", "limit", "detail")
    for name, check in group_checks(verdict.checks, is_full=is_full):
        table.add_row(
            name,
            "ok" if check.passed else "FAIL",
            "" if check.figure is None else figure(check.figure),
            "" if check.limit is None else figure(check.limit),
            check.detail,
            style=None if check.passed else "red",
        )
    return table


def profile_table(profile: Profile) -> Table:
    """The metrics, each with how it came about."""
    table = _table("metric", "value", "unit", "how")
    for metric in profile.metrics:
        table.add_row(metric.name, figure(metric.value), metric.unit, str(metric.level))
    return table


def measurement_table(measurement: Measurement) -> Table:
    """The candidate and each baseline with times and speed-ups."""
    table = _table("", "median", "25–75 %", "candidate is faster by")
    timings = {"candidate": measurement.candidate, **measurement.baselines}
    for name, timing in timings.items():
        gain = measurement.speedup.get(name)
        mark = " *" if name == measurement.best_baseline else ""
        table.add_row(
            name + mark,
            micros(timing.median_us),
            f"{micros(timing.low_us)} – {micros(timing.high_us)}",
            speedup(gain) if gain else "",
        )
    return table


def measurement_notes(measurement: Measurement) -> Iterator[str]:
    """What else a reader must know of a measurement."""
    yield (
        f"{measurement.pairs} pairs on {measurement.threads} CPUs; differences below "
        f"{percent(measurement.mde)} cannot be told from noise; * is the best baseline"
    )
    if measurement.is_disturbed:
        yield (
            "something else kept this machine busy: it took CPUs, or baselines or a copy of as "
            "many bytes took much longer, "
            f"in {measurement.disturbed_blocks} of {measurement.blocks} "
            "processes, all of which count; lower ends are held against what baselines take "
            "undisturbed, and speed-ups on a quiet machine may be others"
        )
    elif measurement.disturbed_blocks:
        yield (
            f"{measurement.disturbed_blocks} of {measurement.blocks} processes were timed while "
            "something else kept this machine busy, and count only where few others are there"
        )
    for name, reason in measurement.missing.items():
        yield f"baseline {name} did not run: {reason}"
    if measurement.roofline is not None:
        roof = f" ({measurement.roof})" if measurement.roof else ""
        yield f"{percent(measurement.roofline)} of this machine's measured roofline{roof}"
    if prepared := preparing(measurement):
        yield f"prepared: {prepared}"
    if shared := sharing(measurement):
        yield shared
    if measurement.is_launch_bound:
        yield "very short: the figure includes much of the call's own cost"


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(heading, no_wrap=heading in ("check", "median"))
    return table
