# SPDX-License-Identifier: Apache-2.0
"""What a bench runs: every workflow on every problem with every seed, each as one campaign.

A bench keeps no record of its own. The key of a trial, made of everything that its result rests on,
stands in the first event of its campaign: the same bench finds its campaigns again, finished or
cut off, and a bench with one workflow more runs only what is new. It knows no store and no referee.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..agents.books.budget import check_limits, check_priced
from ..agents.books.request import CampaignRequest
from ..agents.model import Model, TokenUsage, canonical_json
from ..agents.models.choosing import is_model
from ..agents.offered import OFFLINE
from ..agents.workflows import admission
from ..config import parse_duration
from ..errors import UsageError
from ..kernelbench import registry
from ..kernelbench.languages import CPP
from ..kernelbench.targets import CPU

NO_BOUND = 10**9
"""Rounds and patience of a trial: only the budget ends it, or the search itself."""

ONE_OF_EACH = TokenUsage(prompt_tokens=1_000_000, completion_tokens=1_000_000)

_TIMES = ("seconds", "device_seconds")


class BenchCampaign(NamedTuple):
    """One campaign of a bench."""

    workflow: str
    problem: str
    seed: int


@dataclass(frozen=True)
class Bench:
    """What is compared. The first workflow is the one that the others are held against."""

    workflows: tuple[str, ...]
    problems: tuple[str, ...]
    seeds: int
    limits: Mapping[str, float]
    target: str = CPU
    language: str = CPP.name
    workload: str = ""
    """A workload that every problem has; empty: each problem's default."""
    model: str = "recipe"
    judge_model: str = "rules"
    label: str = ""
    """Tells repetitions of the same bench apart."""
    cpus: tuple[int, ...] = ()

    @property
    def asks_models(self) -> bool:
        """Whether any of its campaigns asks a language model."""
        return is_model(self.model) or is_model(self.judge_model)

    def find_task(self, problem: str) -> tuple[str, str]:
        """The name of the problem, and that of its workload; empty: its default."""
        return problem, self.workload

    def trials(self, problem: str) -> Iterator[BenchCampaign]:
        """The campaigns of one problem, seed by seed; no workflow is always the first."""
        for seed in range(self.seeds):
            at = seed % len(self.workflows)
            for workflow in self.workflows[at:] + self.workflows[:at]:
                yield BenchCampaign(workflow, problem, seed)

    def request(self, trial: BenchCampaign) -> CampaignRequest:
        """The campaign of a trial. All have the same caps, and none stops before them by itself."""
        problem, workload = self.find_task(trial.problem)
        return CampaignRequest(
            problem=problem,
            workload=workload,
            target=self.target,
            language=self.language,
            workflow=trial.workflow,
            model=self.model,
            judge_model=self.judge_model,
            rounds=NO_BOUND,
            patience=NO_BOUND,
            limits=dict(self.limits),
            transfer=False,
            seed=trial.seed,
            trial=self.key(trial),
        )

    def key(self, trial: BenchCampaign) -> str:
        """What must be the same for a campaign to be the trial's."""
        parts = {
            "trial": list(trial),
            "workflow": admission.version_of(trial.workflow, asks_models=self.asks_models),
            "problem": registry.get(self.find_task(trial.problem)[0]).version,
            "workload": self.workload,
            "target": self.target,
            "language": self.language,
            "models": [self.model, self.judge_model],
            "limits": dict(self.limits),
            "cpus": list(self.cpus),
            "label": self.label,
        }
        return hashlib.sha256(canonical_json(parts).encode()).hexdigest()[:24]


def parse_names(text: str, what: str) -> tuple[str, ...]:
    """The names of a list such as `forge,refine`.

    Raises:
        UsageError: there is none, or one stands there twice.
    """
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(f"{what} '{text}' has an empty name in it", hint="write them as NAME,NAME")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"{what} names {', '.join(twice)} twice", hint="each one is run once")
    return names


def parse_budget(text: str) -> dict[str, float]:
    """The caps of a budget such as `usd=0.50,evaluations=20,seconds=2m`.

    Raises:
        UsageError: a cap is unknown, named twice, or no positive number.
    """
    limits: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not name:
            raise UsageError(
                f"the budget '{text}' has a part without a value: '{part.strip()}'",
                hint="write it as NAME=VALUE, e.g. usd=0.50,evaluations=20,seconds=2m",
            )
        if name in limits:
            raise UsageError(f"the budget '{text}' names {name} twice")
        limits |= check_limits({name: _number(name, value)})
    return limits


def _number(name: str, value: str) -> float:
    try:
        return parse_duration(value) if name in _TIMES else float(value)
    except ValueError as error:
        why = str(error) if name in _TIMES else "is not a number"
        raise UsageError(f"the budget's {name} '{value}' {why}") from error


def check(bench: Bench) -> None:
    """Unknown names are told before anything is started, all of them from one place.

    Raises:
        UnknownNameError: no such workflow, problem or workload.
        UsageError: a workflow is of no use to the Coder.
    """
    for workflow in bench.workflows:
        admission.check_coder(workflow, has_model=bench.model not in OFFLINE)
    for name in bench.problems:
        problem, workload = bench.find_task(name)
        registry.workload_for(registry.get(problem), workload)


def check_ends(limits: Mapping[str, float], models: Sequence[Model]) -> None:
    """Whether the budget would end a search that never finds anything.

    Raises:
        UsageError: it would not, or a price is unknown; the remedy stands in the hint.
    """
    check_priced(limits, models)
    ending = set(_ending(models))
    if not ending & set(limits):
        raise UsageError(
            f"a budget of {' and '.join(sorted(limits)) or 'nothing'} would never end a campaign "
            + ("whose model finds no kernel" if models else "that asks no model"),
            hint=f"add one of: {', '.join(sorted(ending))}",
        )


def _ending(models: Iterable[Model]) -> Iterator[str]:
    """The caps that are used up by whatever a campaign does next."""
    models = list(models)
    yield "seconds"
    if not models:
        yield from ("evaluations", "device_seconds")
        return
    yield "tokens"
    if all((model.cost(ONE_OF_EACH) or 0.0) > 0 for model in models):
        yield "usd"
