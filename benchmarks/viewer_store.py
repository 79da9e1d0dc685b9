# SPDX-License-Identifier: Apache-2.0
"""A large store for `viewer.py`: campaigns made of the events of the recorded one that comes with
the package, whose verdicts, prompts and replies are real; only ids, numbers, moments and figures
are drawn anew.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from kernelwright.traces.bundling import unpack
from kernelwright.traces.events import (
    AdviceGiven,
    CampaignFinished,
    CampaignPrepared,
    CampaignStarted,
    CandidateProposed,
    ChampionChanged,
    Decided,
    EvaluationFinished,
    EvaluationStarted,
    Event,
    ModelReplied,
    ModelRequested,
    Payload,
)
from kernelwright.traces.names import new_id
from kernelwright.traces.place import Place
from kernelwright.traces.records import Depth, Measurement, Record, Status, Verdict
from kernelwright.traces.store import Store

RECORDED = Path(__file__).parents[1] / "traces" / "recorded" / "models.zip"
CALLS = 7
"""Questions that lead to one candidate: with what else is recorded, some twenty events."""
PROBLEMS = ("layernorm", "softmax", "spmm_csr", "gemm", "rmsnorm")

P = TypeVar("P")
R = TypeVar("R", bound=Record)


@dataclass
class Recorded:
    """What the events of the real campaign are."""

    payloads: list[Payload]
    source: str

    def __post_init__(self) -> None:
        self._by_kind: dict[type[Any], list[Any]] = {}

    def all_of(self, kind: type[P]) -> list[P]:
        """Those of one kind."""
        if kind not in self._by_kind:
            self._by_kind[kind] = [each for each in self.payloads if isinstance(each, kind)]
        return self._by_kind[kind]


def read_recorded(home: Path) -> Recorded:
    """Unpacks the recorded campaign, and with it the blobs that all others name too."""
    unpack(RECORDED, home)
    return read_recorded_again(home)


def read_recorded_again(home: Path) -> Recorded:
    """What was unpacked before: the campaign that was recorded first."""
    with Store.open(home, read_only=True) as store:
        payloads = [event.payload for event in store.events(store.campaigns()[-1])]
        proposed = next(each for each in payloads if isinstance(each, CandidateProposed))
        return Recorded(payloads, store.get_blob(proposed.candidate).decode())


@dataclass
class Maker:
    """Makes the events of one campaign."""

    recorded: Recorded
    rng: random.Random
    campaign: str
    at: float
    problem: str
    seq: int = 0
    names: list[str] = field(default_factory=list)
    champion: str | None = None
    best: float = 0.0
    number_of_call: int = 0

    def __post_init__(self) -> None:
        verdicts = [each.verdict for each in self.recorded.all_of(EvaluationFinished)]
        self.screened = [v for v in verdicts if v.protocol.is_quick]
        self.verified = [v for v in verdicts if v.status is Status.VERIFIED]
        self.failed = [v for v in verdicts if not v.status.is_pass] or [
            self.screened[0].model_copy(
                update={
                    "status": Status.INCORRECT,
                    "measurements": (),
                    "reasons": ("G1: the error at (3, 7) is 41 times what is allowed",),
                }
            )
        ]

    def begin(self) -> Iterator[Event]:
        """Start and preparation."""
        (started,) = self.recorded.all_of(CampaignStarted)
        yield self._event(started.model_copy(update={"problem": self.problem}))
        yield self._event(self.recorded.all_of(CampaignPrepared)[0])

    def end(self) -> Event:
        """The last event."""
        (finished,) = self.recorded.all_of(CampaignFinished)
        return self._event(finished.model_copy(update={"best": self.champion, "knobs": ()}))

    def candidate(self) -> Iterator[Event]:
        """All that is recorded of one candidate: some twenty events."""
        number = len(self.names) + 1
        name = hashlib.sha256(self.source_of(number).encode()).hexdigest()
        place = Place(number, 0)
        yield from self._calls(place)
        proposed = self.rng.choice(self.recorded.all_of(CandidateProposed))
        parents = (self._choose_parent(),) if self.names else ()
        facts = {"candidate": name, "number": number, "parents": parents, "place": place}
        yield self._event(proposed.model_copy(update=facts))
        self.names.append(name)
        draw = self.rng.random()
        if draw < 0.3:
            yield from self._judge(name, self.rng.choice(self.failed))
        else:
            speed = self.rng.lognormvariate(0.0, 0.3)
            yield from self._judge(name, self._faster(self.rng.choice(self.screened), speed))
            if speed > self.best or draw > 0.95:
                yield from self._confirm(name, speed)
        advice = self.rng.choice(self.recorded.all_of(AdviceGiven))
        about = advice.advice.model_copy(update={"candidate": name})
        yield self._event(advice.model_copy(update={"advice": about, "place": place}))
        for decided in self.recorded.all_of(Decided)[:1]:
            yield self._event(decided.model_copy(update={"place": place}))

    def source_of(self, number: int) -> str:
        """The source of a candidate, from 1 on."""
        return f"{self.recorded.source}\n// {self.campaign} {number}\n"

    def _choose_parent(self) -> str:
        # Beside the champion one of the last, so that lines grow long.
        return self.rng.choice([self.champion or self.names[-1], *self.names[-8:]])

    def _calls(self, place: Place) -> Iterator[Event]:
        asked, replied = self.recorded.all_of(ModelRequested), self.recorded.all_of(ModelReplied)
        for turn in range(CALLS):
            self.number_of_call += 1
            key = hashlib.sha256(f"{self.campaign} {self.number_of_call}".encode()).hexdigest()
            pick = self.rng.randrange(len(replied))
            purpose = asked[pick].purpose
            at = Place(place.round, place.slot, purpose, turn)
            facts = {"call": key, "place": at, "attempt": 1, "purpose": purpose}
            yield self._event(asked[pick].model_copy(update=facts))
            yield self._event(replied[pick].model_copy(update={"call": key, "attempt": 1}))

    def _judge(self, name: str, verdict: Verdict) -> Iterator[Event]:
        yield self._event(EvaluationStarted(candidate=name, protocol=verdict.protocol))
        about = verdict.model_copy(update={"candidate": name, "champion": None})
        yield self._event(EvaluationFinished(verdict=about))

    def _confirm(self, name: str, speed: float) -> Iterator[Event]:
        verdict = self._faster(self.rng.choice(self.verified), speed)
        confirmed = verdict.model_copy(update={"protocol": Depth.CONFIRM})
        yield from self._judge(name, confirmed)
        if speed > self.best:
            previous, self.best, self.champion = self.champion, speed, name
            changed = ChampionChanged(
                candidate=name, previous=previous, credited=confirmed.credited or 0.0
            )
            yield self._event(changed)

    def _faster(self, verdict: Verdict, speed: float) -> Verdict:
        return verdict.model_copy(
            update={"measurements": tuple(_scale(m, speed) for m in verdict.measurements)}
        )

    def _event(self, payload: Payload) -> Event:
        self.seq += 1
        self.at += self.rng.uniform(0.05, 0.5)
        return Event(seq=self.seq, campaign=self.campaign, at=self.at, payload=payload)


def _scale(measurement: Measurement, speed: float) -> Measurement:
    """The measurement of a kernel that is so many times as fast."""
    gains = {
        name: gain.model_copy(
            update={f: getattr(gain, f) * speed for f in ("median", "low", "high")}
        )
        for name, gain in measurement.speedup.items()
    }
    times = ("median_us", "low_us", "high_us")
    timing = measurement.candidate
    faster = timing.model_copy(update={name: getattr(timing, name) / speed for name in times})
    return measurement.model_copy(update={"speedup": gains, "candidate": faster})


def write_campaign(store: Store, maker: Maker, candidates: int, *, is_finished: bool) -> int:
    """Puts a campaign into the store, and gives how many events it has."""
    events = list(maker.begin())
    for number in range(1, candidates + 1):
        events += maker.candidate()
        store.put_blob(maker.source_of(number))
    if is_finished:
        events.append(maker.end())
    store.adopt(maker.campaign, events)
    return len(events)


def fill_store(home: Path, campaigns: int, candidates: int, largest: int, seed: int = 0) -> None:
    """A store of so many campaigns and candidates, the newest of which has `largest` and runs."""
    recorded = read_recorded(home)
    rng = random.Random(seed)
    usual = max(1, (candidates - largest) // max(1, campaigns - 1))
    with Store.open(home) as store:
        for number in range(campaigns):
            is_last = number == campaigns - 1
            at = 1_780_000_000.0 + 40_000.0 * number
            problem = PROBLEMS[number % len(PROBLEMS)]
            maker = Maker(recorded, random.Random(rng.random()), new_id(at), at, problem)
            write_campaign(store, maker, largest if is_last else usual, is_finished=not is_last)


def go_on(home: Path, campaign: str) -> Maker:
    """Who makes the next candidates of a campaign of this store."""
    with Store.open(home, read_only=True) as store, store.sheet(campaign) as sheet:
        head = sheet.head
        names, calls = list(sheet.entries), sheet.count_calls()
    return Maker(
        read_recorded_again(home),
        random.Random(0),
        campaign,
        head.last_at,
        head.started.problem,
        names=names,
        champion=head.champion,
        best=1e9,
        number_of_call=calls,
    )
