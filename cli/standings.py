# SPDX-License-Identifier: Apache-2.0
"""A bench's result for people and for programs. Pure functions of what `bench` summed up."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from ..compare.plan import Bench
from ..compare.scores import Score, Spent
from ..compare.summary import THRESHOLDS, IntervalEstimate, WorkflowScores
from ..traces.schemas import Document, Dumped
from ..traces.wording import duration, tokens, usd

if TYPE_CHECKING:
    from rich.table import Table


_Estimate = Annotated[dict[str, Any], Dumped(IntervalEstimate)]


class _Bench(Document):
    workflows: list[str]
    problems: list[str]
    seeds: int
    budget: dict[str, float]
    target: str
    language: str
    workload: str | None
    model: str
    judge_model: str
    label: str | None


class _Step(Document):
    evaluations: int
    seconds: float
    usd: float | None
    tokens: int
    device_seconds: float
    credited: float


class BenchedCampaign(Document):
    campaign: str
    problem: str
    seed: int
    credited: float
    """0 where nothing was verified."""
    stopped_by: str
    spent: Annotated[dict[str, Any], Dumped(Spent)]
    calls: int
    replies: int
    by_status: dict[str, int]
    anytime: list[Annotated[dict[str, Any], Dumped(_Step)]]
    """Each change of champion, and what had been spent by then."""


class ArmShape(Document):
    workflow: str
    correct: float
    """The share of campaigns with a verified winner."""
    fast: dict[str, float]
    """fast_p by p."""
    median: _Estimate
    geometric_mean: _Estimate
    geometric_mean_verified: _Estimate | None
    difference_to_first: _Estimate | None
    per_kernel: dict[str, float | None]
    stopped_by: dict[str, int]
    anytime: dict[str, list[list[float]]]
    """By cap: what was spent of it, and the mean credited speed-up from there on."""
    campaigns: list[BenchedCampaign]


class BenchDocument(Document):
    """Workflows beside each other."""

    bench: _Bench
    arms: list[ArmShape]


def document(bench: Bench, arms: list[WorkflowScores]) -> BenchDocument:
    """The document of `bench --json`."""
    return {
        "bench": {
            "workflows": list(bench.workflows),
            "problems": list(bench.problems),
            "seeds": bench.seeds,
            "budget": dict(bench.limits),
            "target": bench.target,
            "language": bench.language,
            "workload": bench.workload or None,
            "model": bench.model,
            "judge_model": bench.judge_model,
            "label": bench.label or None,
        },
        "arms": [_arm(arm) for arm in arms],
    }


def _arm(arm: WorkflowScores) -> ArmShape:
    return {
        "workflow": arm.workflow,
        "correct": arm.correct,
        "fast": {f"{p:g}": share for p, share in arm.fast.items()},
        "median": arm.median._asdict(),
        "geometric_mean": arm.geometric_mean._asdict(),
        "geometric_mean_verified": arm.among_verified._asdict() if arm.among_verified else None,
        "difference_to_first": arm.difference._asdict() if arm.difference else None,
        "per_kernel": arm.per_kernel,
        "stopped_by": arm.stopped_by,
        "anytime": {cap: [list(point) for point in curve] for cap, curve in arm.anytime.items()},
        "campaigns": [_campaign(score) for score in arm.scores],
    }


def _campaign(score: Score) -> BenchedCampaign:
    steps = [{**step.spent._asdict(), "credited": step.credited} for step in score.steps]
    return {
        "campaign": score.campaign,
        "problem": score.trial.problem,
        "seed": score.trial.seed,
        "credited": score.credited,
        "stopped_by": score.stopped_by,
        "spent": score.spent._asdict(),
        "calls": score.calls,
        "replies": score.replies,
        "by_status": score.by_status,
        "anytime": steps,
    }


def tables(bench: Bench, arms: list[WorkflowScores]) -> Iterator[Table | str]:
    """What was found, and what it cost."""
    yield _outcome_table(arms)
    yield _cost(arms)
    pairs = len(bench.problems) * bench.seeds
    yield (
        f"{pairs} campaigns each; speed-ups are credited lower bounds against the best baseline, "
        f"0 where nothing was verified; in brackets 95 % intervals; Δ is the mean paired "
        f"difference to {bench.workflows[0]}"
    )


def _table(*headings: str) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    return table


def _outcome_table(arms: list[WorkflowScores]) -> Table:
    table = _table(
        "workflow",
        "correct",
        *(f"fast_{p:g}" for p in THRESHOLDS),
        "median",
        "geo. mean",
        "of the verified",
        "Δ",
    )
    for arm in arms:
        table.add_row(
            arm.workflow,
            f"{arm.correct:.0%}",
            *(f"{arm.fast[p]:.0%}" for p in THRESHOLDS),
            _figure(arm.median),
            _figure(arm.geometric_mean),
            _figure(arm.among_verified),
            _figure(arm.difference, "+.2f"),
        )
    return table


def _cost(arms: list[WorkflowScores]) -> Table:
    table = _table(
        "per kernel", "cost", "tokens", "calls", "evaluations", "time", "device time", "stopped by"
    )
    for arm in arms:
        mean = {name: value or 0.0 for name, value in arm.per_kernel.items()}
        table.add_row(
            arm.workflow,
            usd(arm.per_kernel["usd"]),
            tokens(mean["tokens"]),
            f"{mean['calls']:.1f}",
            f"{mean['evaluations']:.1f}",
            duration(mean["seconds"]),
            duration(mean["device_seconds"]),
            ", ".join(f"{count} × {end}" for end, count in arm.stopped_by.items()),
        )
    return table


def _figure(estimate: IntervalEstimate | None, form: str = ".2f") -> str:
    if estimate is None:
        return "-"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:{form}}"
    return f"{estimate.value:{form}} [{estimate.low:{form}}, {estimate.high:{form}}]"
