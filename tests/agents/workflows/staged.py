"""A model that answers anywhere, a played referee, and deaths: what tests of workflows share."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from kernelwright.agents.aids import Aids
from kernelwright.agents.books.asking import Asker, Asking
from kernelwright.agents.casting.cast import Players
from kernelwright.agents.model import Ask, Message
from kernelwright.agents.roles import Member, NoProposal, Proposal, Situation
from kernelwright.running import CampaignRequest, CampaignResult, resume_campaign, run_campaign
from kernelwright.tests.agents.asked import (
    PlainCoder,
    PlainJudge,
    PlayedModel,
    as_it_says,
    generated,
)
from kernelwright.tests.agents.played import PlayedReferee, problem
from kernelwright.tests.agents.test_forge_resume import Died, MortalStore, damage, story
from kernelwright.traces.decisions import AnyDecision, Opinion, SecondOpinion, SoftKind
from kernelwright.traces.events import Decided, Event, ModelFailed
from kernelwright.traces.store import Store

SHAPES = ("omp parallel", "schedule(", "prefetch", "block", "accumulate", "tile simd omp for")
"""Words in a source that put it into one niche or another."""


@dataclass
class Improviser(PlayedModel):
    """Answers every place it has no script for by another kernel, in one of several niches."""

    answer: Callable[[str], str] = generated

    def complete(self, ask: Ask) -> Any:
        place = ask.messages[0].content.splitlines()[0]
        if place not in self.script:
            self.script = {**self.script, place: self.answer(place)}
        return super().complete(ask)


class Teller(PlainCoder):
    """Writes down more of what it was assigned, and gives its candidates a strategy."""

    def propose(self, situation: Situation) -> Proposal | NoProposal | None:
        given = situation.assignment
        place = given.place.for_purpose(given.mode).at_turn(1)
        words = [str(place), *(f"told {text}" for text in given.told)]
        words += [f"technique {name}" for name in given.features]
        words += [f"exemplar {m.candidate}" for m in given.exemplars]
        words += [f"base {given.base.candidate}"] if given.base else []
        words += [f"advice {given.advice.change}"] if given.advice else []
        words += [f"source {given.source}"] if given.source else []
        ask = Ask(purpose=given.mode, messages=(Message(role="user", content="\n".join(words)),))
        reply = self._asker.ask(ask, place)
        blocks = re.findall(r"```\n(.*?)```", reply.text, re.S)
        if not blocks:
            return NoProposal("no_candidate", "no fenced block", self._asker.key(ask, place))
        said = re.search(r"Techniques: (.*)", reply.text)
        shown = ((given.base,) if given.base else ()) + given.exemplars
        return Proposal(
            source=blocks[-1],
            language="cpp",
            family="model",
            knobs={},
            operator=given.mode,
            parents=tuple(member.candidate for member in shown),
            strategy=f"strategy of {given.place}",
            techniques=tuple(said[1].split(", ")) if said else (),
        )


@dataclass
class PlayedSoftVerifier:
    """A soft verifier that says what it is told to, on the model's account."""

    asker: Asker
    says: Callable[[str], str] = lambda _source: "broken"
    name: str = "played/doubter"

    def opinion(self, kind: SoftKind, source: str, situation: Situation) -> Opinion:
        place = situation.assignment.place.for_purpose(f"soft {kind}").at_turn(0)
        self.asker.ask(
            Ask(purpose="soft", messages=(Message(role="user", content=str(place)),)), place
        )
        verdict: Any = self.says(source)
        broken = 3 if verdict == "broken" else 0
        return Opinion(kind=kind, model=self.name, verdict=verdict, broken=broken, votes=3)


@dataclass
class PlayedSecond:
    """A second opinion that is what it is told to be, on the model's account."""

    asker: Asker
    says: Callable[[str], str]

    def __call__(self, member: Member, why: str, situation: Situation) -> SecondOpinion:
        place = situation.assignment.place.for_purpose("second opinion").at_turn(0)
        words = f"{place}\nabout {member.candidate}\n{why}"
        ask = Ask(purpose="second opinion", messages=(Message(role="user", content=words),))
        self.asker.ask(ask, place)
        label: Any = self.says(member.source)
        return SecondOpinion(candidate=member.candidate, label=label, by=self.asker.model_name)


def seats(
    model: PlayedModel,
    says: Callable[[str], str] | None = None,
    lessons: Sequence[str] = (),
    second: Callable[[str], str] | None = None,
) -> Players:
    """The toy problem with a Coder, a Judge and their helpers on one model."""

    def aids(asker: Asker) -> Aids:
        def reflect(situation: Situation, _attempts: Sequence[tuple[Member, str]]) -> Any:
            place = situation.assignment.place.for_purpose("reflect").at_turn(0)
            message = Message(role="user", content=str(place))
            asker.ask(Ask(purpose="reflect", messages=(message,)), place)
            return tuple(lessons)

        doubter = PlayedSoftVerifier(asker, says) if says else None
        looks_again = PlayedSecond(asker, second) if second else None
        return Aids(doubter, reflect if lessons else None, looks_again)

    return Players(
        problem(), Asking(model, Teller), Asking(model, PlainJudge), aids=Asking(model, aids)
    )


def request(workflow: str, rounds: int | None = None, **more: Any) -> CampaignRequest:
    return CampaignRequest.model_validate(
        {"problem": "doubling", "workflow": workflow, "rounds": rounds, "model": "played", **more}
    )


D = TypeVar("D", bound=AnyDecision)


def referee() -> PlayedReferee:
    return PlayedReferee(fate=as_it_says, noise=0.001)


def decided_at(events: Sequence[Event], kind: type[D]) -> dict[str, D]:
    """The decisions of a kind by their places, in order."""
    found = [p for e in events if isinstance(p := e.payload, Decided)]
    return {str(p.place): p.decision for p in found if isinstance(p.decision, kind)}


def decided(events: Sequence[Event], kind: type[D]) -> list[D]:
    return list(decided_at(events, kind).values())


@dataclass
class Scene:
    """A campaign that can be played whole, or with a death after any of its events."""

    request: CampaignRequest
    model: Callable[[], PlayedModel]
    seats: Callable[[PlayedModel], Players] = seats
    referee: Callable[[], PlayedReferee] = referee
    asked: list[str] = field(default_factory=list)

    def play(self, store: Store) -> CampaignResult:
        """To its end."""
        one = self.model()
        result = run_campaign(self.request, store, self.referee(), players=self.seats(one))
        self.asked = one.asked
        return result

    def survives(
        self, tmp_path: Path, *, every: int, cursors: Sequence[str], in_turn: bool = False
    ) -> int:
        """Dies after every so many events and goes on: the same story, nothing paid twice.

        Args:
            cursors: what has become of the checkpoints meanwhile; each is tried on every death.
            in_turn: only one of them is, the next one on the next death.
        """
        with Store.open(tmp_path / "whole") as store:
            expected = self.play(store)
            events = store.events(expected.campaign)
        told, asked = story(events), self.asked
        deaths = range(0, len(events) - 1, every)
        for number, left in enumerate(deaths):
            one, died = self.model(), tmp_path / str(left)
            with MortalStore.open(died) as mortal:
                mortal.left = left
                with pytest.raises(Died):
                    run_campaign(self.request, mortal, self.referee(), players=self.seats(one))
            for cursor in [cursors[number % len(cursors)]] if in_turn else cursors:
                home = tmp_path / f"{left} {cursor}"
                shutil.copytree(died, home)
                again = self.model()
                again.asked = list(one.asked)
                result, after = self._resumed(home, cursor, again)
                assert story(after)[1:] == told[1:], (left, cursor)
                assert (result.best, result.by_status) == (expected.best, expected.by_status)
                unknown = [e for e in after if isinstance(e.payload, ModelFailed)]
                assert len(unknown) <= 1
                # Only a model that had spoken when the process died is heard twice.
                twice = Counter(again.asked) - Counter(asked)
                assert sum(twice.values()) <= len(unknown), (left, cursor)
                assert set(again.asked) == set(asked)
        return len(deaths)

    def _resumed(
        self, home: Path, cursor: str, model: PlayedModel
    ) -> tuple[CampaignResult, list[Event]]:
        with Store.open(home) as store:
            (campaign,) = store.campaigns()
            damage(store.cursor_path(campaign), cursor)
            seated = self.seats(model)
            result = resume_campaign(campaign, store, self.referee(), players=seated)
            return result, store.events(campaign)
