# SPDX-License-Identifier: Apache-2.0
"""A campaign without its candidates and calls: what stands above every page of it.

A pure function of its history, kept beside the events (`index.py`) so that no page has to read
those. Nothing of it changes without an event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pydantic import TypeAdapter
from pydantic_core import from_json

from .audits import last_audit_sentence
from .events import CampaignPrepared, CampaignStarted
from .fold import Entry
from .history import BestSoFar, History
from .outcome import how_fast, how_sure, what_decides, why_no_winner
from .outline import outline
from .records import Isolation, Speedup, Status, Sureness
from .spending import Booked, Spending
from .states import CampaignState, state_of


class Crowned(NamedTuple):
    """A change of champion and what had been spent on models until then."""

    candidate: str
    number: int
    credited: float
    tokens: int
    usd: float | None
    """None where a price is unknown."""
    previous: str | None
    """Who was champion, beside whom it was timed."""


class Spent(NamedTuple):
    """What models took."""

    tokens: int
    usd: float | None
    """US dollars; None where a price is unknown."""
    priced_usd: float
    """What was paid at known prices."""
    unpriced: int
    """Paid answers whose price nobody knows."""
    booked: Booked
    is_estimated: bool
    """Whether any figure was not told by a server."""
    open_calls: int
    """Attempts that have no answer."""
    reserved_tokens: int
    reserved_usd: float


class Failure(NamedTuple):
    """Candidates of one status that is no pass."""

    status: Status
    candidates: int
    reason: str
    """The first one of the most frequent kind."""


@dataclass(frozen=True)
class Head:
    """A campaign as every page of it tells it."""

    campaign: str
    started: CampaignStarted
    started_at: float
    last_at: float
    last_seq: int
    limits: dict[str, float]
    resumes: int
    stopped_by: str | None
    evaluated: int
    proposed: int
    by_status: dict[Status, int]
    faster: int
    """Candidates that are credited with more than 1."""
    best: Entry | None
    """The champion's outline."""
    leader: Entry | None
    """The outline of who has the shortest modelled time where nothing can be timed."""
    best_so_far: tuple[BestSoFar, ...]
    crowned: tuple[Crowned, ...]
    spent: Spent
    first_preparation: CampaignPrepared | None
    last_preparation: CampaignPrepared | None
    preparation_s: float
    spent_s: float
    judged_s: float
    counted_s: float
    seconds: dict[str, float]
    """Of all evaluations, by what was done in them."""
    isolation: Isolation | None
    """The matrix that the newest verdict carries."""
    not_enforced: tuple[str, ...]
    """What was open to a kernel in any of the evaluations: rows of the matrix."""
    is_weakly_isolated: bool
    """Whether any evaluation went without what unattended work needs."""
    failures: tuple[Failure, ...]
    why_no_winner: str
    """What would be true if it ended now; empty where there is a winner."""
    sureness: Sureness | None
    how_sure: str
    how_fast: str
    what_decides: str
    file: str
    audited_at: float | None
    audit: str
    """A sentence on the newest audit; empty where there was none."""

    @property
    def champion(self) -> str | None:
        """The candidate that won so far."""
        return self.best.candidate if self.best else None

    @property
    def winner(self) -> Entry | None:
        """The champion, or who leads where nothing can be timed."""
        return self.best or self.leader

    @property
    def speedup(self) -> Speedup | None:
        """The champion's, against the best baseline."""
        verdict = self.best.verdict if self.best else None
        is_sure = verdict is not None and verdict.status is Status.VERIFIED
        return verdict.measurement.headline if verdict and is_sure and verdict.measurement else None

    @property
    def against(self) -> str:
        """The best baseline."""
        verdict = self.best.verdict if self.best and self.speedup else None
        return verdict.measurement.best_baseline if verdict and verdict.measurement else ""

    @property
    def credited(self) -> float:
        """The credited speed-up of the champion; 0.0 without one."""
        return self.speedup.low if self.speedup else 0.0

    def state(self, *, is_running: bool) -> CampaignState:
        """What the campaign does now."""
        workflow, evaluated = self.started.workflow, self.evaluated
        return state_of(self.campaign, workflow, evaluated, self.stopped_by, is_running=is_running)


def head_of(history: History) -> Head:
    """The campaign without its candidates and calls."""
    tally, audits = history.tally, history.audits
    best, leader = history.best, history.leader
    return Head(
        campaign=history.campaign,
        started=history.started,
        started_at=history.started_at,
        last_at=history.last_at,
        last_seq=history.last_seq,
        limits=history.limits,
        resumes=history.resumes,
        stopped_by=history.finished.stopped_by if history.finished else None,
        evaluated=history.evaluated,
        proposed=len(history.entries),
        by_status=history.by_status,
        faster=tally.faster,
        best=outline(best) if best else None,
        leader=outline(leader) if leader else None,
        best_so_far=tuple(history.best_so_far()),
        crowned=_list_crowned(history),
        spent=_sum_up(history.spending),
        first_preparation=history.prepared[0] if history.prepared else None,
        last_preparation=history.prepared[-1] if history.prepared else None,
        preparation_s=history.preparation_s,
        spent_s=history.spent_s,
        judged_s=history.judged_s,
        counted_s=history.counted_s,
        seconds=dict(tally.seconds),
        isolation=history.isolation,
        not_enforced=history.not_enforced,
        is_weakly_isolated=history.is_weakly_isolated,
        failures=_list_failures(history),
        why_no_winner=why_no_winner(history),
        sureness=history.finished.sureness if history.finished else None,
        how_sure=how_sure(history),
        how_fast=how_fast(history),
        what_decides=what_decides(history),
        file=history.file,
        audited_at=audits[-1].at if audits else None,
        audit=last_audit_sentence(history),
    )


def _list_crowned(history: History) -> tuple[Crowned, ...]:
    return tuple(
        Crowned(
            change.event.candidate,
            history.entries[change.event.candidate].number,
            change.event.credited,
            change.tokens,
            change.usd,
            change.event.previous,
        )
        for change in history.changes
    )


def _sum_up(spending: Spending) -> Spent:
    return Spent(
        spending.tokens,
        spending.usd,
        spending.priced_usd,
        spending.unpriced,
        spending.booked,
        spending.is_estimated,
        len(spending.open_calls),
        spending.reserved_tokens,
        spending.reserved_usd,
    )


def _list_failures(history: History) -> tuple[Failure, ...]:
    """What became of those that did not pass, the most frequent status first."""
    told = [
        Failure(status, count, history.tally.causes_of[status].most_frequent)
        for status, count in history.by_status.items()
        if not status.is_pass
    ]
    return tuple(sorted(told, key=lambda failure: -failure.candidates))


_ADAPTER = TypeAdapter(Head)


def write_head(head: Head) -> str:
    """The head as JSON, without the campaign's start, which never changes: its first event."""
    return _ADAPTER.dump_json(head, exclude={"started"}).decode()


def read_head(text: str, started: CampaignStarted) -> Head:
    """What `write_head` wrote. ValueError where it is none."""
    return _ADAPTER.validate_python({**from_json(text), "started": started})
