# SPDX-License-Identifier: Apache-2.0
"""What a campaign is asked and what it answers: its request, its first event and its result.

It only describes; how a campaign is run stands in `running.py`, its rounds in `workflows/`.
"""

from __future__ import annotations

from hashlib import sha256

from pydantic import ConfigDict, Field, JsonValue, field_validator

from ...kernelbench import registry
from ...kernelbench.languages import CPP, tier_of
from ...kernelbench.machine import machine_facts, versions
from ...kernelbench.problem import Problem, Tensor, Workload
from ...kernelbench.targets import CPU
from ...traces.events import CampaignStarted
from ...traces.options import Options
from ...traces.records import Record, Speedup
from ...verifier.request import Referee
from ..offered import usual_workflow
from .budget import CAPS, check_limits
from .ledger import Ledger
from .past import Past, dump_past
from .progress import Progress


class CampaignRequest(Options):
    """What a user asks for."""

    # An infinite limit is refused by check_limits, in words for people.
    model_config = ConfigDict(allow_inf_nan=True)

    problem: str
    workload: str = ""
    """A workload's name or a matrix file's path; empty: the problem's default."""
    target: str = CPU
    language: str = CPP.name
    model: str = "recipe"
    workflow: str = Field(default_factory=lambda given: usual_workflow(given["model"]))
    """The usual one of the Coder, unless told otherwise."""
    judge_model: str = "rules"
    limits: dict[str, float] = Field(default_factory=dict)
    """Hard caps: `evaluations`, `seconds`, `usd`, `tokens`, `device_seconds`, each where set."""
    source: str = ""
    """A foreign source to begin from: CUDA or PyTorch, for `transpile`."""
    trial: str = ""
    """Of a campaign of a bench: the key under which the bench finds it again."""
    suite: str = ""
    """Of one of a suite: the suite's name, caps, target and language, for whoever looks at it."""

    @field_validator("limits")
    @classmethod
    def _are_limits(cls, limits: dict[str, float]) -> dict[str, float]:
        return check_limits(limits)


class BestFound(Record):
    """The champion, as `run --json` tells it."""

    candidate: str
    status: str
    latency_us: float | None
    roofline: float | None
    speedup: dict[str, Speedup]
    """By baseline; the figures of the confirmation in a fresh process."""


class CampaignResult(Record):
    """The document of `run --json`."""

    campaign: str
    problem: str
    target: str
    tier: str
    workflow: str
    model: str
    best: BestFound | None
    unconfirmed: str | None = None
    """A candidate that may be faster than `best`, which a limit kept from its confirmation."""
    evaluated: int
    """Candidates with a verdict."""
    by_status: dict[str, int]
    usd: float | None = 0.0
    """None where the price of a call is unknown."""
    tokens: int = 0
    wall_s: float
    """Seconds of work, over every process that worked on it."""
    stopped_by: str


def first_event(
    request: CampaignRequest,
    problem: Problem,
    workload: Workload,
    referee: Referee,
    workflow_version: str,
    card: Record | None = None,
    past: Past | None = None,
) -> CampaignStarted:
    """The resolved request, the machine and the versions: a resumption needs no more."""
    return CampaignStarted(
        **dict(Options.from_record(request)),
        problem=problem.name,
        problem_version=problem.version,
        workload=workload.name,
        workload_spec=workload.model_dump(mode="json"),
        target=request.target,
        language=request.language,
        tier=tier_of(request.language),
        workflow=request.workflow,
        workflow_version=workflow_version,
        source=sha256(request.source.encode()).hexdigest() if request.source else "",
        model=request.model,
        judge_model=request.judge_model,
        limits=request.limits,
        machine=machine_facts(),
        versions=versions(),
        counting=referee.counting,
        config={
            "problem": _describe_problem(problem),
            "request": request.model_dump(mode="json", exclude={"source"}),
            "facts": dict(referee.facts),
            "isolation": referee.isolation.model_dump(mode="json"),
            **({"card": card.model_dump(mode="json")} if card else {}),
            **({"past": dump_past(past)} if past else {}),
        },
    )


def _describe_problem(problem: Problem) -> dict[str, JsonValue]:
    """What the viewer and the exports need of a Problem, since they read the store only."""

    def tensors(of: tuple[Tensor, ...]) -> list[JsonValue]:
        return [
            {"name": t.name, "dtype": t.dtype, "shape": list(t.shape), "is_index": t.is_index}
            for t in of
        ]

    return {
        "title": problem.title,
        "definition": problem.definition,
        "axes": dict(problem.axes),
        "inputs": tensors(problem.inputs),
        "outputs": tensors(problem.outputs),
        "entry": problem.name,
        **({"text": problem.text} if problem.text else {}),
    }


def add_recorded_problem(started: CampaignStarted) -> None:
    """Makes the user's problem known that a campaign was begun on; nothing for one of ours.

    Raises:
        UsageError: another one of this name is known already.
    """
    described = started.config.get("problem")
    text = described.get("text") if isinstance(described, dict) else None
    if isinstance(text, str):
        registry.add_text(started.problem, text, f"the record's {started.problem}.py")


_CUT_SHORT = (*CAPS, "interrupted")
"""Ends that came from outside; any other came when everything was confirmed that was to be."""


def result_of(ledger: Ledger, wall_s: float, stopped_by: str) -> CampaignResult:
    """What a campaign answers, from its books."""
    progress = ledger.progress
    started = progress.started
    return CampaignResult(
        campaign=ledger.campaign,
        problem=started.problem,
        target=started.target,
        tier=started.tier,
        workflow=started.workflow,
        model=started.model,
        best=_best(progress),
        unconfirmed=progress.challenger if stopped_by in _CUT_SHORT else None,
        evaluated=progress.evaluated,
        by_status={str(status): count for status, count in progress.by_status.items()},
        usd=progress.spending.usd,
        tokens=progress.spending.tokens,
        wall_s=wall_s,
        stopped_by=stopped_by,
    )


def _best(progress: Progress) -> BestFound | None:
    verdict = progress.leader.verdict if progress.leader else None
    if verdict is None:
        return None
    timed = verdict.measurement
    return BestFound(
        candidate=verdict.candidate,
        status=verdict.status,
        latency_us=timed.candidate.median_us if timed else None,
        roofline=timed.roofline if timed else None,
        speedup=timed.against_baselines if timed else {},
    )
