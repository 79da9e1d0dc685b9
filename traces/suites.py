# SPDX-License-Identifier: Apache-2.0
"""The campaigns of a suite as rows of one table: what each found, beside every baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from .events import CampaignStarted
from .records import Measurement, Speedup, Timing
from .sheet import Sheet


class SuiteRow(NamedTuple):
    """What one campaign of a suite found."""

    task: str
    workload: str
    campaign: str
    status: str
    """VERIFIED, or why there is no winner."""
    candidate: Timing | None
    gain: Speedup | None
    """Against the best baseline."""
    best_baseline: str
    baselines: dict[str, float]
    """Medians in microseconds, the fastest first."""
    roofline: float | None
    regret: float | None
    """By what share of its time the winner is slower than the fastest found, at most (95 %)."""
    seconds: float = 0.0
    """From its first event to its last, preparation included."""


def suite_of(started: CampaignStarted) -> str:
    """Which suite a campaign was made for; empty: for none."""
    request = started.config.get("request")
    return str(request.get("suite") or "") if isinstance(request, dict) else ""


def find_suites(
    starts: Iterable[tuple[str, CampaignStarted]],
) -> dict[str, tuple[str, ...]]:
    """By suite its campaigns, of several on one workload the newest; the suite begun last is last.

    Args:
        starts: every campaign with its first event, oldest first.
    """
    found: dict[str, dict[tuple[str, str], str]] = {}
    for campaign, started in starts:
        if name := suite_of(started):
            found.setdefault(name, {})[started.problem, started.workload] = campaign
    return {name: tuple(campaigns.values()) for name, campaigns in found.items()}


def average(ratios: Iterable[float]) -> float | None:
    """The geometric mean; None of none."""
    logs = [math.log(each) for each in ratios if each > 0]
    return math.exp(math.fsum(logs) / len(logs)) if logs else None


def sum_up(sheet: Sheet) -> SuiteRow:
    """The row of a campaign."""
    head = sheet.head
    best = sheet.read_whole([head.champion])[head.champion] if head.champion else None
    verdict = best.verdict if best else None
    timed = verdict.measurement if verdict else None
    return SuiteRow(
        task=head.started.problem,
        workload=head.started.workload,
        campaign=head.campaign,
        status=str(verdict.status) if verdict else "no winner",
        candidate=timed.candidate if timed else None,
        gain=timed.headline if timed else None,
        best_baseline=timed.best_baseline if timed else "",
        baselines=_list_baselines(timed) if timed else {},
        roofline=timed.roofline if timed else None,
        regret=head.sureness.regret_at_most if head.sureness else None,
        seconds=head.last_at - head.started_at,
    )


def _list_baselines(timed: Measurement) -> dict[str, float]:
    known = {n: t.median_us for n, t in timed.baselines.items() if n in timed.against_baselines}
    return dict(sorted(known.items(), key=lambda each: each[1]))
