"""Campaigns in which the real Coder and Judge ask a scripted model: whole prompts, no network.

Replies are C++ as models write it; how fast a kernel is and whether it builds stands in its source.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwright.agents.casting import roster
from kernelwright.agents.casting.cast import Players
from kernelwright.agents.model import Ask
from kernelwright.agents.models.scripted import Script, ScriptedModel, Turn
from kernelwright.running import CampaignRequest, CampaignResult, run_campaign
from kernelwright.tests.agents.asked import needs
from kernelwright.tests.agents.played import PlayedReferee, problem
from kernelwright.traces.events import ModelRequested
from kernelwright.traces.records import Status, Verdict
from kernelwright.traces.store import Store
from kernelwright.verifier.request import Order

UNDECLARED = "'INFINITY' was not declared in this scope"
STRATEGY = "tile rows; it lacks nothing"
"""A sentence of a model that reads like two of our own remarks."""

THOUGHT = "What if the rows were odd?"


def kernel(step: int, *, body: str = "", fault: str = "") -> str:
    """A candidate; `step` makes it faster, `fault` is the status that it meets."""
    told = f"// fails: {fault}\n" if fault else ""
    return (
        f'#include <cmath>\n{told}extern "C" void doubling(int M, const float* x, float* y) {{\n'
        f"    const int step = {step};\n{body}"
        "    for (int i = 0; i < M; ++i) y[i] = 2 * x[i];\n}\n"
    )


def reply(source: str, *, strategy: str = STRATEGY, more: str = "") -> str:
    """What a model says: the lines asked for, a block, and perhaps another one."""
    other = f"\nAnd a helper:\n```cpp\n{more}```\n" if more else ""
    return f"Strategy: {strategy}\nTechniques: loop-unrolling\n\n```cpp\n{source}```\n{other}"


FORMS = {
    "judge repair": json.dumps(
        {
            "critical_issue": "a header is missing",
            "why_it_matters": "it does not build",
            "minimal_fix_hint": "include it",
            "confidence": "high",
        }
    ),
    "judge optimise": json.dumps(
        {
            "bottleneck": "one element a step",
            "method": "several elements a step",
            "plan": "unroll the loop by eight",
            "technique": "other",
            "evidence": [{"metric": "vectorised_loops", "value": 0.0}],
        }
    ),
    "reflect": json.dumps({"lessons": ["Unrolling by more gained each time."]}),
    "second opinion": json.dumps(
        {
            "label": "honest",
            "case": "none",
            "line": 0,
            "reason": "it computes every element",
        }
    ),
}
"""What is said where a form is asked for, by purpose."""


class Reader(PlayedReferee):
    """Reads a kernel's speed and fate in its source, and says of a failed build what g++ says."""

    def _judged(self, order: Order) -> Verdict:
        said = re.search(r"^// fails: (\w+)$", order.source, re.M)
        return self._failed(order, Status(said[1])) if said else self._passed(order)

    def _failed(self, order: Order, status: Status) -> Verdict:
        if status is not Status.BUILD_FAILED:
            return super()._failed(order, status)
        log = f"candidate.cpp: In function 'doubling':\ncandidate.cpp:7:9: error: {UNDECLARED}\n"
        reason = f"error at line 7:9: {UNDECLARED}"
        return self._verdict(order, status, reasons=(reason,), log=log)

    def _latency_us(self, order: Order, source: str) -> float:
        del order
        found = re.search(r"step = (\d+)", source)
        return 900.0 / (1.0 + 0.05 * int(found[1] if found else 0))


@dataclass
class Speaker(ScriptedModel):
    """A model that answers by what it is asked for."""

    answer: Callable[[int, Ask], str]
    """What a Coder is told, by the number of its question."""
    name: str = "scripted:spoken"
    slots: int = 1
    count: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        super().__init__(self.name, Script())

    def _take_turn(self, ask: Ask) -> Turn:
        if ask.purpose in FORMS:
            return Turn(text=FORMS[ask.purpose])
        self.count += 1
        return Turn(text=self.answer(self.count, ask), reasoning=THOUGHT)


@dataclass(frozen=True)
class Said:
    """One question of a campaign."""

    place: str
    purpose: str
    messages: Sequence[str]

    @property
    def text(self) -> str:
        return "\n".join(self.messages)


@dataclass(frozen=True)
class Played:
    """A campaign and everything that was asked in it."""

    result: CampaignResult
    asked: list[Said]

    def at(self, place: str) -> Said:
        return next(said for said in self.asked if said.place.startswith(place))


def seats(model: ScriptedModel, *, judged: bool = True) -> Players:
    """The toy problem with the real Coder, Judge and helpers on one model."""
    coder = roster.coder(model.name, (), lambda _name: model)
    judge = roster.judge(model.name if judged else "rules", (), lambda _name: model)
    aids = roster.aids((model.name,), lambda _name: model)
    return Players(problem(), coder, judge, aids=aids)


def play(
    store: Store,
    workflow: str,
    answer: Callable[[int, Ask], str],
    *,
    judged: bool = True,
    rounds: int = 3,
    **more: Any,
) -> Played:
    """Plays a workflow to its end."""
    model = Speaker(answer)
    told = {"problem": "doubling", "workflow": workflow, "rounds": rounds, **needs(workflow)}
    request = CampaignRequest.model_validate(told | {"model": model.name} | more)
    result = run_campaign(request, store, Reader(), players=seats(model, judged=judged))
    return Played(result, said(store, result))


def said(store: Store, result: CampaignResult) -> list[Said]:
    """Every question, read from the record."""
    found = []
    for payload in (event.payload for event in store.events(result.campaign)):
        if isinstance(payload, ModelRequested):
            ask = Ask.model_validate_json(store.get_blob(payload.ask))
            texts = [message.content for message in ask.messages]
            found.append(Said(str(payload.place), payload.purpose, texts))
    return found
