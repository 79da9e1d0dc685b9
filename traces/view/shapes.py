# SPDX-License-Identifier: Apache-2.0
"""The shapes of what the viewer answers below `/api`, field by field; JSON Schemas are made of them
(`kernelwright schema`)."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import JsonValue

from ..events import CampaignStarted
from ..records import Advice, Verdict
from ..schemas import Document, Dumped
from ..shapes import BookedDocument, CallDocument, SpeedupShape


class RowDocument(Document):
    """A campaign in a few fields."""

    campaign: str
    seq: int
    """Of its newest event: a reader asks for those after it."""
    problem: str
    workload: str
    target: str
    started_at: float
    """Seconds since the epoch, as `last_at`."""
    last_at: float
    proposed: int
    evaluated: int
    file: str | None
    """Of an evaluation: what its file is called."""
    state: str
    best: str | None
    """The champion."""
    speedup: SpeedupShape | None
    against: str | None
    """The baseline of `speedup`."""
    modelled_us: float | None
    """Of who leads where nothing could be timed."""
    by_status: dict[str, int]
    usd: float | None
    """None where a price is not known."""
    tokens: int
    booked: BookedDocument
    stopped_by: str | None
    audit: str | None
    why_no_winner: str | None
    how_sure: str | None
    what_decides: str | None


class CampaignsAnswer(Document):
    """`/api/campaigns`: all of a home, the newest first."""

    campaigns: list[Annotated[dict[str, Any], Dumped(RowDocument)]]


class CampaignAnswer(RowDocument):
    """`/api/c/ID`."""

    started: Annotated[dict[str, Any], Dumped(CampaignStarted)]
    """Its first event."""
    funnel: dict[str, int]
    """How many candidates came how far."""


class CallsAnswer(Document):
    """`/api/c/ID/calls`: what was asked of models."""

    calls: list[Annotated[dict[str, Any], Dumped(CallDocument)]]


class CandidateAnswer(Document):
    """`/api/c/ID/CANDIDATE`: one candidate with its verdicts as they are stored."""

    candidate: str
    number: int
    language: str
    family: str
    knobs: dict[str, JsonValue]
    parents: list[str]
    operator: str
    note: str
    strategy: str
    techniques: list[str]
    notes: list[str]
    at: float
    """When it was proposed."""
    cut_off: bool
    """Whether an evaluation of it was begun and has no end."""
    verdicts: list[Annotated[dict[str, Any], Dumped(Verdict)]]
    advice: Annotated[dict[str, Any], Dumped(Advice)] | None
