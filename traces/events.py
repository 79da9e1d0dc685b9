"""The kinds of events of a campaign. Append-only; everything shown anywhere is derived from them.

An Event's payload is one of the frozen records below, told apart by `kind`. Blobs (sources, logs)
are named by their SHA-256. Nothing here knows how events are stored.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, TypeAdapter, model_validator

from .records import Advice, Record, Speedup, Status, Verdict


class CampaignStarted(Record):
    """First event: the resolved request, the machine and the versions (style.md 25)."""

    kind: Literal["campaign.started"] = "campaign.started"
    problem: str
    problem_version: int = 1
    workload: str
    """The workload's name."""
    workload_spec: dict[str, JsonValue] = Field(default_factory=dict)
    """The whole Workload, so that a campaign resumes without the registry's help."""
    target: str
    language: str
    tier: str
    workflow: str
    model: str
    judge_model: str
    seed: int
    limits: dict[str, float]
    """Budget: `evaluations`, `seconds`, `usd`, each only where set."""
    machine: dict[str, str] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    config: dict[str, JsonValue] = Field(default_factory=dict)


class CampaignResumed(Record):
    """A later process took the campaign up again."""

    kind: Literal["campaign.resumed"] = "campaign.resumed"
    limits: dict[str, float] = Field(default_factory=dict)
    """The whole budget that now holds."""


class CandidateProposed(Record):
    """A Coder proposed a source; it is not yet evaluated."""

    kind: Literal["candidate.proposed"] = "candidate.proposed"
    candidate: str
    number: int
    """1, 2, 3 … within the campaign."""
    language: str
    family: str
    """The niche: the recipe's family."""
    knobs: dict[str, JsonValue] = Field(default_factory=dict)
    parents: tuple[str, ...] = ()
    operator: str
    """How it came about: `initial`, `mutate`, `cross over`, `advised`, …"""
    note: str = ""


class EvaluationStarted(Record):
    """The referee was asked; without a finished event after it, the evaluation was cut off."""

    kind: Literal["evaluation.started"] = "evaluation.started"
    candidate: str
    protocol: str


class EvaluationFinished(Record):
    """The verdict, whole."""

    kind: Literal["evaluation.finished"] = "evaluation.finished"
    verdict: Verdict


class AdviceGiven(Record):
    """The Judge's words on a candidate."""

    kind: Literal["advice.given"] = "advice.given"
    advice: Advice


class ChampionChanged(Record):
    """A confirmed candidate displaced the champion."""

    kind: Literal["champion.changed"] = "champion.changed"
    candidate: str
    previous: str | None = None
    credited: float
    """Credited speed-up against the best baseline, from the confirming run."""


class CampaignFinished(Record):
    """The campaign stopped by itself or was asked to."""

    kind: Literal["campaign.finished"] = "campaign.finished"
    stopped_by: str
    """`evaluations`, `seconds`, `space exhausted`, `interrupted`, `error`."""
    best: str | None = None


class AuditOutcome(StrEnum):
    """What an audit found of a champion."""

    HOLDS = "holds"
    SLOWER = "is slower"
    """Right, and its interval lies wholly below the recorded one."""
    FAILED = "no longer holds"
    UNREPEATABLE = "cannot be repeated"
    """Nothing was shown either way; the reason says why."""


class Difference(Record):
    """Something of the machine that is not as it was."""

    name: str
    then: str
    now: str


class CampaignAudited(Record):
    """The champion was verified anew, with new seeds, by somebody who looks from outside."""

    kind: Literal["campaign.audited"] = "campaign.audited"
    candidate: str
    outcome: AuditOutcome
    reason: str = ""
    """Why, unless it holds."""
    verdicts: tuple[Verdict, ...] = ()
    """Every look that was taken; the last one is the one that counts."""
    recorded: Speedup | None = None
    """What the record had claimed, against the best baseline of then."""
    recorded_against: str = ""
    lacking: tuple[str, ...] = ()
    """What the record does not say although it should, a sentence each."""
    differences: tuple[Difference, ...] = ()

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        right = self.verdict is not None and self.verdict.status is Status.VERIFIED
        if self.outcome in (AuditOutcome.HOLDS, AuditOutcome.SLOWER) and not right:
            raise ValueError(f"an audit cannot say '{self.outcome}' without a VERIFIED verdict")
        if self.outcome is not AuditOutcome.HOLDS and not self.reason:
            raise ValueError(f"an audit that says '{self.outcome}' needs a reason")
        if any(verdict.candidate != self.candidate for verdict in self.verdicts):
            raise ValueError("an audit holds a verdict on another candidate")
        return self

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that counts."""
        return self.verdicts[-1] if self.verdicts else None


Payload = Annotated[
    CampaignStarted
    | CampaignResumed
    | CandidateProposed
    | EvaluationStarted
    | EvaluationFinished
    | AdviceGiven
    | ChampionChanged
    | CampaignFinished
    | CampaignAudited,
    Field(discriminator="kind"),
]

payload_adapter: TypeAdapter[Payload] = TypeAdapter(Payload)


class Event(Record):
    """One record of a campaign, as the store gives it back."""

    seq: int
    """Position in the store, rising, unique over all campaigns."""
    campaign: str
    at: float
    """Seconds since the epoch, by the clock of the writer."""
    payload: Payload
