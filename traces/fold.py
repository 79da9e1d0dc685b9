# SPDX-License-Identifier: Apache-2.0
"""The one fold over a campaign's events: its candidates, their verdicts, its champion.

`apply` takes in one event after the other, so that a living search, which feeds each event as it is
recorded, and a viewer, which feeds a whole history, know the same. Knows nothing of SQLite, files,
pages or searches.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, NamedTuple, TypeVar

from pydantic import JsonValue

from ..errors import StorageError
from .events import (
    AdviceGiven,
    CampaignAudited,
    CampaignFinished,
    CampaignPrepared,
    CampaignResumed,
    CampaignStarted,
    CandidateCounted,
    CandidateMissing,
    CandidateProposed,
    ChampionChanged,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    Payload,
)
from .place import NOWHERE, Place, StoredPlace
from .records import Advice, Depth, Status, Verdict
from .spending import Spending
from .tally import Tally

_WEIGHT = {Depth.SCREEN: 0, Depth.RACE: 0, Depth.FULL: 1, Depth.CONFIRM: 2, Depth.RECORD: 3}


class ChampionChange(NamedTuple):
    """A change of champion, when it was, and what had been spent on models until then."""

    at: float
    event: ChampionChanged
    tokens: int = 0
    usd: float | None = 0.0
    """None where a price is unknown."""


class Fall(NamedTuple):
    """A champion that no longer held, when and beside whom, and who was champion then."""

    at: float
    candidate: str
    beside: str
    champion: str | None
    tokens: int = 0
    """Spent on models until then."""
    usd: float | None = 0.0


class Audited(NamedTuple):
    """An audit and when it was."""

    at: float
    event: CampaignAudited


def most_thorough(verdicts: Iterable[Verdict]) -> Verdict | None:
    """The verdict that counts: the most thorough protocol's, the latest of these; and before it a
    fault that any later look found, since luck does not undo it. A fault of ours verifies nobody
    and takes nothing from who was verified."""
    counts: Verdict | None = None
    for verdict in verdicts:
        if counts is None or _outranks(verdict, counts):
            counts = verdict
    return counts


def _outranks(later: Verdict, counts: Verdict) -> bool:
    if shows_fault(later) or counts.status is Status.HARNESS_ERROR:
        return True
    is_ours = later.status is Status.HARNESS_ERROR
    if is_ours and counts.status is Status.VERIFIED:
        return False
    return _WEIGHT[later.protocol] >= _WEIGHT[counts.protocol]


def shows_fault(verdict: Verdict) -> bool:
    """Whether it found something wrong with the candidate, and not with the harness."""
    return not verdict.status.is_pass and verdict.status is not Status.HARNESS_ERROR


@dataclass(frozen=True)
class Entry:
    """One candidate with all that was recorded of it."""

    candidate: str
    number: int
    language: str
    family: str
    knobs: dict[str, JsonValue]
    parents: tuple[str, ...]
    operator: str
    strategy: str
    techniques: tuple[str, ...]
    notes: tuple[str, ...]
    note: str
    """What is told of it, in one line."""
    at: float
    file: str = ""
    """What a file that was handed in is called."""
    place: StoredPlace = NOWHERE
    """Where in the workflow it was proposed."""
    verdicts: tuple[Verdict, ...] = ()
    """Those that the referee gave in this campaign."""
    relied_on: tuple[Verdict, ...] = ()
    """Those that decisions rest on; in a replay the recorded ones."""
    fallen: Verdict | None = None
    """Of a champion that no longer held; decisions rest on `relied_on` before that, still."""
    fell_beside: StoredPlace = NOWHERE
    """Where the challenger was proposed beside whom it fell."""
    advice: Advice | None = None
    counted: CandidateCounted | None = None
    """What the hardware's counters said of it for the Judge, if they were read."""
    cut_off: bool = False
    """Its last evaluation was started and not finished: still running, or its process died."""
    tokens: int = 0
    """What had been spent on models when it was proposed."""
    usd: float | None = 0.0
    """The same in US dollars; None where a price is unknown."""
    seqs: tuple[int, ...] = ()
    """The events that tell of it, in order."""

    @cached_property
    def verdict(self) -> Verdict | None:
        """The verdict that counts, see `most_thorough`."""
        return most_thorough(self.verdicts)

    @property
    def how(self) -> str:
        """How it came about and of which file, for people."""
        return f"{self.operator} of {self.file}" if self.file else self.operator


E = TypeVar("E", bound=Entry)

_WORK = (EvaluationStarted, EvaluationFinished, CandidateCounted, ChampionChanged)


class Fold(Generic[E]):
    """The fold. `apply` every event in order; read the rest."""

    def __init__(self, kind: type[E], events: Iterable[Event] = ()) -> None:
        self._kind = kind
        self._first: CampaignStarted | None = None
        self.campaign = ""
        self.started_at = 0.0
        self.last_at = 0.0
        self.spent_s = 0.0
        """Seconds between the events of each process; the pauses between processes are free."""
        self.judged_s = self.raced_s = 0.0
        """Of those, in which an evaluation ran, and in which one of them was a heat of the race."""
        self.counted_s = 0.0
        """Of those, in which hardware counters were read for the Judge."""
        self._has_begun = False
        """The last event was the beginning of a process's work."""
        self.last_seq = 0
        self.entries: dict[str, E] = {}
        """By candidate, in the order they were proposed."""
        self.touched: set[str] = set()
        """Candidates that changed since somebody emptied this: whoever keeps something of each."""
        self.tally = Tally()
        self.champion: str | None = None
        self.changes: list[ChampionChange] = []
        self.falls: list[Fall] = []
        self.finished: CampaignFinished | None = None
        """None while it runs, was cut off, or was taken up again."""
        self.resumes = 0
        self.limits: dict[str, float] = {}
        """The budget that now holds."""
        self.spending = Spending()
        self.prepared: list[CampaignPrepared] = []
        """Of every process that came so far; those before this was recorded have none."""
        self.is_prepared = False
        """Whether the last process that took it up came to its first candidate."""
        self.missing: dict[Place, CandidateMissing] = {}
        """Replies of models that held no usable candidate, by their places."""
        self.audits: list[Audited] = []
        """What was found by those who verified a champion again; it changes nothing else."""
        for event in events:
            self.apply(event)

    @property
    def started(self) -> CampaignStarted:
        """The first event. StorageError where there is none."""
        if self._first is None:
            raise _without_a_start()
        return self._first

    @property
    def evaluated(self) -> int:
        """How many candidates have a verdict."""
        return self.tally.evaluated

    @property
    def by_status(self) -> dict[Status, int]:
        """How many candidates have each status, in the order of the statuses."""
        return self.tally.by_status

    @property
    def credits(self) -> dict[str, float]:
        """Every champion there was, with its credited speed-up."""
        return {c.event.candidate: c.event.credited for c in self.changes}

    @property
    def credited(self) -> float:
        """The champion's credited speed-up; 0.0 where there is none."""
        return self.credits.get(self.champion or "", 0.0)

    def heir_of(self, fallen: str) -> str | None:
        """Who was champion when this one no longer held."""
        return next((fall.champion for fall in self.falls if fall.candidate == fallen), None)

    def apply(self, event: Event) -> None:
        """Takes in one event.

        Raises:
            StorageError: it is not the first and no start, or names a candidate never proposed.
        """
        payload = event.payload
        if self._first is None and not isinstance(payload, CampaignStarted):
            raise _without_a_start()
        self.last_seq = event.seq
        if isinstance(payload, CampaignAudited):
            # An audit looks from outside: the campaign did not go on by it.
            self._require_entry(payload.candidate, event)
            self.audits.append(Audited(event.at, payload))
            return
        self._take_time(payload, event)
        self.spending.apply(event)
        if isinstance(payload, CandidateProposed | CandidateMissing | AdviceGiven):
            self._take_words(payload, event)
        elif isinstance(payload, _WORK):
            self._take_work(payload, event)
        else:
            self._take_course(payload, event)
        # Campaigns from before preparations were recorded began with their first candidate.
        if not isinstance(payload, CampaignStarted | CampaignFinished):
            self.is_prepared = not isinstance(payload, CampaignResumed)

    def _take_time(self, payload: Payload, event: Event) -> None:
        lasted_s = 0.0 if self._is_outside(payload) else max(0.0, event.at - self.last_at)
        self.spent_s += lasted_s
        if isinstance(payload, CandidateCounted):
            self.counted_s += payload.took_s
        if isinstance(payload, EvaluationFinished):
            self.judged_s += lasted_s
            self.raced_s += lasted_s if payload.verdict.protocol is Depth.RACE else 0.0
        self.last_at = event.at

    def _is_outside(self, payload: Payload) -> bool:
        """Whether what lies before this event is no work of the campaign: between two processes, or
        while one prepares itself, even if it never came to an end with that."""
        had_begun, self._has_begun = (
            self._has_begun,
            isinstance(payload, CampaignStarted | CampaignResumed),
        )
        ended_early = had_begun and isinstance(payload, CampaignFinished)
        return self._has_begun or ended_early or isinstance(payload, CampaignPrepared)

    def _take_course(self, payload: Payload, event: Event) -> None:
        match payload:
            case CampaignStarted():
                self._start(payload, event)
            case CampaignResumed():
                self.finished = None
                self.resumes += 1
                self.limits = dict(payload.limits or self.limits)
            case CampaignPrepared():
                self.prepared.append(payload)
            case CampaignFinished():
                self.finished = payload

    def _take_words(
        self, payload: CandidateProposed | CandidateMissing | AdviceGiven, event: Event
    ) -> None:
        match payload:
            case CandidateProposed(candidate=candidate):
                if candidate not in self.entries:
                    entry = entry_of(self._kind, payload, event.at)
                    spent = self.spending
                    self._put(replace(entry, tokens=spent.tokens, usd=spent.usd))
            case CandidateMissing(place=place):
                self.missing[place] = payload
            case AdviceGiven(advice=advice):
                entry = self._require_entry(advice.candidate, event)
                self._put(replace(entry, advice=advice))

    def _take_work(
        self,
        payload: EvaluationStarted | EvaluationFinished | CandidateCounted | ChampionChanged,
        event: Event,
    ) -> None:
        match payload:
            case EvaluationStarted(candidate=candidate):
                self._put(replace(self._require_entry(candidate, event), cut_off=True))
            case EvaluationFinished():
                self._judge(payload, event)
            case CandidateCounted(candidate=candidate):
                entry = self._require_entry(candidate, event)
                self._put(with_counters(entry, payload))
            case ChampionChanged(candidate=candidate):
                self._require_entry(candidate, event)
                spent = self.spending
                change = ChampionChange(event.at, payload, spent.tokens, spent.usd)
                self.changes.append(change)
                self.champion = candidate

    def _start(self, payload: CampaignStarted, event: Event) -> None:
        if self._first is not None:
            raise StorageError(
                f"campaign {event.campaign} starts a second time at event {event.seq}",
                hint="the store was written by something else than kernelwright",
            )
        self._first, self.campaign, self.started_at = payload, event.campaign, event.at
        self.limits = dict(payload.limits)

    def _judge(self, finished: EvaluationFinished, event: Event) -> None:
        verdict, decided = finished.verdict, finished.decided_on or finished.verdict
        self._see(verdict, event)
        entry = self.entries[verdict.candidate]
        relied_on = (*entry.relied_on, decided)
        self._put(replace(entry, relied_on=relied_on))
        if verdict.champion is not None:
            self._see(verdict.champion, event)
        if decided.champion is not None:
            self._depose(decided.champion, entry, event)
        if shows_fault(decided) and any(
            c.event.candidate == verdict.candidate for c in self.changes
        ):
            # In a heat of its own.
            self._depose(decided, entry, event)

    def _see(self, verdict: Verdict, event: Event) -> None:
        entry = self._require_entry(verdict.candidate, event)
        verdicts = (*entry.verdicts, verdict)
        self._put(replace(entry, verdicts=verdicts, cut_off=False))

    def _depose(self, verdict: Verdict, beside: Entry, event: Event) -> None:
        """Without the champion that this verdict is about: the last one before that still holds."""
        fallen = self._require_entry(verdict.candidate, event)
        self._put(replace(fallen, fallen=verdict, fell_beside=beside.place))
        champions = (change.event.candidate for change in reversed(self.changes))
        self.champion = next((c for c in champions if self.entries[c].fallen is None), None)
        names = (verdict.candidate, beside.candidate, self.champion)
        self.falls.append(Fall(event.at, *names, self.spending.tokens, self.spending.usd))

    def _put(self, entry: E) -> None:
        before = self.entries.get(entry.candidate)
        if self.last_seq not in entry.seqs[-1:]:
            entry = replace(entry, seqs=(*entry.seqs, self.last_seq))
        self.entries[entry.candidate] = entry
        self.touched.add(entry.candidate)
        self.tally.change(before, entry, self.entries)

    def _require_entry(self, candidate: str, event: Event) -> E:
        if candidate not in self.entries:
            raise StorageError(
                f"event {event.seq} of campaign {event.campaign} is about candidate "
                f"{candidate[:12]}, which was never proposed",
                hint="the store was written by something else than kernelwright",
            )
        return self.entries[candidate]


def entry_of(kind: type[E], proposed: CandidateProposed, at: float) -> E:
    """A candidate of which nothing else is known."""
    return kind(
        candidate=proposed.candidate,
        number=proposed.number,
        language=proposed.language,
        family=proposed.family,
        knobs=proposed.knobs,
        parents=proposed.parents,
        operator=proposed.operator,
        strategy=proposed.strategy,
        techniques=proposed.techniques,
        notes=proposed.notes,
        note=proposed.said,
        at=at,
        file=proposed.file,
        place=proposed.place,
    )


def _without_a_start() -> StorageError:
    return StorageError(
        "a campaign's events do not begin with its start",
        hint="give all of its events, from the first one on; where they are all, the store was "
        "changed by something else: start a new campaign",
    )


def with_counters(entry: E, counted: CandidateCounted) -> E:
    """The entry with the profile that was counted in place of the one of its quick looks."""
    profile = counted.profile
    if profile is None:
        return replace(entry, counted=counted)

    def put_in(verdicts: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        return tuple(
            each.model_copy(update={"profile": profile})
            if each.protocol.is_quick and each.status.is_pass
            else each
            for each in verdicts
        )

    return replace(
        entry,
        counted=counted,
        verdicts=put_in(entry.verdicts),
        relied_on=put_in(entry.relied_on),
    )
