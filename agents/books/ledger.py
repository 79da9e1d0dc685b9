# SPDX-License-Identifier: Apache-2.0
"""Everything a campaign does passes through here: recorded first, and never done twice.

A candidate's source is stored before the event that names it, an evaluation's start before the
referee is asked, its verdict before anybody acts on it. A step that is called again after a crash
finds its result and returns it. The ledger decides nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

from ...errors import SandboxError, StorageError
from ...traces.decisions import AnyDecision, Recalled
from ...traces.events import (
    AdviceGiven,
    CandidateCounted,
    CandidateMissing,
    CandidateProposed,
    ChampionChanged,
    Decided,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    ModelRequested,
    Payload,
)
from ...traces.place import NOWHERE, Place
from ...traces.records import Advice, Depth, Verdict, candidate_id
from ...verifier.request import Order, Referee
from ..model import Ask, Reply
from ..roles import Member, NoProposal, Proposal
from ..search.championship import champion_after
from .progress import Progress

Recorded = Mapping[tuple[str, Depth], Verdict]
"""Verdicts of a recorded campaign, by candidate and protocol."""

OnEvent = Callable[[Event], None]


class Recorder(Protocol):
    """What the loop needs of a store. `append` is durable when it returns."""

    def append(self, campaign: str, payload: Payload) -> Event:
        """Adds one event to the campaign."""

    def put_blob(self, content: bytes | str) -> str:
        """Keeps content under its SHA-256."""

    def get_blob(self, sha: str) -> bytes:
        """What `put_blob` kept."""


class Ledger:
    """The campaign's books: records, folds into Progress and tells who listens.

    Several threads may use it; the referee is asked by one at a time.
    """

    def __init__(
        self,
        recorder: Recorder,
        campaign: str,
        referee: Referee,
        progress: Progress,
        on_event: OnEvent | None = None,
        *,
        recorded: Recorded | None = None,
        recalled: Recalled | None = None,
    ) -> None:
        """Args:
        recorded: In a replay, the verdicts that decisions rest on.
        recalled: In a replay, what clocks decided.
        """
        self.campaign = campaign
        self.progress = progress
        self._recorder = recorder
        self._referee = referee
        self._on_event = on_event
        self._recorded = recorded or {}
        self.recalled = recalled
        self._writing = threading.RLock()
        self._evaluating = threading.Lock()
        self._foreseen: set[str] = set()
        self.heard: Verdict | None = None
        """What the referee said last, whether or not it could be recorded."""

    def read_ask(self, requested: ModelRequested) -> Ask:
        """What was asked in a recorded attempt."""
        return Ask.model_validate_json(self._recorder.get_blob(requested.ask))

    @contextmanager
    def hold_writing(self) -> Iterator[None]:
        """Nobody else records anything while the block runs."""
        with self._writing:
            yield

    def keep(self, content: str) -> str:
        """Keeps a blob, before the event that names it is recorded."""
        return self._recorder.put_blob(content)

    def reply(self, call: str) -> Reply | None:
        """The stored answer to a call, if it was answered."""
        known = self.progress.spending.calls.get(call)
        if known is None or known.replied is None:
            return None
        return Reply.model_validate_json(self._recorder.get_blob(known.replied.reply))

    def record(self, payload: Payload) -> Event:
        """Appends one event, durably, then folds it in."""
        with self._writing:
            event = self._recorder.append(self.campaign, payload)
            self.progress.apply(event)
            if self._on_event:
                self._on_event(event)
        return event

    def propose(self, proposal: Proposal, place: Place = NOWHERE) -> str:
        """Records a proposal and gives its id; one that is known already is not recorded again."""
        candidate = candidate_id(proposal.source)
        if candidate in self.progress.candidates:
            return candidate
        self._recorder.put_blob(proposal.source)
        self.record(
            CandidateProposed(
                candidate=candidate,
                number=self.progress.count + 1,
                language=proposal.language,
                family=proposal.family,
                knobs=dict(proposal.knobs),
                parents=proposal.parents,
                operator=proposal.operator,
                strategy=proposal.strategy,
                techniques=proposal.techniques,
                notes=proposal.notes,
                file=proposal.file,
                place=place,
            )
        )
        return candidate

    def record_missing(self, missing: NoProposal, place: Place, base: str = "") -> None:
        """Records, once for the place, that a reply held no usable candidate."""
        if place not in self.progress.missing:
            self.record(
                CandidateMissing(
                    place=place,
                    outcome=missing.outcome,
                    reason=missing.reason,
                    call=missing.call,
                    base=base,
                )
            )

    def decide(self, place: Place, decision: AnyDecision) -> None:
        """Records, once for the place, a choice that is not plain from the other events."""
        if self.progress.find_decision(place, type(decision)) is None:
            self.record(Decided(place=place, decision=decision))

    def evaluate(self, candidate: str, protocol: Depth, champion: str | None = None) -> Verdict:
        """The stored verdict, else the referee's, recorded.

        Raises:
            SandboxError: the harness failed; the evaluation stays open and is done on resume.
        """
        with self._evaluating:
            if protocol not in self.progress.candidates[candidate].looks:
                self._evaluate(candidate, protocol, champion)
            return self.progress.candidates[candidate].looks[protocol]

    @property
    def times(self) -> bool:
        """Whether anything is timed here; in an emulation nothing is."""
        return not self._referee.is_emulated

    def rival_of(self, candidate: str) -> str | None:
        """Who is timed beside a screening of this candidate: the champion, where both run alike."""
        entries, champion = self.progress.candidates, self.progress.champion
        if champion is None or champion == candidate or not self.times:
            return None
        is_alike = entries[champion].language == entries[candidate].language
        return champion if is_alike else None

    def race(self, candidate: str, leader: str) -> None:
        """One more heat of a screened candidate beside the one that leads, recorded."""
        with self._evaluating:
            self._evaluate(candidate, Depth.RACE, leader)

    def order(self, candidate: str, protocol: Depth, champion: str | None = None) -> Order:
        """What the referee is asked about a candidate."""
        return Order(
            source=self.source(candidate),
            language=self.progress.candidates[candidate].language,
            protocol=protocol,
            champion=self.source(champion) if champion else "",
        )

    def foresee(self, candidates: Sequence[str]) -> None:
        """Tells the referee who is screened next; nothing is recorded, and nobody waits."""
        known = self.progress.candidates
        waiting = [c for c in candidates if known[c].screened is None]
        if waiting:
            self._referee.foresee([self.order(c, Depth.SCREEN) for c in waiting])

    def foresee_proposed(self, proposal: Proposal) -> None:
        """As `foresee`, of a source that is going to be proposed, or may be."""
        self._referee.foresee([Order(source=proposal.source, language=proposal.language)])

    def foresee_confirmation(self, candidate: str) -> None:
        """Tells the referee, once, who is likely to be confirmed; nothing is recorded."""
        known = self.progress.candidates[candidate]
        if self.times and known.confirmed is None and candidate not in self._foreseen:
            self._foreseen.add(candidate)
            self._referee.foresee([self.order(candidate, Depth.CONFIRM)])

    def _evaluate(self, candidate: str, protocol: Depth, champion: str | None) -> None:
        order = self.order(candidate, protocol, champion)
        self.record(EvaluationStarted(candidate=candidate, protocol=protocol, beside=champion))
        verdict = self.heard = self._referee.evaluate(order)
        _check_about(verdict, candidate, protocol, champion)
        recorded = self._recorded.get((candidate, protocol))
        is_same = recorded is not None and _is_same_outcome(recorded, verdict)
        self.record(EvaluationFinished(verdict=verdict, decided_on=recorded if is_same else None))

    @property
    def counts(self) -> bool:
        """Whether hardware counters can be read here and are wanted."""
        return self._referee.counting is not None

    def count(self, candidate: str) -> None:
        """Has the counters of a screened candidate read and recorded, once.

        Raises:
            SandboxError: the harness failed; nothing is recorded.
        """
        with self._evaluating:
            if self.progress.candidates[candidate].counted is None:
                counted = self._referee.count(self.order(candidate, Depth.SCREEN))
                self.record(CandidateCounted(candidate=candidate, **dict(counted)))

    def advise(self, advice: Advice, place: Place = NOWHERE) -> None:
        """Records the Judge's words, once per candidate or, where one is named, per place."""
        about = self.progress.candidates[advice.candidate]
        is_known = place in self.progress.advised if place else about.advice is not None
        if not is_known:
            self.record(AdviceGiven(advice=advice, place=place))

    def settle(self, candidate: str, champion: str | None) -> str | None:
        """Who is champion once a challenger was confirmed, crowned if it is the challenger.

        Args:
            champion: Who is, at this point of the workflow: the same on every run.
        """
        confirmed = self.progress.get_candidate(candidate).looks[Depth.CONFIRM]
        fallen = confirmed.champion
        heir = self.progress.heir_of(fallen.candidate) if fallen else None
        won = champion_after(candidate, confirmed, champion=champion, heir=heir)
        if won == candidate:
            self.crown(candidate, confirmed)
        return won

    def crown(self, candidate: str, confirmed: Verdict) -> None:
        """Records a new champion, once."""
        if candidate in self.progress.gains:
            return
        # In a replay the decision rests on the recorded figure; what is told is the new one.
        seen = self.progress.candidates[candidate].verdicts
        found = next((v for v in reversed(seen) if v.protocol is Depth.CONFIRM), confirmed)
        self.record(
            ChampionChanged(
                candidate=candidate,
                previous=self.progress.champion,
                credited=found.credited or 0.0,
            )
        )

    def source(self, candidate: str) -> str:
        """The source of a candidate, as it was stored."""
        return self._recorder.get_blob(candidate).decode()

    def find_member(self, candidate: str | None) -> Member | None:
        """As `member`; None for none."""
        return self.member(candidate) if candidate else None

    def member(self, candidate: str) -> Member:
        """An evaluated candidate as the Coder and the Judge see it."""
        found = self.progress.candidates[candidate]
        if found.basis is None:
            raise StorageError(
                f"candidate {candidate[:12]} of campaign {self.campaign} has no verdict",
                hint="resume the campaign, so that its evaluation is done",
            )
        return Member(
            candidate=candidate,
            number=found.number,
            source=self.source(candidate),
            language=found.language,
            family=found.family,
            knobs={k: v for k, v in found.knobs.items() if isinstance(v, int | str)},
            verdict=found.basis,
            parents=found.parents,
            advice=found.advice,
            notes=found.notes,
        )


def _is_same_outcome(recorded: Verdict, verdict: Verdict) -> bool:
    """Whether both came to the same, of the candidate and of the champion beside it."""
    fell = [each.champion is not None for each in (recorded, verdict)]
    return recorded.status is verdict.status and fell[0] == fell[1]


def _check_about(verdict: Verdict, candidate: str, protocol: Depth, champion: str | None) -> None:
    fallen = verdict.champion.candidate if verdict.champion else champion
    if fallen != champion or verdict.candidate != candidate or verdict.protocol is not protocol:
        raise SandboxError(
            f"the referee was asked about {candidate[:12]} ({protocol}) and answered about "
            f"{verdict.candidate[:12]} ({verdict.protocol})",
            hint="this is a fault of the referee; nothing was recorded, resume to try again",
        )
