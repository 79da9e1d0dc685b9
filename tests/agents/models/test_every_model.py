"""What holds of every Model, whoever answers: its contract stands at the interface."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kernelwright.agents.books.asking import PromptTooLong
from kernelwright.agents.model import (
    RETRYABLE,
    Ask,
    FaultKind,
    Finish,
    Message,
    Model,
    ModelFault,
    Paced,
    PlacedModel,
    Reply,
    TokenUsage,
)
from kernelwright.agents.models import replay
from kernelwright.agents.models.arms import MannerModel
from kernelwright.agents.models.capabilities import Capabilities
from kernelwright.agents.models.ensemble import Ensemble
from kernelwright.agents.models.openai_client import Connection, OpenAIModel
from kernelwright.agents.models.pricing import Price
from kernelwright.agents.models.replay import ReplayModel
from kernelwright.agents.models.scripted import Script, ScriptedModel, Turn
from kernelwright.tests.agents import endpoint, spoken
from kernelwright.tests.agents.asked import Desk, PlayedModel, place_of
from kernelwright.tests.agents.models.conftest import SCHEMA
from kernelwright.tests.agents.workflows.staged import Improviser
from kernelwright.tests.implementers import unheld
from kernelwright.traces.place import Place
from kernelwright.traces.store import Store

USAGE = TokenUsage(prompt_tokens=40, completion_tokens=20)
PRICE = Price(model="*", input=1.0, output=2.0)
FAULTS = (FaultKind.CONTEXT, FaultKind.RATE_LIMITED, FaultKind.SERVER, FaultKind.KEY)
ENDS = (Finish.LENGTH, Finish.REFUSED, Finish.EMPTY)
TEXTS = (
    "```cpp\nint x;\n```\n",
    "λ → 𝛌\r\n\t\u2028\x7f",
    '{"issue": "a race"}',
    "data: [DONE]\n\n",
)


@dataclass(frozen=True)
class Line:
    """What is to be answered once."""

    text: str = ""
    finish: Finish = Finish.STOP
    fault: FaultKind | None = None


Lines = dict[str, list[Line]]
"""By the place that a question names; the last one is said again."""


@dataclass
class Teller:
    """Gives each question its line."""

    lines: Lines
    heard: Counter[str] = field(default_factory=Counter)

    def line(self, place: str) -> Line:
        said = self.lines[place]
        self.heard[place] += 1
        return said[min(self.heard[place], len(said)) - 1]

    def turn(self, _number: int, ask: Ask) -> str:
        line = self.line(place_of(ask))
        if line.fault:
            raise ModelFault(line.fault, "played")
        return line.text

    def post(self, request: endpoint.Request) -> endpoint.Turn:
        """What an endpoint answers that has to say this."""
        line = self.line(str(request.messages[0]["content"]).splitlines()[0])
        match line.fault:
            case FaultKind.CONTEXT:
                return endpoint.refused("too long", code="context_length_exceeded")
            case FaultKind.RATE_LIMITED:
                return endpoint.Turn(status=429)
            case FaultKind.SERVER:
                return endpoint.Turn(status=500)
            case FaultKind.KEY:
                return endpoint.Turn(status=401)
        if line.finish is Finish.REFUSED:
            return endpoint.Turn(refusal=line.text)
        reason = "length" if line.finish is Finish.LENGTH else "stop"
        return endpoint.Turn(line.text, finish_reason=reason)


def scripted(lines: Lines, name: str = "scripted:x", price: Price | None = None) -> ScriptedModel:
    turns = [
        Turn(purpose=place, fault=line.fault)
        if line.fault
        else Turn(purpose=place, text=line.text, finish=line.finish, usage=USAGE)
        for place, said in lines.items()
        for line in said
    ]
    return ScriptedModel(name, Script(price=price, turn=tuple(turns)))


def scripts(lines: Lines) -> list[Model]:
    """Two who would say the same, one of whom costs something."""
    return [scripted(lines, "scripted:a", PRICE), scripted(lines, "scripted:b")]


def answers(lines: Lines) -> dict[str, list[str | ModelFault]]:
    return {
        place: [ModelFault(line.fault, "played") if line.fault else line.text for line in said]
        for place, said in lines.items()
    }


def recorded(lines: Lines, folder: Path) -> Model:
    """What a campaign left of these questions."""
    with Store.open(folder) as store:
        desk = Desk(store, scripted(lines))
        for place in lines:
            with suppress(PromptTooLong):
                desk.asker.ask(asked(place), Place.parse(place))
        return ReplayModel(replay.load(store, desk.campaign), "openai/then")


@contextmanager
def served(lines: Lines, *, stream: bool, price: Price | None) -> Iterator[Model]:
    with endpoint.Endpoint(Teller(lines).post) as server:
        model = OpenAIModel(
            "m",
            Connection(server.url, slots=4),
            capabilities=Capabilities(stream=stream),
            price=price,
        )
        yield model
        model.close()


@contextmanager
def local(model: Model) -> Iterator[Model]:
    yield model
    model.close()


@dataclass(frozen=True)
class Kind:
    """One implementation: how one is had that says these lines, and what it can meet."""

    opened: Callable[[Lines, Path], Any]
    faults: tuple[FaultKind, ...] = FAULTS
    ends: tuple[Finish, ...] = ENDS
    is_asked_anew: bool = True
    """The same question may be answered otherwise a second time."""


KINDS = {
    "openai, streaming": Kind(lambda lines, _: served(lines, stream=True, price=PRICE)),
    "openai, whole": Kind(lambda lines, _: served(lines, stream=False, price=None)),
    "scripted": Kind(lambda lines, _: local(scripted(lines, price=PRICE))),
    "manner": Kind(
        lambda lines, _: local(
            MannerModel(scripted(lines), "scripted:x@temperature=1", {"temperature": 1.0})
        )
    ),
    "ensemble": Kind(lambda lines, _: local(Ensemble(scripts(lines)))),
    "replay": Kind(
        lambda lines, folder: local(recorded(lines, folder)),
        faults=(FaultKind.CONTEXT,),
        is_asked_anew=False,
    ),
    "played": Kind(lambda lines, _: local(PlayedModel(answers(lines), slots=4)), ends=()),
    "improvised": Kind(lambda lines, _: local(Improviser(answers(lines))), ends=()),
    "spoken": Kind(
        lambda lines, _: local(spoken.Speaker(Teller(lines).turn)), ends=(Finish.EMPTY,)
    ),
}


def places(count: int) -> list[str]:
    return [f"{number}/0/write/1" for number in range(count)]


def asked(place: str, most: int = 100) -> Ask:
    """A question that names its place; a Judge is asked for JSON."""
    message = Message(role="user", content=f"{place}\nWrite a kernel that adds two matrices.")
    schema = SCHEMA if "judge" in place else {}
    return Ask(purpose=place, messages=(message,), json_schema=schema, max_output_tokens=most)


def answerer(model: Model, place: str) -> Model:
    """The model that answers there."""
    return model.at(Place.parse(place)) if isinstance(model, PlacedModel) else model


def answer(model: Model, place: str) -> Reply:
    """An answer, of which all holds that holds of any."""
    question = asked(place)
    there = answerer(model, place)
    bound = there.bound(question)
    reply = there.complete(question)
    assert there.bound(question) == bound
    assert_holds(there, question, reply)
    return reply


def assert_holds(model: Model, question: Ask, reply: Reply) -> None:
    """What is true of every reply of every model."""
    assert Reply.model_validate_json(reply.model_dump_json()) == reply
    assert reply.text.strip() or reply.finish is not Finish.STOP
    assert reply.seconds >= 0
    assert not reply.rung or question.json_schema
    usage, bound = reply.usage, model.bound(question)
    assert 0 <= usage.tokens <= bound.tokens
    assert 0 <= usage.cached_tokens + usage.written_tokens <= usage.prompt_tokens
    assert 0 <= usage.reasoning_tokens <= usage.completion_tokens
    cost = model.cost(usage)
    assert (cost is None) is (bound.usd is None)
    if cost is not None and bound.usd is not None:
        assert 0 <= cost <= bound.usd


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def test_every_model_there_is_is_held_to_its_contract(tmp_path: Path) -> None:
    lines = {place: [Line("yes")] for place in places(2)}
    held: set[str] = set()
    for each in KINDS.values():
        with each.opened(lines, tmp_path) as model:
            held.add(type(model).__name__)
    methods = {"complete", "bound", "cost", "close"}
    assert unheld(methods, held) == []
    assert unheld(methods, held - {"Ensemble"}) == ["agents/models/ensemble.py: Ensemble"]


def test_every_question_gets_its_own_words(kind: Kind, tmp_path: Path) -> None:
    asked_at = places(len(TEXTS))
    lines = {place: [Line(text)] for place, text in zip(asked_at, TEXTS, strict=True)}
    with kind.opened(lines, tmp_path) as model:
        for place in reversed(asked_at):
            reply = answer(model, place)
            assert (reply.text, reply.finish) == (lines[place][0].text, Finish.STOP)


def test_what_is_asked_for_as_json_is_answered_as_it_came(kind: Kind, tmp_path: Path) -> None:
    place, said = "0/0/judge/1", '{"issue": "a race"}'
    with kind.opened({place: [Line(said)]}, tmp_path) as model:
        assert answer(model, place).text == said


def test_a_reply_that_ended_otherwise_is_a_reply(kind: Kind, tmp_path: Path) -> None:
    asked_at = places(len(kind.ends))
    said = {Finish.LENGTH: "half a ker", Finish.REFUSED: "I will not.", Finish.EMPTY: ""}
    ends = zip(asked_at, kind.ends, strict=True)
    lines = {place: [Line(said[finish], finish)] for place, finish in ends}
    with kind.opened(lines, tmp_path) as model:
        for place, finish in zip(asked_at, kind.ends, strict=True):
            reply = answer(model, place)
            assert (reply.text, reply.finish) == (said[finish], finish)


def test_a_failed_attempt_is_one_fault_and_the_next_one_begins_anew(
    kind: Kind, tmp_path: Path
) -> None:
    asked_at = places(len(kind.faults))
    faults = zip(asked_at, kind.faults, strict=True)
    lines = {place: [Line(fault=fault), Line("at last")] for place, fault in faults}
    with kind.opened(lines, tmp_path) as model:
        for place, fault in zip(asked_at, kind.faults, strict=True):
            with pytest.raises(ModelFault) as caught:
                answer(model, place)
            assert caught.value.kind is fault
            assert str(caught.value)
            assert (caught.value.retry_after_s or 0.0) >= 0
            if kind.is_asked_anew:
                assert answer(model, place).text == "at last"
    assert set(FAULTS) & RETRYABLE
    assert set(FAULTS) - RETRYABLE


def test_threads_each_get_their_own_answer(kind: Kind, tmp_path: Path) -> None:
    asked_at = places(12)
    lines = {place: [Line(f"of {place}")] for place in asked_at}
    with kind.opened(lines, tmp_path) as model:
        assert model.slots >= 1
        with ThreadPoolExecutor(model.slots) as pool:
            told = list(pool.map(lambda place: answer(model, place).text, asked_at))
    assert told == [f"of {place}" for place in asked_at]


def test_a_bound_asks_nobody_and_leaves_room_for_the_answer(kind: Kind, tmp_path: Path) -> None:
    (place,) = places(1)
    with kind.opened({place: [Line("yes")]}, tmp_path) as model:
        there = answerer(model, place)
        small, large = (there.bound(asked(place, most)) for most in (10, 100_000))
        assert there.bound(asked(place, 10)) == small
        assert large.tokens >= small.tokens
        assert (small.usd is None) is (large.usd is None) is (there.cost(TokenUsage()) is None)
        assert (large.usd or 0.0) >= (small.usd or 0.0)
        assert answer(model, place).text == "yes"


def test_it_may_be_closed_at_any_time_and_stays_who_it_is(kind: Kind, tmp_path: Path) -> None:
    first, second = places(2)
    with kind.opened({first: [Line("one")], second: [Line("two")]}, tmp_path) as model:
        name, slots = model.name, model.slots
        model.close()
        assert answer(model, first).text == "one"
        model.close()
        model.close()
        assert answer(model, second).text == "two"
        assert name
        assert (model.name, model.slots) == (name, slots)
        assert not isinstance(model, Paced) or model.pause_s >= 0


def test_at_one_place_the_same_one_answers(kind: Kind, tmp_path: Path) -> None:
    (place,) = places(1)
    with kind.opened({place: [Line("yes")]}, tmp_path) as model:
        names = {answerer(model, place).name for _ in range(5)}
        assert len(names) == 1
        assert names <= set(model.name.split("+"))
