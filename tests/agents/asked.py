"""Played models and plain brains that ask them, for the tests of asking, recording and resuming.

The model answers by a script of places, which the plain brains write into their prompts, and counts
what it was asked in a file if there is one, so that calls can be counted over processes.
"""

from __future__ import annotations

import hashlib
import re
import threading
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernelwright.agents.books.asking import Asker, Asking
from kernelwright.agents.books.budget import Budget
from kernelwright.agents.books.ledger import Ledger
from kernelwright.agents.books.progress import Progress
from kernelwright.agents.books.request import first_event
from kernelwright.agents.casting.cast import Players
from kernelwright.agents.model import (
    Ask,
    CostBound,
    FaultKind,
    Finish,
    Message,
    ModelFault,
    Reply,
    TokenUsage,
)
from kernelwright.agents.roles import Coder, Judge, Member, NoProposal, Proposal, Situation
from kernelwright.agents.stop import Stop
from kernelwright.running import CampaignRequest
from kernelwright.tests.agents.played import Clock, PlayedReferee, fields_of, problem
from kernelwright.traces.events import ModelFailed, ModelReplied, ModelRequested
from kernelwright.traces.place import Place
from kernelwright.traces.records import Advice, Status
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order

PROMPT_TOKENS, REPLY_TOKENS = 100, 50
BOUND = CostBound(tokens=400, usd=0.04)
USD_PER_TOKEN = 1e-4

LATE = ModelFault(FaultKind.TIMED_OUT, "nothing for 60 s")

CUDA = "__global__ void doubled(const float* x, float* y) { y[threadIdx.x] = 2 * x[threadIdx.x]; }"
"""What `transpile` begins from, where only that matters."""


Script = Mapping[str, str | ModelFault | list[str | ModelFault]]


def needs(workflow: str) -> dict[str, object]:
    """What a request for this workflow cannot do without."""
    return {"source": CUDA, "model": "played"} if workflow == "transpile" else {}


def source(**fields: object) -> str:
    """A candidate of the played problem."""
    lines = [f"{name} = {value!r}".replace("'", '"') for name, value in fields.items()]
    return "\n".join(['family = "row-balanced"', *lines]) + "\n"


def kernel(**fields: object) -> str:
    """A reply that holds a candidate."""
    return f"Here it is:\n```\n{source(**fields)}```\n"


def generated(place: str) -> str:
    """An answer for any place: another kernel each, none of them near the roofline."""
    step = int(hashlib.sha256(place.encode()).hexdigest()[:4], 16) % 50
    return kernel(step=step, tag=place)


@dataclass
class PlayedModel:
    """Implements models.protocol.Model."""

    script: Script = field(default_factory=dict)
    name: str = "played/one"
    slots: int = 1
    is_priced: bool = True
    usage: TokenUsage = field(
        default_factory=lambda: TokenUsage(
            prompt_tokens=PROMPT_TOKENS, completion_tokens=REPLY_TOKENS
        )
    )
    log: Path | None = None
    before: Callable[[str], None] = lambda _place: None
    asked: list[str] = field(default_factory=list)
    """The places, in the order of the requests."""
    asks: list[Ask] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def bound(self, ask: Ask) -> CostBound:
        del ask
        return BOUND if self.is_priced else BOUND._replace(usd=None)

    def cost(self, usage: TokenUsage) -> float | None:
        return usage.tokens * USD_PER_TOKEN if self.is_priced else None

    def complete(self, ask: Ask) -> Reply:
        place = place_of(ask)
        with self._lock:
            earlier = self.asked.count(place)
            self.asked.append(place)
            self.asks.append(ask)
            self.in_flight += 1
            self.most_in_flight = max(self.in_flight, self.most_in_flight)
            if self.log:
                with self.log.open("a") as lines:
                    lines.write(place + "\n")
        try:
            self.before(place)
            answer = self.script.get(place, "")
            if isinstance(answer, list):
                answer = answer[min(earlier, len(answer) - 1)]
            if isinstance(answer, ModelFault):
                raise answer
            return Reply(
                text=answer or generated(place), finish=Finish.STOP, usage=self.usage, model="one"
            )
        finally:
            with self._lock:
                self.in_flight -= 1

    def close(self) -> None:
        """Nothing is open."""


def place_of(ask: Ask) -> str:
    """The place that a plain brain wrote into its prompt."""
    return ask.messages[0].content.splitlines()[0]


class PlainCoder:
    """Takes the last fenced block, whatever stands around it."""

    def __init__(self, asker: Asker) -> None:
        self.name = asker.model_name
        self._asker = asker

    def propose(self, situation: Situation) -> Proposal | NoProposal | None:
        given = situation.assignment
        place = given.place.for_purpose(given.mode).at_turn(1)
        words = [str(place)]
        if given.base:
            words += [
                f"base {given.base.candidate}",
                given.base.source,
                str(given.base.verdict.status),
            ]
            words += [f"{m.candidate.median_us}" for m in given.base.verdict.measurements]
        if given.advice:
            words += [f"advice {given.advice.candidate}", given.advice.change]
        ask = Ask(purpose=given.mode, messages=(Message(role="user", content="\n".join(words)),))
        reply = self._asker.ask(ask, place)
        blocks = re.findall(r"```\n(.*?)```", reply.text, re.S)
        if not blocks:
            return NoProposal("no_candidate", "no fenced block", self._asker.key(ask, place))
        return Proposal(
            source=blocks[-1],
            language="cpp",
            family=str(tomllib.loads(blocks[-1])["family"]),
            knobs={},
            operator=given.mode,
            parents=(given.base.candidate,) if given.base else (),
        )


class PlainJudge:
    """Says what the model says."""

    def __init__(self, asker: Asker) -> None:
        self.name = asker.model_name
        self._asker = asker

    def diagnose(self, member: Member, situation: Situation) -> Advice:
        place = situation.assignment.place.for_purpose("judge").at_turn(1)
        words = f"{place}\nabout {member.candidate}\n{member.source}"
        ask = Ask(purpose="judge", messages=(Message(role="user", content=words),))
        said = self._asker.ask(ask, place).text
        return Advice(candidate=member.candidate, bottleneck="played", change=said, by=self.name)


def asking_players(model: PlayedModel, judge: PlayedModel | Judge | None = None) -> Players:
    """The toy problem with a Coder, and a Judge, that ask models."""
    coder: Asking[Coder] = Asking(model, PlainCoder)
    if judge is None or isinstance(judge, PlayedModel):
        return Players(problem(), coder, Asking(judge or model, PlainJudge))
    return Players(problem(), coder, judge)


def as_it_says(order: Order) -> Status | None:
    """A candidate that says how it fails does."""
    said = fields_of(order.source).get("fails")
    return Status(said) if said else None


class Desk:
    """A campaign that was begun, and an Asker on its account."""

    def __init__(
        self, store: Store, model: Any, patience_s: float = 600.0, **limits: float
    ) -> None:
        request = CampaignRequest(problem="doubling", workflow="forge", limits=limits)
        workload = problem().default_workload
        self.store, self.model, self.stop = store, model, Stop()
        self.campaign = store.create(
            first_event(request, problem(), workload, PlayedReferee(), "forge/1")
        )
        self.clock, self.patience_s = Clock(), patience_s
        self.slept: list[float] = []
        self.open()

    def open(self) -> None:
        """As a new process would."""
        progress = Progress(self.store.events(self.campaign))
        self.ledger = Ledger(self.store, self.campaign, PlayedReferee(), progress)
        budget = Budget(progress.limits, spending=progress.spending, clock=self.clock)
        self.asker = Asker(
            self.ledger,
            budget,
            self.model,
            stop=self.stop,
            patience_s=self.patience_s,
            sleep=self._sleep,
        )

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.now += seconds

    def ask(self, place: str = "0/0/write/1", text: str = "please") -> str:
        message = Message(role="user", content=f"{place}\n{text}")
        return self.asker.ask(Ask(purpose="write", messages=(message,)), Place.parse(place)).text

    @property
    def told(self) -> list[ModelRequested | ModelReplied | ModelFailed]:
        kinds = ModelRequested | ModelReplied | ModelFailed
        payloads = (event.payload for event in self.store.events(self.campaign))
        return [payload for payload in payloads if isinstance(payload, kinds)]


def desk(store: Store, script: Script | None = None, **limits: float) -> Desk:
    return Desk(store, PlayedModel(script or {}), **limits)
