"""Benches over a played model and the played referee, and scores by hand."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from kernelwright.agents.books.ledger import OnEvent
from kernelwright.compare.plan import Bench, BenchCampaign
from kernelwright.compare.running import Standing
from kernelwright.compare.scores import ChampionStep, Score, Spent
from kernelwright.running import Players
from kernelwright.tests.agents.asked import PlayedModel, as_it_says, asking_players
from kernelwright.tests.agents.played import PlayedReferee
from kernelwright.traces.events import Event

WORKFLOWS = ("forge", "refine", "best_of_n")
PROBLEMS = ("softmax", "spmm_csr")


def bench(**changes: Any) -> Bench:
    """Three workflows, two names of problems, two seeds, twelve cents."""
    given = {
        "workflows": WORKFLOWS,
        "problems": PROBLEMS,
        "seeds": 2,
        "limits": {"usd": 0.12, "seconds": 600.0},
        "model": "openai/played",
        "judge_model": "openai/played",
    }
    return Bench(**{**given, **changes})


@dataclass
class Hall:
    """Where a bench is held: opens referees, seats players, watches."""

    models: dict[BenchCampaign, PlayedModel] = field(default_factory=dict)
    slots: int = 1
    is_emulated: bool = False
    opened: list[str] = field(default_factory=list)
    stood: list[Standing] = field(default_factory=list)
    on_event: OnEvent = lambda _event: None

    def open_referee(self, problem: str) -> AbstractContextManager[PlayedReferee]:
        self.opened.append(problem)
        referee = PlayedReferee(seed=PROBLEMS.index(problem), fate=as_it_says, noise=0.001)
        referee.is_emulated = self.is_emulated
        return nullcontext(referee)

    def seats(self, trial: BenchCampaign) -> Players:
        model = self.models.setdefault(trial, PlayedModel(slots=self.slots))
        return asking_players(model)

    @contextmanager
    def watch(self, standing: Standing) -> Iterator[OnEvent]:
        self.stood.append(standing)

        def hear(event: Event) -> None:
            self.on_event(event)

        yield hear


def score(
    workflow: str, problem: str, seed: int, credited: float, *, at: float = 1.0, usd: float = 0.1
) -> Score:
    """A campaign that found its kernel once it had spent `at` seconds, or never for 0."""
    spent = Spent(4, at, usd * at, int(100 * at), at / 2)
    return Score(
        trial=BenchCampaign(workflow, problem, seed),
        campaign=f"{workflow}-{problem}-{seed}",
        stopped_by="usd",
        credited=credited,
        spent=Spent(8, 10.0, usd * 10, 1000, 5.0),
        calls=9,
        replies=8,
        by_status={"VERIFIED": 1} if credited else {"INCORRECT": 8},
        steps=(ChampionStep(spent, credited),) if credited else (),
    )
