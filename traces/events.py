# SPDX-License-Identifier: Apache-2.0
"""The kinds of events of a campaign. Append-only; everything shown anywhere is derived from them.

An Event's payload is one of the frozen records below, told apart by `kind`. Blobs (sources, logs)
are named by their SHA-256. Nothing here knows how events are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, TypeAdapter, model_validator

from .decisions import StoredDecision, earlier_form
from .options import Options
from .place import NOWHERE, StoredPlace
from .preparation import Preparation
from .records import (
    Advice,
    Counting,
    KnobShare,
    Profile,
    Record,
    Speedup,
    Status,
    Sureness,
    Verdict,
)

EVALUATION = "eval"
"""The workflow of a campaign of one: a candidate that a user handed in, and its verdict."""
BY_HAND = "hand"
"""In place of its model: who handed the candidate in."""


class CampaignStarted(Options):
    """First event: the resolved request, the machine and the versions (style.md 25)."""

    kind: Literal["campaign.started"] = "campaign.started"
    problem: str
    problem_version: int | str = 1
    workload: str
    """The workload's name."""
    workload_spec: dict[str, JsonValue] = Field(default_factory=dict)
    """The whole Workload, so that a campaign resumes without the registry's help."""
    target: str
    language: str
    tier: str
    workflow: str
    workflow_version: str = ""
    """Of the graph and, where a model is asked, of the prompts: only the same one may resume."""
    source: str = ""
    """The blob of the foreign source it begins from, if there is one."""
    model: str
    judge_model: str
    limits: dict[str, float]
    """Budget: `evaluations`, `seconds`, `usd`, `tokens`, `device_seconds`, each where set."""
    machine: dict[str, str] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    config: dict[str, JsonValue] = Field(default_factory=dict)
    counting: Counting | None = None
    """Of hardware counters; None where none are read."""

    @property
    def is_evaluation(self) -> bool:
        """Whether it is the evaluation of one candidate, and nothing was searched."""
        return self.workflow == EVALUATION

    @property
    def brains(self) -> str:
        """Coder and Judge, for people; of an evaluation, which has no Judge, who handed it in."""
        return f"{self.model} + {self.judge_model}" if self.judge_model else self.model


class CampaignResumed(Record):
    """A later process took the campaign up again."""

    kind: Literal["campaign.resumed"] = "campaign.resumed"
    limits: dict[str, float] = Field(default_factory=dict)
    """The whole budget that now holds."""


class CampaignPrepared(Preparation):
    """The process may begin to judge; what it took until then is outside of the budget."""

    kind: Literal["campaign.prepared"] = "campaign.prepared"


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
    file: str = ""
    """What a file that was handed in is called, without its folder; empty: there was none, or it
    was not kept yet."""
    strategy: str = ""
    """What makes it fast or, where it changes another, what the change does: its Coder's claim."""
    techniques: tuple[str, ...] = ()
    """Names of the catalogue that its Coder says it uses."""
    notes: tuple[str, ...] = ()
    """What was remarked of the reply that it came from: by whoever read it, never by its Coder."""
    note: str = ""
    """Of records from before the three fields above: all of it in one text. Only shown."""
    place: StoredPlace = NOWHERE
    """`round/slot` of the workflow; the calls that led to it have places below this one."""

    @property
    def said(self) -> str:
        """All of it in one line, for people."""
        return self.note or word_proposal(self.strategy, self.techniques, self.notes)


def word_proposal(strategy: str, techniques: Sequence[str], notes: Sequence[str]) -> str:
    """What is told of a proposal, in one line for people; nothing reads it back."""
    used = f"techniques: {', '.join(techniques)}" if techniques else ""
    return "; ".join(text for text in (strategy, used, *notes) if text)


class ModelRequested(Record):
    """A model is asked; what the call may cost at most is reserved. Before any byte is sent."""

    kind: Literal["model.requested"] = "model.requested"
    call: str
    """The key of the call: SHA-256 of campaign, workflow version, place and Ask."""
    attempt: int
    """1, 2, 3 … of this call."""
    place: StoredPlace
    """Where in the workflow: `round/slot/purpose/turn`, unique within the campaign."""
    purpose: str
    model: str
    ask: str
    """The blob of the Ask as canonical JSON: messages, schema, parameters."""
    reserved_tokens: int
    reserved_usd: float | None = None
    """None where the price is unknown."""


class ModelReplied(Record):
    """A paid answer; the same transaction settles the reservation."""

    kind: Literal["model.replied"] = "model.replied"
    call: str
    attempt: int
    reply: str
    """The blob of the Reply as JSON."""
    finish: str
    tokens: int
    usd: float | None = None
    is_estimated: bool = False
    overran: bool = False
    """It cost more than was reserved: the endpoint passed over the limit on tokens."""
    seconds: float = 0.0


class ModelFailed(Record):
    """An attempt that gave no answer, or whose outcome nobody knows."""

    kind: Literal["model.failed"] = "model.failed"
    call: str
    attempt: int
    fault: str
    """A FaultKind of agents/model.py, or `outcome unknown` after a crash."""
    reason: str
    tokens: int = 0
    usd: float | None = 0.0
    """What is booked as spent: the reservation where the outcome is unknown, else nothing."""
    retry_in_s: float | None = None
    """None where it is not tried again."""


class CandidateMissing(Record):
    """A reply that held no usable candidate; a result, not an error."""

    kind: Literal["candidate.missing"] = "candidate.missing"
    place: StoredPlace
    outcome: str
    """`truncated`, `no_candidate`, `ambiguous`, `edit_failed`, `duplicate`, `wrong_language` …;
    `no_change` where its Coder decided against one."""
    reason: str
    call: str = ""
    base: str = ""
    """The candidate that was to be changed, if there was one."""


class Decided(Record):
    """A choice of the workflow that is not plain from the other events."""

    kind: Literal["decided"] = "decided"
    place: StoredPlace
    decision: StoredDecision

    @model_validator(mode="before")
    @classmethod
    def _read_earlier_form(cls, event: object) -> object:
        return earlier_form(event)


class EvaluationStarted(Record):
    """The referee was asked; without a finished event after it, the evaluation was cut off."""

    kind: Literal["evaluation.started"] = "evaluation.started"
    candidate: str
    protocol: str
    beside: str | None = None
    """The candidate that is timed beside it under the name `champion`; nothing: earlier versions
    timed the champion beside a confirmation and did not say so."""


class EvaluationFinished(Record):
    """The verdict, whole."""

    kind: Literal["evaluation.finished"] = "evaluation.finished"
    verdict: Verdict
    decided_on: Verdict | None = None
    """In a replay: the recorded verdict of the same outcome, on whose figures decisions rest."""


class CandidateCounted(Record):
    """The hardware's counters of a candidate that was tried already, read for the Judge."""

    kind: Literal["candidate.counted"] = "candidate.counted"
    candidate: str
    profile: Profile | None = None
    """In place of the one that its screening had; None where nothing could be counted."""
    reason: str = ""
    """Why nothing was counted."""
    took_s: float


class AdviceGiven(Record):
    """The Judge's words on a candidate."""

    kind: Literal["advice.given"] = "advice.given"
    advice: Advice
    place: StoredPlace = NOWHERE
    """`round/slot` of the edit it is for."""


class ChampionChanged(Record):
    """A confirmed candidate displaced the champion."""

    kind: Literal["champion.changed"] = "champion.changed"
    candidate: str
    previous: str | None = None
    credited: float
    """Credited speed-up against the best baseline, from the confirming run; 0.0 where no baseline
    ran beside it."""


class CampaignFinished(Record):
    """The campaign stopped by itself or was asked to."""

    kind: Literal["campaign.finished"] = "campaign.finished"
    stopped_by: str
    """A cap's name, `rounds`, `plateau`, `roofline`, `nothing left`, `space exhausted`,
    `no gain expected`, `interrupted`, `provider`, `error`; `evaluated` once an evaluation has its
    verdict."""
    best: str | None = None
    sureness: Sureness | None = None
    """That `best` is the fastest; None where nothing was timed, and of earlier versions."""
    knobs: tuple[KnobShare, ...] = ()
    """What decides, of a search over recipes."""


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
    | CampaignPrepared
    | CandidateProposed
    | ModelRequested
    | ModelReplied
    | ModelFailed
    | CandidateMissing
    | Decided
    | EvaluationStarted
    | EvaluationFinished
    | CandidateCounted
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
