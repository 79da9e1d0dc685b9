"""A campaign that asked models, written through the real store: every way a call can end.

The words are those of real Asks and Replies, so that a change of their shape is felt here.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kernelwright.agents.model import Ask, Finish, Message, Reply, TokenUsage
from kernelwright.agents.text.untrusted import fence_text
from kernelwright.tests.traces.conftest import HOSTILE, source_of, started, verdict_of
from kernelwright.traces.decisions import read_decision
from kernelwright.traces.events import (
    AdviceGiven,
    CampaignStarted,
    CandidateMissing,
    CandidateProposed,
    ChampionChanged,
    Decided,
    EvaluationFinished,
    EvaluationStarted,
    ModelFailed,
    ModelReplied,
    ModelRequested,
)
from kernelwright.traces.place import Place
from kernelwright.traces.records import Advice, Depth, Status
from kernelwright.traces.store import Store

SYSTEM = "You write kernels. Answer with one fenced block.\n" + "A rule of the house.\n" * 40
EVIL = f"{HOSTILE} \x1b[31mred\u202egnitsrever\x07"
"""Markup, a terminal's sequence, a change of direction, a bell."""
CODER, JUDGE = "openai/big-coder", "openai/judge"


@dataclass
class Clock:
    """Ten seconds pass between events."""

    at: float = 1_770_000_000.0

    def __call__(self) -> float:
        self.at += 10
        return self.at


@dataclass
class Writer:
    """Writes a campaign as its asker and its workflow would."""

    store: Store
    campaign: str
    rng: random.Random = field(default_factory=lambda: random.Random(7))
    candidates: list[str] = field(default_factory=list)
    champion: str | None = None

    def request(
        self,
        place: str,
        purpose: str,
        user: str,
        *,
        model: str = CODER,
        price: float | None = 0.2,
        attempt: int = 1,
        key: str = "",
    ) -> str:
        messages = (Message(role="system", content=SYSTEM), Message(role="user", content=user))
        ask = Ask(purpose=purpose, messages=messages, effort="high")
        call = key or hashlib.sha256(f"{self.campaign}:{place}".encode()).hexdigest()
        self.store.append(
            self.campaign,
            ModelRequested(
                call=call,
                attempt=attempt,
                place=place,
                purpose=purpose,
                model=model,
                ask=self.store.put_blob(ask.canonical),
                reserved_tokens=9000,
                reserved_usd=price,
            ),
        )
        return call

    def answer(
        self,
        call: str,
        text: str,
        *,
        usd: float | None = 0.05,
        attempt: int = 1,
        finish: Finish = Finish.STOP,
        is_estimated: bool = False,
        reasoning: str = "",
    ) -> None:
        usage = TokenUsage(prompt_tokens=1500, completion_tokens=500, reasoning_tokens=120)
        reply = Reply(
            text=text,
            finish=finish,
            usage=usage,
            model="big-coder-2026",
            request_id="r",
            reasoning=reasoning,
        )
        self.store.append(
            self.campaign,
            ModelReplied(
                call=call,
                attempt=attempt,
                reply=self.store.put_blob(reply.model_dump_json()),
                finish=finish,
                tokens=usage.tokens,
                usd=usd,
                is_estimated=is_estimated,
                seconds=4.0,
            ),
        )

    def fail(
        self,
        call: str,
        fault: str,
        *,
        tokens: int = 0,
        usd: float | None = 0.0,
        retry_in_s: float | None = 1.5,
    ) -> None:
        self.store.append(
            self.campaign,
            ModelFailed(
                call=call,
                attempt=1,
                fault=fault,
                reason=f"the server said {EVIL}",
                tokens=tokens,
                usd=usd,
                retry_in_s=retry_in_s,
            ),
        )

    def ask(self, place: str, purpose: str, user: str, text: str, **more: object) -> str:
        call = self.request(place, purpose, user)
        self.answer(call, text, **more)  # type: ignore[arg-type]
        return call

    def propose(self, place: str, operator: str, status: Status) -> str:
        number = len(self.candidates) + 1
        candidate = self.store.put_blob(source_of(number, HOSTILE))
        base = self.candidates[-1:]
        self.store.append(
            self.campaign,
            CandidateProposed(
                candidate=candidate,
                number=number,
                language="cpp",
                family="model",
                operator=operator,
                parents=tuple(base),
                strategy=f"wider vectors {HOSTILE}",
                techniques=("simd-vectors",),
                notes=("2 edits of the base",),
                place=place,
            ),
        )
        self.candidates.append(candidate)
        protocol = Depth.CONFIRM if status is Status.VERIFIED else Depth.SCREEN
        verdict = verdict_of(candidate, status, protocol, 0.9 + 0.4 * number, self.rng)
        self.store.append(self.campaign, EvaluationStarted(candidate=candidate, protocol=protocol))
        self.store.append(self.campaign, EvaluationFinished(verdict=verdict))
        if status is Status.VERIFIED:
            self.store.append(
                self.campaign,
                ChampionChanged(
                    candidate=candidate, previous=self.champion, credited=verdict.credited
                ),
            )
            self.champion = candidate
        return candidate

    def advise(self, place: str, **more: object) -> None:
        advice = {
            "candidate": self.candidates[-1],
            "bottleneck": f"no vectors {HOSTILE}",
            "change": "Use eight lanes.",
            "why": "The loop is scalar.",
            "by": JUDGE,
            **more,
        }
        given = AdviceGiven(advice=Advice.model_validate(advice), place=place)
        self.store.append(self.campaign, given)

    def decide(self, place: str, what: str, **details: str) -> None:
        self.store.append(
            self.campaign, Decided(place=place, decision=read_decision({"what": what, **details}))
        )


@dataclass(frozen=True)
class AskedSample:
    """The campaign that was written."""

    home: Path
    campaign: str
    candidates: tuple[str, ...]


def begun(**more: object) -> CampaignStarted:
    """Its first event."""
    return started().model_copy(
        update={
            "workflow": "forge",
            "model": CODER,
            "judge_model": JUDGE,
            "limits": {"usd": 1.5, "tokens": 200_000.0},
            **more,
        }
    )


def shown(content: str, place: str) -> str:
    """A prompt that shows untrusted content, as real prompts do."""
    block = fence_text(content, what="the source", place=Place.parse(place))
    return f"Make this faster.\n\n{block}\n\nAnswer now."


def write_asked(home: Path) -> AskedSample:
    """Four rounds: a useless reply asked again, a repair, an optimisation, one that gave nothing.

    Among them a retry, an estimate, advice by rules, a change of base, and a call left open.
    """
    with Store.open(home, clock=Clock()) as store:
        writer = Writer(store, store.create(begun()))
        for _ in _rounds(writer):
            pass
        return AskedSample(home, writer.campaign, tuple(writer.candidates))


def _rounds(w: Writer) -> Iterator[None]:
    w.ask(
        "0/0/write/0",
        "write",
        "Write it.",
        f"I would rather not. {EVIL}",
        reasoning=f"Rows of 7 are odd. {EVIL}",
    )
    w.ask("0/0/write/1", "write", "Write it.\n\nOne block, please.", "```cpp\nint x;\n```")
    w.propose("0/0", "write", Status.BUILD_FAILED)
    yield
    w.ask("1/0/judge repair/0", "judge repair", shown(source_of(1, EVIL), "1/0"), '{"a": 1}')
    w.advise("1/0", mode="repair", confidence="high", notes=("bottleneck cut to 20 words",))
    call = w.request("1/0/repair/0", "repair", shown(source_of(1, EVIL), "1/0"))
    w.fail(call, "rate limited")
    w.request("1/0/repair/0", "repair", shown(source_of(1, EVIL), "1/0"), attempt=2, key=call)
    w.answer(call, "```cpp\nint y;\n```", attempt=2)
    w.propose("1/0", "repair", Status.VERIFIED)
    yield
    w.advise(
        "2/0",
        mode="optimise",
        by="rules (fallback)",
        technique="vectorise",
        rests_on={"vector_share": 0.62},
        notes=("given up: invalid_json: unsupported evidence",),
    )
    w.ask("2/0/optimise/0", "optimise", shown(source_of(2), "2/0"), "yes", is_estimated=True)
    w.propose("2/0", "optimise", Status.VERIFIED)
    w.decide("2/0", "base of the next edit", candidate=w.candidates[1], why="much slower")
    yield
    call = w.ask("3/0/optimise/0", "optimise", "Again.", "", finish=Finish.EMPTY)
    w.store.append(
        w.campaign,
        CandidateMissing(
            place="3/0", outcome="no_candidate", reason=f"no fenced block {HOSTILE}", call=call
        ),
    )
    w.request("4/0/judge optimise/0", "judge optimise", "What is slow?", model=JUDGE)
    yield
