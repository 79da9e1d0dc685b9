# SPDX-License-Identifier: Apache-2.0
"""The shapes of what `documents.py` and `conversation.py` write, field by field.

JSON Schemas are made of them (`schemas.py`), and mypy holds the functions to them.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import JsonValue

from .preparation import Bounds
from .records import Advice, Isolation, KnobShare, Speedup, Sureness, Verdict
from .schemas import Document, Dumped

SpeedupShape = Annotated[dict[str, Any], Dumped(Speedup)]


class BestDocument(Document):
    """The champion of a campaign with its evidence."""

    candidate: str
    number: int
    family: str
    knobs: dict[str, JsonValue]
    status: str
    protocol: str
    latency_us: float | None
    roofline: float | None
    """The share of the roofline that it reaches."""
    best_baseline: str | None
    speedup: dict[str, SpeedupShape]
    """By baseline: its time over the candidate's."""


class LeaderDocument(Document):
    """Who leads by modelled time, where nothing could be timed."""

    candidate: str
    number: int
    family: str
    knobs: dict[str, JsonValue]
    status: str
    emulated: bool
    modelled_us: float | None
    speedup: None
    """Nothing ran: there is none."""


class BookedDocument(Document):
    """What counts as spent although nobody knows whether it was."""

    attempts: int
    tokens: int
    usd: float | None


class PaceDocument(Document):
    """How a campaign's time was used; shares are of its wall time, from 0 to 1."""

    candidates_per_minute: float
    candidates_per_minute_of_search: float
    """Without the race at the end."""
    judged_share: float
    timed_share: float
    counted_share: float


class PreparationDocument(Document):
    """What it took until candidates could be judged; outside of the budget."""

    total_s: float
    """Of all processes that took the campaign up."""
    seconds: dict[str, float]
    """Of the last of them, by part."""
    baselines: list[str]
    missing: dict[str, str]
    """Baselines that are left out, and why."""
    baseline_us: dict[str, float]
    bounds: Annotated[dict[str, Any], Dumped(Bounds)] | None


class CampaignDocument(Document):
    """A campaign: what was asked, what came out, what it cost."""

    campaign: str
    problem: str
    workload: str
    target: str
    language: str
    tier: str
    workflow: str
    model: str
    """The Coder; of an evaluation who handed the candidate in."""
    judge_model: str
    seed: int
    limits: dict[str, float]
    """By cap: `evaluations`, `seconds`, `usd`, `tokens`, `device_seconds`, each where set."""
    best: BestDocument | None
    leader: LeaderDocument | None
    evaluated: int
    by_status: dict[str, int]
    isolation: Annotated[dict[str, Any], Dumped(Isolation)] | None
    not_enforced: list[str]
    """What its sandbox does not enforce."""
    usd: float | None
    """None where a price is not known."""
    tokens: int
    booked: BookedDocument
    preparation: PreparationDocument | None
    why_no_winner: str | None
    sureness: Annotated[dict[str, Any], Dumped(Sureness)] | None
    """That the winner is the fastest of the campaign's candidates."""
    knobs: list[Annotated[dict[str, Any], Dumped(KnobShare)]]
    """What decides."""
    pace: PaceDocument | None
    wall_s: float
    stopped_by: str | None
    audit: str | None
    """What the last audit found, in a sentence."""


class RunDocument(CampaignDocument):
    """A campaign that was run now."""

    unconfirmed: str | None
    """The candidate that looked faster and was not confirmed any more."""


class LineDocument(CampaignDocument):
    """A campaign as lists have it."""

    file: str
    """Of an evaluation: what its file is called."""
    started_at: float
    """Seconds since the epoch, as `last_at`."""
    last_at: float
    proposed: int
    is_estimated: bool
    """Whether any figure of tokens or dollars was not told by a server."""
    how_sure: str | None
    """`sureness` in words."""
    what_decides: str | None
    """`knobs` in words."""


class Gains(Document):
    """What a verdict is worth; at most one of them is there."""

    credited: float | None
    """The speed-up against the best baseline that is credited; null unless VERIFIED."""
    screen_estimate: SpeedupShape | None
    """What a screening measured: it ranks, and credits nothing."""


class VerdictMore(Gains):
    """What a verdict's document has beside what is stored."""

    not_enforced: list[str]
    """What the sandbox does not enforce."""


VerdictDocument = Annotated[
    dict[str, Any], Dumped(Verdict, VerdictMore, without=("schema_version",))
]


class EntryDocument(Gains):
    """One candidate of a campaign, in a line."""

    number: int
    candidate: str
    family: str
    language: str
    knobs: dict[str, JsonValue]
    operator: str
    """How it came about."""
    file: str
    strategy: str
    techniques: list[str]
    notes: list[str]
    parents: list[str]
    status: str | None
    """None: it has no verdict."""
    protocol: str | None
    reasons: list[str]
    emulated: bool | None
    latency_us: float | None
    modelled_us: float | None
    is_cut_off: bool


class CandidateDocument(EntryDocument):
    """A candidate, whole."""

    verdicts: list[VerdictDocument]
    advice: Annotated[dict[str, Any], Dumped(Advice)] | None
    source: str


class CallDocument(Document):
    """A call of a model."""

    number: int
    call: str
    """The key of the call."""
    place: str
    """Where in the workflow it was asked: `round/slot/purpose/turn`."""
    purpose: str
    model: str
    attempts: int
    failures: int
    outcome: str
    tokens: int
    usd: float | None
    is_estimated: bool
    seconds: float
    candidate: str | None
    """What came of it, if a candidate did."""
    missing: str | None
    """Why none did."""


CallShape = Annotated[dict[str, Any], Dumped(CallDocument)]


class WholeCallDocument(CallDocument):
    """A call with its attempts and its words as they are stored."""

    events: list[dict[str, Any]]
    ask: dict[str, Any] | None
    """The question: messages, schema, parameters; null where it cannot be read."""
    reply: dict[str, Any] | None
