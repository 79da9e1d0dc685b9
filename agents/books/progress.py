# SPDX-License-Identifier: Apache-2.0
"""Where a living search stands: the fold over a campaign's events, and what only a search needs.

The same fold serves a live campaign, which feeds each event as it is recorded, and a resumed one,
which feeds the whole history first: a loop that asks only this can begin at any prefix of the
events. It knows no store, no referee and no clock.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from ...errors import StorageError
from ...traces.decisions import KnobsTuned, SecondOpinion
from ...traces.events import (
    AdviceGiven,
    CampaignAudited,
    CandidateProposed,
    ChampionChanged,
    Decided,
    EvaluationFinished,
    EvaluationStarted,
    Event,
)
from ...traces.fold import Fold
from ...traces.place import Place, in_round
from ...traces.records import Advice, Depth, Verdict
from ..search.archive import Archive
from ..search.scale import BASELINE, PROCESS_ERROR, Estimate, Scale, pairs_of
from .candidate import KnownCandidate
from .decided import D, Decisions


class CutOff(NamedTuple):
    """An evaluation that was begun and has no verdict."""

    candidate: str
    protocol: Depth
    since: float = 0.0
    """When it began, by the store's clock."""
    beside: str = ""
    """Who is timed beside it under the name of the champion."""


class Progress(Fold[KnownCandidate]):
    """The fold with archive, places and challenges. `apply` every event in order; read the rest."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.archive = Archive()
        self.scale = Scale()
        """Where all that were timed stand now."""
        self.open: CutOff | None = None
        self.placed: dict[Place, str] = {}
        """The candidate that was proposed at a place of the workflow."""
        self.advised: dict[Place, Advice] = {}
        """What the Judge said at a place."""
        self.decisions = Decisions()
        self.gains: dict[str, float] = {}
        """Every champion there was, with ln(new / old) of the credited speed-up."""
        self.last_took_s: dict[Depth, float] = {}
        """How long the last evaluation of each protocol took."""
        self.heats: Counter[str] = Counter()
        """How often each candidate was raced."""
        self.took_s: defaultdict[Depth, float] = defaultdict(float)
        """How long all evaluations of each protocol took together."""
        super().__init__(KnownCandidate, events)

    def apply(self, event: Event) -> None:
        """Takes in one event."""
        before_credited = self.credited
        if isinstance(event.payload, EvaluationFinished):
            event = event.model_copy(update={"payload": _lighten(event.payload)})
        payload = event.payload
        super().apply(event)
        if isinstance(payload, CampaignAudited):
            # Somebody else's time and somebody else's verdict: the campaign stands where it stood.
            return
        match payload:
            case CandidateProposed() if payload.place:
                self.placed[payload.place] = payload.candidate
            case Decided():
                self.decisions.add(payload)
            case EvaluationStarted():
                self.open = self._begin(payload, event.at)
            case EvaluationFinished():
                self._rank(payload, event.at)
            case AdviceGiven() if payload.place:
                self.advised[payload.place] = payload.advice
            case ChampionChanged():
                # A first champion that is slower than the baseline gained nothing.
                gain = math.log(max(payload.credited, 1e-9) / max(1.0, before_credited))
                self.gains[payload.candidate] = max(0.0, gain)

    def _begin(self, started: EvaluationStarted, at: float) -> CutOff:
        protocol = Depth(started.protocol)
        # Who was timed beside a confirmation was not told once: it was the champion.
        champion = self.champion if protocol is Depth.CONFIRM else None
        return CutOff(started.candidate, protocol, at, started.beside or champion or "")

    def _rank(self, finished: EvaluationFinished, at: float) -> None:
        decided = finished.decided_on or finished.verdict
        open_, self.open = self.open, None
        took_s = max(0.0, at - open_.since) if open_ else 0.0
        self.last_took_s[decided.protocol] = took_s
        self.took_s[decided.protocol] += took_s
        self.heats[decided.candidate] += decided.protocol is Depth.RACE
        self._weigh(decided, open_.beside if open_ else "")
        self._archive(decided.candidate)
        if decided.champion is not None:
            self._archive(decided.champion.candidate)

    def _weigh(self, verdict: Verdict, beside: str) -> None:
        """Joins what was timed side by side to the scale, and keeps where that left the two."""
        if not verdict.status.is_pass or verdict.measurement is None:
            return
        candidate = verdict.candidate
        for pair in pairs_of(candidate, beside, verdict.measurement):
            self.scale.add(pair)
        found, speed = self.entries[candidate], self.scale.speed_of(candidate)
        if speed is None:
            return
        if verdict.protocol is Depth.SCREEN:
            ahead = self.scale.compare(candidate, beside) if beside else None
            found = replace(found, screened_speed=speed.mean, rival=beside, ahead=ahead)
        elif verdict.protocol is Depth.CONFIRM:
            found = replace(found, settled_speed=speed.mean)
        self.entries[candidate] = found

    def _archive(self, candidate: str) -> None:
        found = self.entries[candidate]
        if found.basis:
            self.archive.add(candidate, found.family, found.worth())

    @property
    def candidates(self) -> Mapping[str, KnownCandidate]:
        """All of them, in the order they were proposed."""
        return self.entries

    @property
    def leader(self) -> KnownCandidate | None:
        """The champion."""
        return self.entries[self.champion] if self.champion else None

    def find(self, candidate: str | None) -> KnownCandidate | None:
        """What is known of a candidate; None for none."""
        return self.entries.get(candidate) if candidate else None

    def get_candidate(self, candidate: str) -> KnownCandidate:
        """What is known of a candidate that was proposed."""
        return self.entries[candidate]

    def candidate_at(self, place: Place) -> KnownCandidate | None:
        """The candidate that was proposed at a place."""
        return self.find(self.placed.get(place))

    def screened_in(self, number: int) -> list[KnownCandidate]:
        """The candidates of a round that have a verdict, by slot."""
        placed = in_round(number, self.placed.items())
        return [found for c in placed if (found := self.get_candidate(c)).screened]

    @property
    def count(self) -> int:
        """How many candidates were proposed."""
        return len(self.entries)

    def find_decision(self, place: Place, kind: type[D]) -> D | None:
        """What of this kind was decided at a place."""
        return self.decisions.at(place, kind)

    def require_decision(self, place: Place, kind: type[D]) -> D:
        """As `find_decision`, where the campaign cannot be at this point without it.

        Raises:
            StorageError: it is not there.
        """
        found = self.find_decision(place, kind)
        if found is None:
            raise StorageError(
                f"campaign {self.campaign} does not hold what was decided at {place}",
                hint="the store was changed by something else; start a new campaign",
            )
        return found

    def find_tuned(self, candidate: str, by: int | None = None) -> str:
        """The fastest variant of a candidate with other numbers; itself where there is none.

        Args:
            by: See KnownCandidate.is_sound.
        """
        for decided in self.decisions.get_all(KnobsTuned).values():
            if decided.leader == candidate and self.entries[decided.best].is_sound(by):
                return decided.best
        return candidate

    def is_suspected(self, place: Place) -> bool:
        """Whether a second look holds the candidate of this place for unearned."""
        said = self.find_decision(place, SecondOpinion)
        return said is not None and said.label == "suspect"

    @property
    def last(self) -> KnownCandidate | None:
        """The candidate that was proposed last; every one before it is done with."""
        return next(reversed(self.entries.values())) if self.entries else None

    @property
    def seen(self) -> frozenset[str]:
        """Ids of everything proposed."""
        return frozenset(self.entries)

    def compare_screened(self, challenger: str, holder: str) -> Estimate | None:
        """By how much a challenger is faster than a champion, as known when it was screened.

        It says the same whenever it is asked, whatever was timed since. None: it was not timed.
        """
        found, held = self.entries[challenger], self.entries[holder]
        if found.ahead is not None and found.rival == holder:
            return found.ahead
        worth = held.worth() or held.score
        if found.score is None or not worth:
            return None
        return Estimate(math.log(found.score / worth), PROCESS_ERROR)

    def standing_of(self, candidate: KnownCandidate) -> float | None:
        """The logarithm of its speed as all pairs say, else of its score; None: it has none."""
        speed = self.scale.speed_of(candidate.candidate)
        if speed is not None:
            return speed.mean
        return math.log(candidate.score) if candidate.score else None

    def observe(self, candidate: KnownCandidate) -> tuple[float | None, float] | None:
        """For a search over knobs: the logarithm of its time, and the standard error of that.

        Of its time over the fastest baseline's, as all pairs say, else of the modelled one; no
        logarithm where it was not right, and nothing before it was judged.
        """
        if candidate.screened is None:
            return None
        if candidate.fault or not candidate.is_sound():
            return None, 0.0
        speed = self.scale.speed_of(candidate.candidate)
        if speed is None:
            modelled_us = candidate.screened.modelled_us
            return (math.log(modelled_us), 0.0) if modelled_us else (None, 0.0)
        # Where the whole scale lies is no matter for who is the fastest.
        known = self.scale.compare(candidate.candidate, self.champion or BASELINE) or speed
        return -speed.mean, known.error

    @property
    def challenger(self) -> str | None:
        """The fastest of those that were not confirmed, if it seems faster than the champion."""
        language, speeds = self.started.language, {}
        for each in self.entries.values():
            # What was run for comparison only is in another language, and wins nothing.
            waits = each.language == language and each.confirmed is None and each.is_sound()
            if waits and (speed := self.scale.speed_of(each.candidate)):
                speeds[each.candidate] = speed.mean
        best = max(speeds, key=lambda candidate: speeds[candidate], default=None)
        if best is None or self.champion is None:
            return best
        ahead = self.scale.compare(best, self.champion)
        return best if ahead and ahead.mean > 0 else None


def _lighten(finished: EvaluationFinished) -> EvaluationFinished:
    """Without the checks that passed: a hundred of each verdict, three quarters of its memory, of
    which no decision and no prompt says anything. Who wants them asks the store."""
    decided = finished.decided_on
    light = {"verdict": _lighten_verdict(finished.verdict)}
    if decided is not None:
        light["decided_on"] = _lighten_verdict(decided)
    return finished.model_copy(update=light)


def _lighten_verdict(verdict: Verdict) -> Verdict:
    champion = verdict.champion
    failed = tuple(check for check in verdict.checks if not check.passed)
    light = {"checks": failed, "champion": champion and _lighten_verdict(champion)}
    return verdict.model_copy(update=light)
