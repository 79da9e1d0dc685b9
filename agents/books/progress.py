"""Where a campaign stands, folded from its events one at a time.

The same fold serves a live campaign, which feeds each event as it is recorded, and a resumed one,
which feeds the whole history first: a loop that asks only this can begin at any prefix of the
events. It knows no store, no referee and no clock.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ...errors import StorageError
from ...traces.decisions import SecondOpinion
from ...traces.events import (
    AdviceGiven,
    CampaignAudited,
    CampaignFinished,
    CampaignPrepared,
    CampaignResumed,
    CampaignStarted,
    CandidateMissing,
    CandidateProposed,
    ChampionChanged,
    Decided,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    Payload,
)
from ...traces.place import Place
from ...traces.records import Advice, Protocol, Status, Verdict
from ...traces.spending import Spending
from ..search.archive import Archive
from ..search.championship import may_challenge, screened_median
from .decided import Decisions

PATIENCE = 4
"""How many more candidates are screened before a challenger meets the champion.

A better one among them takes its place. A confirmation takes as long as several screenings; and few
wait, so that a campaign ended by hand has a champion close to the best.
"""


class CutOff(NamedTuple):
    """An evaluation that was begun and has no verdict."""

    candidate: str
    protocol: Protocol
    since: float = 0.0
    """When it began, by the store's clock."""


@dataclass
class Track:
    """What is known of one candidate so far."""

    proposed: CandidateProposed
    verdicts: dict[Protocol, Verdict] = field(default_factory=dict)
    """Those that decisions rest on; in a replay the recorded ones."""
    found: dict[Protocol, Verdict] = field(default_factory=dict)
    """Those that the referee gave in this campaign."""
    fallen: Verdict | None = None
    """Of a champion that no longer held. What was decided before rests on `verdicts` still."""
    advice: Advice | None = None

    @property
    def verdict(self) -> Verdict | None:
        """The most thorough verdict."""
        return self.fallen or _most_thorough(self.verdicts)

    @property
    def shown(self) -> Verdict | None:
        """The most thorough verdict that this campaign's referee gave."""
        return self.fallen or _most_thorough(self.found)


def _most_thorough(verdicts: dict[Protocol, Verdict]) -> Verdict | None:
    for protocol in (Protocol.CONFIRM, Protocol.FULL, Protocol.SCREEN):
        if protocol in verdicts:
            return verdicts[protocol]
    return None


class Progress:
    """The fold. `apply` every event in order; read the rest."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.started: CampaignStarted | None = None
        self.limits: dict[str, float] = {}
        self.tracks: dict[str, Track] = {}
        self.archive = Archive()
        self.champion: str | None = None
        self.open: CutOff | None = None
        self.to_settle: str | None = None
        """A confirmed candidate whose challenge has not been decided yet."""
        self.finished: CampaignFinished | None = None
        self.spending = Spending()
        self.placed: dict[Place, str] = {}
        """The candidate that was proposed at a place of the workflow."""
        self.missing: dict[Place, CandidateMissing] = {}
        """The places where no usable candidate came."""
        self.advised: dict[Place, Advice] = {}
        """What the Judge said at a place."""
        self.decisions = Decisions()
        self.gains: dict[str, float] = {}
        """Every champion there was, with ln(new / old) of the credited speed-up."""
        self.heirs: dict[str, str | None] = {}
        """By champion that no longer held: the last one before it that did, as it fell."""
        self._credited: dict[str, float] = {}
        self.spent_s = 0.0
        """Seconds between the events of each process; the pauses between processes are free."""
        self.last_took_s: dict[Protocol, float] = {}
        """How long the last evaluation of each protocol took."""
        self._last_at = 0.0
        self._has_begun = False
        """The last event was the beginning of a process's work."""
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Takes in one event."""
        payload = event.payload
        if isinstance(payload, CampaignAudited):
            # Somebody else's time and somebody else's verdict: the campaign stands where it stood.
            return
        pause = self._is_outside(payload)
        took_s = 0.0 if pause else max(0.0, event.at - self._last_at)
        self.spent_s += took_s
        self._last_at = event.at
        self.spending.apply(event)
        if isinstance(
            payload, CandidateProposed | EvaluationStarted | AdviceGiven | ChampionChanged
        ):
            self.to_settle = None
        match payload:
            case CampaignStarted():
                self.started = payload
                self.limits = dict(payload.limits)
            case CampaignResumed():
                self.limits = dict(payload.limits)
                self.finished = None
            case CandidateProposed():
                self.tracks[payload.candidate] = Track(payload)
                if payload.place:
                    self.placed[payload.place] = payload.candidate
            case CandidateMissing():
                self.missing[payload.place] = payload
            case Decided():
                self.decisions.add(payload)
            case EvaluationStarted():
                self.open = CutOff(payload.candidate, Protocol(payload.protocol), event.at)
            case EvaluationFinished():
                self._judge(payload, event.at)
            case AdviceGiven():
                self.tracks[payload.advice.candidate].advice = payload.advice
                if payload.place:
                    self.advised[payload.place] = payload.advice
            case ChampionChanged():
                # A first champion that is slower than the baseline gained nothing.
                gain = math.log(max(payload.credited, 1e-9) / max(1.0, self.credited))
                self.gains[payload.candidate] = max(0.0, gain)
                self._credited[payload.candidate] = payload.credited
                self.champion = payload.candidate
            case CampaignFinished():
                self.finished = payload

    def _is_outside(self, payload: Payload) -> bool:
        """Whether what lies before this event is no work of the campaign: between two processes, or
        while one prepares itself, even if it never came to an end with that."""
        had_begun, self._has_begun = (
            self._has_begun,
            isinstance(payload, CampaignStarted | CampaignResumed),
        )
        ended_early = had_begun and isinstance(payload, CampaignFinished)
        return self._has_begun or ended_early or isinstance(payload, CampaignPrepared)

    def _judge(self, finished: EvaluationFinished, at: float) -> None:
        verdict = finished.decided_on or finished.verdict
        took_s = max(0.0, at - self.open.since) if self.open else 0.0
        track = self.tracks[verdict.candidate]
        track.verdicts[verdict.protocol] = verdict
        track.found[verdict.protocol] = finished.verdict
        self.open = None
        self.archive.add(verdict.candidate, track.proposed.family, track.verdict or verdict)
        self.last_took_s[verdict.protocol] = took_s
        if verdict.protocol is Protocol.CONFIRM:
            self.to_settle = verdict.candidate
        if verdict.champion is not None:
            self._depose(verdict.champion)

    def _depose(self, fallen: Verdict) -> None:
        track = self.tracks[fallen.candidate]
        track.fallen = fallen
        self.archive.add(fallen.candidate, track.proposed.family, fallen)
        standing = [c for c in self.gains if self.tracks[c].fallen is None]
        self.champion = self.heirs[fallen.candidate] = next(reversed(standing), None)

    @property
    def credited(self) -> float:
        """The champion's credited speed-up; 0.0 where there is none."""
        return self._credited[self.champion] if self.champion else 0.0

    def require_started(self) -> CampaignStarted:
        """The first event; StorageError where the history does not begin with it."""
        if self.started is None:
            raise StorageError(
                "the campaign's events do not begin with its start",
                hint="the store was changed by something else; start a new campaign",
            )
        return self.started

    def is_suspected(self, place: Place) -> bool:
        """Whether a second look holds the candidate of this place for unearned."""
        said = self.decisions.at(place, SecondOpinion)
        return said is not None and said.label == "suspect"

    @property
    def last(self) -> Track | None:
        """The candidate that was proposed last; every one before it is done with."""
        return next(reversed(self.tracks.values())) if self.tracks else None

    @property
    def seen(self) -> frozenset[str]:
        """Ids of everything proposed."""
        return frozenset(self.tracks)

    @property
    def evaluated(self) -> int:
        """How many candidates have a verdict."""
        return sum(1 for track in self.tracks.values() if track.verdict)

    @property
    def by_status(self) -> dict[str, int]:
        """How many candidates stand at each status, in the order of Status, empty ones left out."""
        statuses = [track.verdict.status for track in self.tracks.values() if track.verdict]
        return {str(s): statuses.count(s) for s in Status if s in statuses}

    def challenger(self, *, is_last_call: bool = False) -> str | None:
        """Who is to be confirmed now, if anybody.

        One that was cut off comes first. Else it is the best screened of those that may challenge
        the champion: at once where there is no champion, otherwise after a few more candidates,
        since a search that climbs would pay for a confirmation at every step. At the last call
        nobody waits.
        """
        if self.open and self.open.protocol is Protocol.CONFIRM:
            return self.open.candidate
        best = self._best_challenger()
        if best is None:
            return None
        waited = len(self.tracks) - best.number
        is_due = self.champion is None or is_last_call or waited >= PATIENCE
        return best.candidate if is_due else None

    def _best_challenger(self) -> CandidateProposed | None:
        champion = self.tracks[self.champion].verdicts if self.champion else {}
        to_beat = champion.get(Protocol.SCREEN)
        best, best_median = None, 0.0
        for track in self.tracks.values():
            screened = track.verdicts.get(Protocol.SCREEN)
            # What was run for comparison only is in another language, and wins nothing.
            if self.started and track.proposed.language != self.started.language:
                continue
            if Protocol.CONFIRM in track.verdicts or not may_challenge(screened, to_beat):
                continue
            median = screened_median(screened) or 0.0
            if median > best_median:
                best, best_median = track.proposed, median
        return best
