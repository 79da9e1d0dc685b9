# SPDX-License-Identifier: Apache-2.0
"""What was asked of models and what came of it, place by place: a fold over a campaign's events.

Knows the order of things and what each cost. What was said stands in blobs, which it only names;
`conversation.py` reads those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from .events import (
    AdviceGiven,
    CandidateMissing,
    CandidateProposed,
    Decided,
    Event,
    ModelFailed,
    ModelReplied,
    ModelRequested,
)
from .history import the_only
from .place import Place, StoredPlace
from .spending import never_asked

ASKED_AGAIN = "not usable, asked again"
RULES_SPOKE = "not usable, rules spoke instead"

_RULES = "rules"
"""How the name of a Judge begins that asks no model."""


@dataclass
class Attempt:
    """One attempt of a call."""

    requested: ModelRequested
    at: float
    outcome: ModelReplied | ModelFailed | None = None
    """None: it has no answer yet, or its process died."""
    until: float | None = None


@dataclass(frozen=True)
class CallRow:
    """One question in a line of a table."""

    number: int
    call: str
    """Its key."""
    place: StoredPlace
    purpose: str
    model: str
    attempts: int
    failures: int
    outcome: str
    is_answered: bool
    overran: bool
    tokens: int
    usd: float | None
    is_estimated: bool
    seconds: float
    setback: str
    is_advice: bool
    """Whether a Judge's words came of it."""
    candidate: str | None
    """The one that came of it."""
    missing: str | None
    """Why none did, in a word."""


@dataclass
class Call:
    """One question to a model with all of its attempts."""

    number: int
    """1, 2, 3 … in the order of the first requests."""
    attempts: list[Attempt] = field(default_factory=list)
    result: CandidateProposed | CandidateMissing | AdviceGiven | None = None
    """What was made of the answer, where the record tells."""
    setback: str = ""
    """That the answer could not be used, and what was done about it; empty where it could."""

    @property
    def requested(self) -> ModelRequested:
        """The last request."""
        return self.attempts[-1].requested

    @property
    def replied(self) -> ModelReplied | None:
        """The answer, if there was one."""
        last = self.attempts[-1].outcome
        return last if isinstance(last, ModelReplied) else None

    @property
    def failures(self) -> int:
        """Attempts that gave no answer."""
        return sum(isinstance(attempt.outcome, ModelFailed) for attempt in self.attempts)

    @property
    def outcome(self) -> str:
        """How it ended: a finish, a fault, or that it has no answer."""
        last = self.attempts[-1].outcome
        if last is None:
            return "no answer yet"
        return last.finish if isinstance(last, ModelReplied) else last.fault

    @property
    def tokens(self) -> int:
        """What was booked, over all attempts."""
        return sum(a.outcome.tokens for a in self.attempts if a.outcome)

    @property
    def usd(self) -> float | None:
        """US dollars over all attempts; None where a price is unknown."""
        booked = [a.outcome.usd for a in self.attempts if a.outcome]
        known = [usd for usd in booked if usd is not None]
        return sum(known) if len(known) == len(booked) else None

    @property
    def is_estimated(self) -> bool:
        """Whether any of the figures was not told by the server."""
        return any(
            a.outcome.is_estimated if isinstance(a.outcome, ModelReplied) else a.outcome.tokens > 0
            for a in self.attempts
            if a.outcome
        )

    @property
    def seconds(self) -> float:
        """From the first request to the last answer, pauses included."""
        return max(0.0, (self.attempts[-1].until or self.attempts[-1].at) - self.attempts[0].at)

    @property
    def row(self) -> CallRow:
        """The call in a line."""
        made = self.result
        return CallRow(
            number=self.number,
            call=self.requested.call,
            place=self.requested.place,
            purpose=self.requested.purpose,
            model=self.requested.model,
            attempts=len(self.attempts),
            failures=self.failures,
            outcome=self.outcome,
            is_answered=self.replied is not None,
            overran=bool(self.replied and self.replied.overran),
            tokens=self.tokens,
            usd=self.usd,
            is_estimated=self.is_estimated,
            seconds=self.seconds,
            setback=self.setback,
            is_advice=isinstance(made, AdviceGiven),
            candidate=made.candidate if isinstance(made, CandidateProposed) else None,
            missing=made.outcome if isinstance(made, CandidateMissing) else None,
        )


Moment = Call | AdviceGiven | CandidateProposed | CandidateMissing | Decided


@dataclass
class Step:
    """What happened at one place of the workflow, in order."""

    place: Place
    number: int = 1
    """1, 2, 3 … in the order they began."""
    moments: list[Moment] = field(default_factory=list)
    seqs: list[int] = field(default_factory=list)
    """The events that tell of it, in order."""

    @property
    def calls(self) -> list[Call]:
        """The questions of this place."""
        return [moment for moment in self.moments if isinstance(moment, Call)]


@dataclass
class Transcript:
    """The fold. `apply` every event in order; read the rest."""

    steps: dict[Place, Step] = field(default_factory=dict)
    """By place, in the order they began."""
    calls: dict[str, Call] = field(default_factory=dict)
    """By key, in the order they were first asked."""
    touched: set[Place] = field(default_factory=set)
    """Steps that changed since somebody emptied this: whoever keeps something of each."""

    def apply(self, event: Event) -> None:
        """Takes in one event."""
        payload = event.payload
        match payload:
            case ModelRequested(place=place):
                self._request(payload, event.at)
                self._touch(place.step, event)
            case ModelReplied() | ModelFailed():
                self._answer(payload, event)
            case AdviceGiven(place=place) if place:
                self._add(place, payload)
                self._explain(place, "judge", payload)
                self._touch(place, event)
            case CandidateProposed(place=place, operator=operator) if place:
                self._add(place, payload)
                self._explain(place, operator, payload)
                self._touch(place, event)
            case CandidateMissing(place=place, call=key):
                self._add(place, payload)
                self._touch(place, event)
                if key in self.calls:
                    self.calls[key].result = payload
                    self._touch(self.calls[key].requested.place.step, event)
            case Decided(place=place):
                self._add(place, payload)
                self._touch(place, event)

    def _touch(self, place: Place, event: Event) -> None:
        seqs = self.steps[place].seqs
        if event.seq not in seqs[-1:]:
            seqs.append(event.seq)
        self.touched.add(place)

    def _request(self, requested: ModelRequested, at: float) -> None:
        call = self.calls.get(requested.call)
        if call is None:
            call = self.calls[requested.call] = Call(len(self.calls) + 1)
            self._add(requested.place.step, call)
            self._mark_repeated(requested)
        call.attempts.append(Attempt(requested, at))

    def _mark_repeated(self, requested: ModelRequested) -> None:
        """The turn before this one led to nothing."""
        for call in self.steps[requested.place.step].calls[:-1]:
            if call.requested.place.is_same_question(requested.place) and call.replied:
                call.setback = ASKED_AGAIN

    def _answer(self, outcome: ModelReplied | ModelFailed, event: Event) -> None:
        if outcome.call not in self.calls:
            raise never_asked(event, outcome.call)
        call = self.calls[outcome.call]
        attempt = call.attempts[-1]
        attempt.outcome, attempt.until = outcome, event.at
        self._touch(call.requested.place.step, event)

    def _add(self, place: Place, moment: Moment) -> None:
        step = self.steps.setdefault(place, Step(place, len(self.steps) + 1))
        step.moments.append(moment)

    def _explain(self, place: Place, purpose: str, result: CandidateProposed | AdviceGiven) -> None:
        """Says of the last answer for this purpose what became of it."""
        for call in reversed(self.steps[place].calls):
            if call.requested.purpose.startswith(purpose):
                # A place has one result; a second one is not of this call.
                if call.result is None and call.replied:
                    if isinstance(result, AdviceGiven) and result.advice.by.startswith(_RULES):
                        call.setback = RULES_SPOKE
                    else:
                        call.result = result
                return


def transcribe(events: Iterable[Event]) -> Transcript:
    """The transcript that the events of one campaign tell."""
    transcript = Transcript()
    for event in events:
        transcript.apply(event)
    return transcript


def name_call(rows: Iterable[tuple[str, str, str]], text: str) -> str:
    """The key of the call that `text` names: by its number, its place, or its key's unique
    beginning. Digits alone are a number: a key that begins with them by chance is not meant.

    Args:
        rows: number, place and key of each call.

    Raises:
        UnknownNameError: no call matches.
        UsageError: several match.
    """
    rows = list(rows)
    by_name = {number: key for number, _, key in rows} | {place: key for _, place, key in rows}
    if text in by_name:
        return by_name[text]
    is_beginning = bool(text) and not text.isdecimal()
    found = [key for _, _, key in rows if is_beginning and key.startswith(text)]
    return the_only("call", text, found, [number for number, _, _ in rows])


@dataclass(frozen=True)
class Share:
    """What one model took for one purpose."""

    model: str
    purpose: str
    calls: int
    failures: int
    tokens: int
    usd: float | None
    """None where a price is unknown."""
    is_estimated: bool
    seconds: float
