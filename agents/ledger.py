"""Everything a campaign does passes through here: recorded first, and never done twice.

A candidate's source is stored before the event that names it, an evaluation's start before the
referee is asked, its verdict before anybody acts on it. A step that is called again after a crash
finds its result and returns it. The ledger decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol as Interface

from ..errors import SandboxError, StorageError
from ..traces.events import (
    AdviceGiven,
    CandidateProposed,
    ChampionChanged,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    Payload,
)
from ..traces.records import Advice, Protocol, Verdict, candidate_id
from ..verifier.request import Order, Referee
from .progress import Progress
from .protocols import Member, Proposal

OnEvent = Callable[[Event], None]


class Recorder(Interface):
    """What the loop needs of a store. `append` is durable when it returns."""

    def append(self, campaign: str, payload: Payload) -> Event:
        """Adds one event to the campaign."""

    def put_blob(self, content: bytes | str) -> str:
        """Keeps content under its SHA-256."""

    def get_blob(self, sha: str) -> bytes:
        """What `put_blob` kept."""


class Ledger:
    """The campaign's books: records, folds into Progress and tells who listens."""

    def __init__(
        self,
        recorder: Recorder,
        campaign: str,
        referee: Referee,
        progress: Progress,
        on_event: OnEvent | None = None,
    ) -> None:
        self.campaign = campaign
        self.progress = progress
        self._recorder = recorder
        self._referee = referee
        self._on_event = on_event

    def record(self, payload: Payload) -> Event:
        """Appends one event, durably, then folds it in."""
        event = self._recorder.append(self.campaign, payload)
        self.progress.apply(event)
        if self._on_event:
            self._on_event(event)
        return event

    def propose(self, proposal: Proposal) -> str:
        """Records a proposal and gives its id; one that is known already is not recorded again."""
        candidate = candidate_id(proposal.source)
        if candidate in self.progress.tracks:
            return candidate
        self._recorder.put_blob(proposal.source)
        self.record(
            CandidateProposed(
                candidate=candidate,
                number=len(self.progress.tracks) + 1,
                language=proposal.language,
                family=proposal.family,
                knobs=dict(proposal.knobs),
                parents=proposal.parents,
                operator=proposal.operator,
                note=proposal.note,
            )
        )
        return candidate

    def evaluate(self, candidate: str, protocol: Protocol, champion: str | None = None) -> Verdict:
        """The stored verdict, else the referee's, recorded.

        Raises:
            SandboxError: the harness failed; the evaluation stays open and is done on resume.
        """
        track = self.progress.tracks[candidate]
        if protocol in track.verdicts:
            return track.verdicts[protocol]
        order = Order(
            source=self.source(candidate),
            language=track.proposed.language,
            protocol=protocol,
            champion=self.source(champion) if champion else "",
        )
        self.record(EvaluationStarted(candidate=candidate, protocol=protocol))
        verdict = self._referee.evaluate(order)
        _check_about(verdict, candidate, protocol)
        self.record(EvaluationFinished(verdict=verdict))
        return verdict

    def advise(self, advice: Advice) -> None:
        """Records the Judge's words, once per candidate."""
        if self.progress.tracks[advice.candidate].advice is None:
            self.record(AdviceGiven(advice=advice))

    def crown(self, candidate: str, confirmed: Verdict) -> None:
        """Records a new champion."""
        self.record(
            ChampionChanged(
                candidate=candidate, previous=self.progress.champion, credited=confirmed.credited
            )
        )

    def source(self, candidate: str) -> str:
        """The source of a candidate, as it was stored."""
        return self._recorder.get_blob(candidate).decode()

    def member(self, candidate: str) -> Member:
        """An evaluated candidate as the Coder and the Judge see it."""
        track = self.progress.tracks[candidate]
        if track.verdict is None:
            raise StorageError(
                f"candidate {candidate[:12]} of campaign {self.campaign} has no verdict",
                hint="resume the campaign, so that its evaluation is done",
            )
        return Member(
            candidate=candidate,
            number=track.proposed.number,
            source=self.source(candidate),
            language=track.proposed.language,
            family=track.proposed.family,
            knobs={k: v for k, v in track.proposed.knobs.items() if isinstance(v, int | str)},
            verdict=track.verdict,
            parents=track.proposed.parents,
            advice=track.advice,
        )


def _check_about(verdict: Verdict, candidate: str, protocol: Protocol) -> None:
    if verdict.candidate != candidate or verdict.protocol is not protocol:
        raise SandboxError(
            f"the referee was asked about {candidate[:12]} ({protocol}) and answered about "
            f"{verdict.candidate[:12]} ({verdict.protocol})",
            hint="this is a fault of the referee; nothing was recorded, resume to try again",
        )
