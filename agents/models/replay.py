# SPDX-License-Identifier: Apache-2.0
"""`replay:CAMPAIGN`: a recorded campaign in the place of its models, without the network.

What is replayed are the models' words: each request is answered by what was recorded for the same
words at the same place of the workflow. Candidates are built, verified and timed anew, and the new
verdicts are what the replay shows. But no two timings are alike, and on them rest the prompts and
every later choice; so where the referee comes to the same status as it did then, the workflow
decides on the recorded verdict of that candidate and protocol (`decided_on` of the event), and the
same candidates, advice and champions follow. Where it comes to another status, that is the truth
from there on: decisions rest on the new verdict, and a request that was never recorded ends the
replay with an error that says so. Nothing is paid: usage and cost of a replay are 0.

A recording outlives the prompts it was made with. Where it was made by another version of them, no
request has its old words, and answers are found by the place alone: it names round, slot, purpose
and turn, so that another course of events asks at another place and ends the replay all the same.

It reads events and blobs; it knows no workflow and no brain.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ...errors import ProviderError, StorageError
from ...traces.decisions import KnobsTuned, Postponed, Recalled
from ...traces.events import (
    CampaignFinished,
    CampaignPrepared,
    CampaignStarted,
    CandidateProposed,
    Decided,
    EvaluationFinished,
    Event,
    ModelFailed,
    ModelReplied,
    ModelRequested,
)
from ...traces.place import Place
from ...traces.records import Depth, Verdict
from ...traces.spending import never_asked
from ..model import Ask, CostBound, FaultKind, Model, ModelFault, Reply, TokenUsage
from ..stop import Halt

PREFIX = "replay:"

_OWN_ENDS = frozenset(
    {
        "rounds",
        "plateau",
        "roofline",
        "nothing left",
        "space exhausted",
        "no gain expected",
        "no candidate",
    }
)
"""A campaign that ended by one of these asks nothing more; any other end came from outside."""

Answer = str | ModelFailed
"""The blob of a reply, or why there was none."""


class RecordedAnswers(Protocol):
    """What is needed of a store."""

    def events(self, campaign: str, after: int = 0) -> list[Event]:
        """The events of a campaign in order."""

    def get_blob(self, sha: str) -> bytes:
        """The bytes of a blob."""


@dataclass(frozen=True)
class Recording:
    """What a campaign left behind for its replay."""

    campaign: str
    started: CampaignStarted
    coder: str
    """The Coder's brain, by the name it had where the words were first recorded."""
    stopped_by: str
    answers: Mapping[tuple[Place, str], Answer]
    """By place and the SHA-256 of the canonical Ask."""
    verdicts: Mapping[tuple[str, Depth], Verdict]
    candidates: int
    records: RecordedAnswers
    recalled: Recalled = field(default_factory=Recalled)
    """What clocks decided."""
    same_words: bool = True
    """Whether it was made with the prompts of today; if not, the place alone tells the answer."""

    @functools.cached_property
    def _by_place(self) -> Mapping[Place, Answer]:
        return {place: answer for (place, _), answer in self.answers.items()}

    @property
    def places(self) -> Collection[Place]:
        """Where something was answered."""
        return self._by_place.keys()

    def answer(self, place: Place, ask: Ask) -> Answer | None:
        """What was answered then; None where it was not asked."""
        if not self.same_words:
            return self._by_place.get(place)
        return self.answers.get((place, hashlib.sha256(ask.canonical.encode()).hexdigest()))

    def ends_before(self, place: Place) -> bool:
        """Whether nothing was answered at this place or in a later round."""
        return place not in self.places and not any(
            known.round is not None and place.is_before(known.round) for known in self.places
        )


def load(records: RecordedAnswers, campaign: str) -> Recording:
    """Reads a campaign. StorageError where its events do not begin with its start."""
    events = records.events(campaign)
    if not events or not isinstance(events[0].payload, CampaignStarted):
        raise StorageError(
            f"the events of campaign {campaign} do not begin with its start",
            hint="the store was changed by something else; replay another campaign",
        )
    stopped_by, candidates = "the record ends", 0
    asked: dict[str, tuple[Place, str]] = {}
    answers: dict[tuple[Place, str], Answer] = {}
    verdicts: dict[tuple[str, Depth], Verdict] = {}
    tuned: dict[str, KnobsTuned] = {}
    postponed: set[str] = set()
    prepared: CampaignPrepared | None = None
    for event in events:
        payload = event.payload
        if isinstance(payload, ModelReplied | ModelFailed) and payload.call not in asked:
            raise never_asked(event, payload.call)
        match payload:
            case ModelRequested(call=call):
                asked[call] = (payload.place, payload.ask)
            case ModelReplied(call=call):
                answers[asked[call]] = payload.reply
            case ModelFailed(call=call, fault=FaultKind.CONTEXT):
                answers[asked[call]] = payload
            case CandidateProposed():
                candidates += 1
            case EvaluationFinished():
                # Of a campaign that was itself a replay, what its decisions rested on.
                verdict = payload.decided_on or payload.verdict
                verdicts[verdict.candidate, verdict.protocol] = verdict
            case CampaignPrepared() if prepared is None:
                prepared = payload
            case Decided(decision=KnobsTuned() as ended):
                tuned[ended.leader] = ended
            case Decided(decision=Postponed() as left):
                postponed.add(left.candidate)
            case CampaignFinished():
                stopped_by = payload.stopped_by
    started = events[0].payload
    coder = started.model
    if coder.startswith(PREFIX):
        coder = load(records, coder.removeprefix(PREFIX)).coder
    recalled = Recalled(tuned, frozenset(postponed), prepared)
    return Recording(
        campaign, started, coder, stopped_by, answers, verdicts, candidates, records, recalled
    )


class ReplayModel:
    """A Model that answers from a recording, under the name of the model that spoke then.

    The name stands in prompts and advice; so they come out as they were.
    """

    slots = 4

    def __init__(self, recording: Recording, name: str) -> None:
        self.name = name
        self._recording = recording

    def at(self, place: Place) -> Model:
        """The model at this place; ends the replay in order where the record ends."""
        recording = self._recording
        if recording.ends_before(place) and recording.stopped_by not in _OWN_ENDS:
            raise Halt(recording.stopped_by)
        return _AtPlace(recording, self.name, place)

    def bound(self, ask: Ask) -> CostBound:
        """Nothing is paid."""
        del ask
        return CostBound(0, 0.0)

    def cost(self, usage: TokenUsage) -> float | None:
        """Nothing is paid."""
        del usage
        return 0.0

    def complete(self, ask: Ask) -> Reply:
        """Answers depend on the place: use `at`."""
        raise ModelFault(FaultKind.REFUSED, f"a recording has no answer without a place: {ask}")

    def close(self) -> None:
        """Nothing is open."""


class _AtPlace(ReplayModel):
    def __init__(self, recording: Recording, name: str, place: Place) -> None:
        super().__init__(recording, name)
        self._place = place

    def complete(self, ask: Ask) -> Reply:
        """The recorded answer. ProviderError where there is none."""
        recording = self._recording
        answer = recording.answer(self._place, ask)
        if isinstance(answer, ModelFailed):
            raise ModelFault(FaultKind(answer.fault), answer.reason)
        if answer is None:
            known = "other words" if self._place in recording.places else "nothing"
            raise ProviderError(
                f"campaign {recording.campaign} recorded {known} at {self._place}, and the replay "
                f"asks for {ask.purpose}",
                hint="a verdict came out otherwise than then, or the prompts, the problem or "
                "kernelwright changed; compare both with `kernelwright show`",
            )
        reply = Reply.model_validate_json(recording.records.get_blob(answer))
        return reply.model_copy(update={"usage": TokenUsage()})
