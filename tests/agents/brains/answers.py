"""An Asker with scripted replies, and situations over real problems."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernelwright.agents.model import Ask, Finish, Reply, TokenUsage
from kernelwright.agents.prompting.parts import Briefing
from kernelwright.agents.prompting.target_card import Card, cpu_card, device_card
from kernelwright.agents.roles import Assignment, Member, Situation
from kernelwright.kernelbench.features import features
from kernelwright.kernelbench.languages import language_of
from kernelwright.kernelbench.problem import Problem
from kernelwright.kernelbench.registry import get
from kernelwright.traces.place import Place
from kernelwright.traces.records import (
    Check,
    Depth,
    Level,
    Measurement,
    Metric,
    Profile,
    Speedup,
    Status,
    Timing,
    Verdict,
    candidate_id,
)

CPU_FACTS = {"cpus": 2.0, "vector_bytes": 64.0}


def reply(text: str, finish: Finish = Finish.STOP, rung: str = "") -> Reply:
    return Reply(text=text, finish=finish, usage=TokenUsage(prompt_tokens=1), rung=rung)


@dataclass
class Answers:
    """Implements brains.asks.Asks: the n-th question gets the n-th reply, the last one for ever."""

    replies: Sequence[Reply]
    model_name: str = "scripted/model"
    asked: list[tuple[Place, Ask]] = field(default_factory=list)

    def ask(self, ask: Ask, place: Place) -> Reply:
        self.asked.append((place, ask))
        return self.replies[min(len(self.asked), len(self.replies)) - 1]

    def key(self, ask: Ask, place: Place) -> str:
        return hashlib.sha256(f"{place}{ask.model_dump_json()}".encode()).hexdigest()

    @property
    def places(self) -> list[str]:
        return [str(place) for place, _ in self.asked]

    def prompt(self, number: int = -1) -> str:
        """Everything that the model was shown in one question."""
        return "\n".join(m.content for m in self.asked[number][1].messages)


def answers(*texts: str) -> Answers:
    return Answers([reply(text) for text in texts])


def facts_of(problem: Problem) -> dict[str, float]:
    tiny = problem.workload("tiny")
    return {**features(problem.structure(tiny)), **CPU_FACTS}


def situation(
    problem: Problem | str = "softmax", language: str = "cpp", target: str = "", **more: Any
) -> Situation:
    problem = get(problem) if isinstance(problem, str) else problem
    target = target or language_of(language).example_target
    place = Place.parse(more.pop("place", "3/0"))
    return Situation(
        problem=problem,
        target=target,
        language=language,
        facts=facts_of(problem),
        round=1,
        seed=0,
        assignment=Assignment(place=place, **more),
    )


def at(now: Situation, **more: Any) -> Situation:
    return replace(now, assignment=replace(now.assignment, **more))


def card_of(target: str) -> Card:
    return cpu_card(CPU_FACTS) if target == "cpu" else device_card(target)


def briefing_of(now: Situation) -> Briefing:
    return Briefing(card_of(now.target), "tiny")


BUILD_LOG = "candidate.cpp:3:5: error: 'sum' was not declared in this scope"


def failed(
    source: str, now: Situation, status: Status = Status.INCORRECT, log: str = "", **more: Any
) -> Member:
    check = Check(
        name="G1 condition-scaled error",
        passed=False,
        figure=7.5,
        limit=1.0,
        detail="y[3, 17] is 0.25, must be 0.5; inputs: large",
        workload="hidden 129x65",
    )
    reasons = more.pop("reasons", ("y[3, 17] is wrong on 129x65",))
    return member(source, now, status, reasons=reasons, checks=(check,), log=log, **more)


def passed(source: str, now: Situation, latency_us: float = 100.0, **more: Any) -> Member:
    timed = Measurement(
        workload="tiny",
        candidate=Timing(median_us=latency_us, low_us=latency_us, high_us=latency_us),
        speedup={"torch eager": Speedup(median=2.0, low=1.9, high=2.1)},
        best_baseline="torch eager",
        roofline=0.43,
        cpu_us=1.6 * latency_us,
        threads=2,
    )
    metrics = (
        Metric(name="vectorised_loops", value=2.0, unit="lines"),
        Metric(name="vector_bytes", value=32.0, unit="bytes"),
        Metric(name="achieved_gbs", value=12.3456, unit="GB/s", level=Level.MEASURED),
    )
    known = more.pop("profile", Profile(metrics=metrics))
    measured = more.pop("measurements", (timed,))
    return member(source, now, Status.SCREENED, measurements=measured, profile=known, **more)


def member(source: str, now: Situation, status: Status, **more: Any) -> Member:
    verdict = Verdict(
        candidate=candidate_id(source),
        problem=now.problem.name,
        workload="tiny",
        language=now.language,
        target=now.target,
        protocol=Depth.SCREEN,
        status=status,
        **more,
    )
    return Member(
        candidate=candidate_id(source),
        number=4,
        source=source,
        language=now.language,
        family="model",
        knobs={},
        verdict=verdict,
    )


SOURCE = 'extern "C" void softmax(int M, int N, const float* x, float* y) {\n    y[0] = x[0];\n}\n'
OTHER = SOURCE.replace("x[0]", "x[1]")


def code(source: str = SOURCE, label: str = "cpp", head: str = "Strategy: plain loops") -> str:
    return f"{head}\n\n```{label}\n{source}```\n"
