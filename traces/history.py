"""What a campaign's events mean together: its candidates, their verdicts, its champion.

A pure function of events. Knows nothing of SQLite, files or pages.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pydantic import JsonValue

from ..errors import StorageError, UnknownNameError, UsageError
from .events import (
    AdviceGiven,
    CampaignAudited,
    CampaignFinished,
    CampaignPrepared,
    CampaignResumed,
    CampaignStarted,
    CandidateMissing,
    CandidateProposed,
    ChampionChanged,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    Payload,
)
from .records import CAPABILITIES, Advice, Isolation, Protocol, Status, Verdict
from .spending import Booked, Spending

_WEIGHT = {Protocol.SCREEN: 0, Protocol.FULL: 1, Protocol.CONFIRM: 2, Protocol.RECORD: 3}


class Change(NamedTuple):
    """A change of champion and when it was."""

    at: float
    event: ChampionChanged


class Fall(NamedTuple):
    """A champion that no longer held, when and beside whom, and who was champion then."""

    at: float
    candidate: str
    beside: str
    champion: str | None


class Audited(NamedTuple):
    """An audit and when it was."""

    at: float
    event: CampaignAudited


class Best(NamedTuple):
    """The best credited speed-up from this candidate on; 0.0 where there is none."""

    number: int
    at: float
    credited: float


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
    verdicts: tuple[Verdict, ...] = ()
    advice: Advice | None = None
    cut_off: bool = False
    """Its last evaluation was started and not finished: still running, or its process died."""

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that counts: the most thorough protocol's, the latest of these."""
        if not self.verdicts:
            return None
        heaviest = max(_WEIGHT[verdict.protocol] for verdict in self.verdicts)
        return next(v for v in reversed(self.verdicts) if _WEIGHT[v.protocol] == heaviest)


@dataclass(frozen=True)
class History:
    """A campaign as its events tell it."""

    campaign: str
    started: CampaignStarted
    started_at: float
    last_at: float
    last_seq: int
    entries: dict[str, Entry] = field(default_factory=dict)
    """By candidate, in the order they were proposed."""
    champion: str | None = None
    changes: tuple[Change, ...] = ()
    falls: tuple[Fall, ...] = ()
    finished: CampaignFinished | None = None
    """None while it runs, was cut off, or was taken up again."""
    resumes: int = 0
    limits: dict[str, float] = field(default_factory=dict)
    """The budget that now holds."""
    usd: float | None = 0.0
    """What models cost; None where a price is unknown."""
    tokens: int = 0
    """What models took."""
    booked: Booked = Booked()
    """What of both is booked for attempts whose outcome nobody knows."""
    prepared: tuple[CampaignPrepared, ...] = ()
    """Of every process that came so far; those before this was recorded have none."""
    is_prepared: bool = False
    """Whether the last process that took it up came to its first candidate."""
    missing: tuple[CandidateMissing, ...] = ()
    """Replies of models that held no usable candidate."""
    audits: tuple[Audited, ...] = ()
    """What was found by those who verified a champion again; it changes nothing else."""

    @property
    def preparation_s(self) -> float:
        """Seconds before candidates could be judged, of all processes; outside of the budget."""
        return sum(prepared.total_s for prepared in self.prepared)

    @property
    def evaluated(self) -> int:
        """How many candidates have a verdict."""
        return sum(1 for entry in self.entries.values() if entry.verdicts)

    @property
    def by_status(self) -> dict[Status, int]:
        """How many candidates have each status, in the order of the statuses."""
        counts = Counter(e.verdict.status for e in self.entries.values() if e.verdict)
        return {status: counts[status] for status in Status if counts[status]}

    @property
    def best(self) -> Entry | None:
        """The champion."""
        return self.entries[self.champion] if self.champion else None

    @property
    def leader(self) -> Entry | None:
        """The candidate with the shortest modelled time where nothing can be timed.

        It leads a ranking; it is no winner and has no speed-up.
        """
        ranked = [e for e in self.entries.values() if e.verdict and e.verdict.modelled_us]
        return min(ranked, key=_modelled, default=None)

    @property
    def isolation(self) -> Isolation | None:
        """The isolation matrix that the newest verdict carries."""
        return next(reversed(self._isolations()), None)

    @property
    def not_enforced(self) -> tuple[str, ...]:
        """What was open to a kernel in any of the evaluations: rows of the matrix."""
        open_rows = {row for isolation in self._isolations() for row in isolation.not_enforced}
        return tuple(row for row in CAPABILITIES if row in open_rows)

    @property
    def is_weakly_isolated(self) -> bool:
        """Whether any evaluation went without what unattended work needs."""
        return any(isolation.lacking for isolation in self._isolations())

    def _isolations(self) -> list[Isolation]:
        verdicts = [v for entry in self.entries.values() for v in entry.verdicts]
        return [verdict.isolation for verdict in verdicts if verdict.isolation]

    def best_so_far(self) -> list[Best]:
        """One step per change of champion: from which candidate on, when, and its credit."""
        credits = {event.candidate: event.credited for _, event in self.changes}
        steps = [
            Best(self.entries[fall.beside].number, fall.at, credits.get(fall.champion or "", 0.0))
            for fall in self.falls
        ]
        steps += [
            Best(self.entries[event.candidate].number, at, event.credited)
            for at, event in self.changes
        ]
        return sorted(steps, key=lambda step: step.at)


def derive(events: Iterable[Event]) -> History:
    """The history that the events of one campaign tell.

    Raises:
        StorageError: the events do not begin with a start, or name a candidate never proposed.
    """
    sequence = iter(events)
    first = next(sequence, None)
    if first is None or not isinstance(first.payload, CampaignStarted):
        raise StorageError(
            "a campaign's events do not begin with its start",
            hint="give all of its events, from the first one on",
        )
    history = History(
        first.campaign, first.payload, first.at, first.at, first.seq, limits=first.payload.limits
    )
    entries: dict[str, Entry] = {}
    spending = Spending()
    for event in sequence:
        # An audit looks from outside: the campaign did not go on by it.
        is_audit = isinstance(event.payload, CampaignAudited)
        last_at = history.last_at if is_audit else event.at
        is_prepared = _is_prepared(history, event.payload)
        history = replace(history, last_at=last_at, last_seq=event.seq, is_prepared=is_prepared)
        history = _take(history, entries, event)
        spending.apply(event)
    return replace(
        history, entries=entries, usd=spending.usd, tokens=spending.tokens, booked=spending.booked
    )


def _is_prepared(history: History, payload: Payload) -> bool:
    """Campaigns from before preparations were recorded began with their first candidate."""
    if isinstance(payload, CampaignFinished | CampaignAudited):
        return history.is_prepared
    return not isinstance(payload, CampaignResumed)


def _take(history: History, entries: dict[str, Entry], event: Event) -> History:
    """One event: changes `entries` in place and gives the changed rest."""
    payload = event.payload
    match payload:
        case CandidateProposed():
            entries.setdefault(payload.candidate, _entry(payload, event.at))
        case EvaluationStarted(candidate=candidate):
            entries[candidate] = replace(_known(entries, candidate, event), cut_off=True)
        case EvaluationFinished(verdict=verdict):
            _judged(entries, verdict, event)
            if verdict.champion is not None:
                return _fallen(history, entries, verdict.champion, event, verdict.candidate)
        case AdviceGiven(advice=advice):
            entry = _known(entries, advice.candidate, event)
            entries[advice.candidate] = replace(entry, advice=advice)
        case ChampionChanged(candidate=candidate):
            _known(entries, candidate, event)
            changes = (*history.changes, Change(event.at, payload))
            return replace(history, champion=candidate, changes=changes)
        case CampaignPrepared():
            return replace(history, prepared=(*history.prepared, payload))
        case CandidateMissing():
            return replace(history, missing=(*history.missing, payload))
        case CampaignFinished():
            return replace(history, finished=payload)
        case CampaignAudited(candidate=candidate):
            _known(entries, candidate, event)
            return replace(history, audits=(*history.audits, Audited(event.at, payload)))
        case CampaignResumed(limits=limits):
            return replace(
                history,
                finished=None,
                resumes=history.resumes + 1,
                limits=limits or history.limits,
            )
        case CampaignStarted():
            raise StorageError(
                f"campaign {event.campaign} starts a second time at event {event.seq}",
                hint="the store was written by something else than kernelwright",
            )
    return history


def _judged(entries: dict[str, Entry], verdict: Verdict, event: Event) -> None:
    entry = _known(entries, verdict.candidate, event)
    verdicts = (*entry.verdicts, verdict)
    entries[verdict.candidate] = replace(entry, verdicts=verdicts, cut_off=False)


def _fallen(
    history: History, entries: dict[str, Entry], verdict: Verdict, event: Event, beside: str
) -> History:
    """Without the champion that this verdict is about."""
    _judged(entries, verdict, event)
    standing = _standing(history.changes, entries)
    fall = Fall(event.at, verdict.candidate, beside, standing)
    return replace(history, champion=standing, falls=(*history.falls, fall))


def _standing(changes: tuple[Change, ...], entries: dict[str, Entry]) -> str | None:
    """The last champion that still holds."""
    champions = [change.event.candidate for change in reversed(changes)]
    return next((c for c in champions if (v := entries[c].verdict) and v.status.is_pass), None)


def _modelled(entry: Entry) -> tuple[float, int]:
    assert entry.verdict is not None
    return entry.verdict.modelled_us or 0.0, entry.number


def _entry(proposed: CandidateProposed, at: float) -> Entry:
    return Entry(
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
    )


def _known(entries: dict[str, Entry], candidate: str, event: Event) -> Entry:
    if candidate not in entries:
        raise StorageError(
            f"event {event.seq} of campaign {event.campaign} is about candidate "
            f"{candidate[:12]}, which was never proposed",
            hint="the store was written by something else than kernelwright",
        )
    return entries[candidate]


def find_candidate(history: History, text: str) -> str:
    """The candidate that `text` names: its number, an id's unique beginning, or `@best`.

    Raises:
        UnknownNameError: no candidate matches.
        UsageError: several match, or there is no best one.
    """
    if text == "@best":
        if history.champion is None:
            leads = f": #{history.leader.number} leads by modelled time" if history.leader else ""
            raise UsageError(
                f"campaign {history.campaign} has no verified winner",
                hint=f"name a candidate by its number or the beginning of its id{leads}",
            )
        return history.champion
    if text in history.entries:
        return text
    if text.isdecimal():
        for entry in history.entries.values():
            if entry.number == int(text):
                return entry.candidate
    found = [name for name in history.entries if text and name.startswith(text)]
    known = [str(entry.number) for entry in history.entries.values()]
    return the_only(f"candidate of campaign {history.campaign}", text, found, known)


def the_only(kind: str, text: str, found: list[str], known: list[str]) -> str:
    """The one name that was found for `text`, or the error that says how it is not one."""
    if len(found) == 1:
        return found[0]
    if not found:
        raise UnknownNameError.among(kind, text, known)
    shown = ", ".join(name[:24] for name in found[:8])
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    raise UsageError(
        f"'{text}' names {len(found)} {kind.split()[0]}s", hint=f"one of: {shown}{more}"
    )
