# SPDX-License-Identifier: Apache-2.0
"""The campaigns of a suite as rows of one table: what each found, beside every baseline."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

from .events import CampaignStarted
from .history import History
from .records import Measurement, Speedup, Timing


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


def sum_up(history: History) -> SuiteRow:
    """The row of a campaign."""
    best = history.best
    verdict = best.verdict if best else None
    timed = verdict.measurement if verdict else None
    sure = history.finished.sureness if history.finished else None
    return SuiteRow(
        task=history.started.problem,
        workload=history.started.workload,
        campaign=history.campaign,
        status=str(verdict.status) if verdict else "no winner",
        candidate=timed.candidate if timed else None,
        gain=timed.headline if timed else None,
        best_baseline=timed.best_baseline if timed else "",
        baselines=_list_baselines(timed) if timed else {},
        roofline=timed.roofline if timed else None,
        regret=sure.regret_at_most if sure else None,
        seconds=history.last_at - history.started_at,
    )


def _list_baselines(timed: Measurement) -> dict[str, float]:
    known = {n: t.median_us for n, t in timed.baselines.items() if n in timed.against_baselines}
    return dict(sorted(known.items(), key=lambda each: each[1]))
