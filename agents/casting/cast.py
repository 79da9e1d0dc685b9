# SPDX-License-Identifier: Apache-2.0
"""Who takes part in a campaign: the problem, the brains, and the models that the brains ask.

It seats them by the names that a request or a campaign's first event holds, a recorded campaign in
the place of models included, and gives connections back when the campaign leaves the table.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from ...config import DEFAULT_PATIENCE_S
from ...errors import UsageError
from ...kernelbench.problem import Problem
from ...kernelbench.recipe import Recipe
from ...traces.decisions import Recalled
from ...traces.events import CampaignStarted
from ...traces.options import Options
from ...traces.records import Depth, Verdict
from ..aids import Aids
from ..books.asking import Asker, Asking
from ..books.budget import CAPS_OF_WORK, Budget
from ..books.ledger import Ledger
from ..books.request import CampaignRequest
from ..model import Model
from ..models import replay
from ..models.choosing import ModelSettings, model
from ..roles import Coder, Judge
from ..stop import Stop
from ..text.own_recipe import recipe_of_source
from ..workflows.admission import check_searched, version_of
from . import roster

Brain = TypeVar("Brain")

TRANSPILE = "transpile"
"""The workflow whose source is another program and no candidate."""


@dataclass(frozen=True)
class Players:
    """The problem and the brains that take part."""

    problem: Problem
    coder: Coder | Asking[Coder]
    judge: Judge | Asking[Judge]
    recorded: Mapping[tuple[str, Depth], Verdict] = field(default_factory=dict)
    """In a replay: the verdicts of the recorded campaign."""
    aids: Asking[Aids] | None = None
    """Help beside the brains, by a model that they ask anyway."""
    patience_s: float = DEFAULT_PATIENCE_S
    """How long a call that an endpoint refuses is tried again."""
    sleep: Callable[[float], None] = time.sleep
    recalled: Recalled | None = None
    """In a replay: what clocks decided then."""
    recipes: tuple[Recipe, ...] = ()
    """What is searched without a model: ours, and the user's own kernel."""

    @property
    def models(self) -> tuple[Model, ...]:
        """The models that are asked, each once."""
        asking = [p.model for p in (self.coder, self.judge, self.aids) if isinstance(p, Asking)]
        return tuple({id(model): model for model in asking}.values())

    @property
    def has_model(self) -> bool:
        """Whether the Coder asks one."""
        return isinstance(self.coder, Asking)

    @property
    def slots(self) -> int:
        """Calls of the Coder that may be in flight at once; 0 where it asks no model."""
        return self.coder.model.slots if isinstance(self.coder, Asking) else 0

    def brains(self, ledger: Ledger, budget: Budget, stop: Stop) -> tuple[Coder, Judge, Aids]:
        """The brains and their help at work, on this campaign's account."""
        askers = {
            id(m): Asker(ledger, budget, m, stop=stop, patience_s=self.patience_s, sleep=self.sleep)
            for m in self.models
        }

        def at_work(brain: Brain | Asking[Brain]) -> Brain:
            return brain.make(askers[id(brain.model)]) if isinstance(brain, Asking) else brain

        aids: Aids | Asking[Aids] = self.aids or Aids()
        return at_work(self.coder), at_work(self.judge), at_work(aids)


@contextmanager
def seat_players(
    players: Players | None,
    names: CampaignRequest | CampaignStarted,
    records: replay.RecordedAnswers | None,
    settings: ModelSettings | None = None,
) -> Iterator[Players]:
    """The given players, or those of these names, whose models are closed in the end."""
    if players is not None:
        yield players
        return
    players = choose(names, records, settings or ModelSettings(seed=names.seed))
    try:
        yield players
    finally:
        for model in players.models:
            model.close()


def choose(
    names: CampaignRequest | CampaignStarted,
    records: replay.RecordedAnswers | None,
    settings: ModelSettings,
) -> Players:
    """The players of these names. UsageError or UnknownNameError where there are none such."""
    from ...kernelbench.registry import get

    recipes = _recipes_for(names, records)
    problem = get(names.problem).for_target(names.target)
    if names.model.startswith(replay.PREFIX):
        assert records is not None, "a replay needs the store of its recording"
        recording = recording_of(records, names.model.removeprefix(replay.PREFIX))
        return _replay_players(names, problem, recording)
    models: dict[str, Model] = {}

    def find(name: str) -> Model:
        # One model for both brains shares its connections and its slots.
        if name not in models:
            models[name] = model(name, settings)
        return models[name]

    return Players(
        problem=problem,
        coder=roster.coder(names.model, recipes, find),
        judge=roster.judge(names.judge_model, recipes, find),
        aids=roster.aids((names.judge_model, names.model), find),
        patience_s=settings.patience_s,
        recipes=recipes,
    )


def _recipes_for(
    names: CampaignRequest | CampaignStarted, records: replay.RecordedAnswers | None
) -> tuple[Recipe, ...]:
    """What is searched without a model: our recipes, and the user's own kernel before them."""
    from ...kernelbench.recipes.catalogue import recipes_for

    recipes = recipes_for(names.problem, names.language)
    own = names.source if isinstance(names, CampaignRequest) else ""
    if isinstance(names, CampaignStarted) and names.source and records is not None:
        own = records.get_blob(names.source).decode()
    if not own or names.workflow == TRANSPILE:
        return recipes
    return (recipe_of_source(own, names.language, names.problem), *recipes)


def recording_of(records: replay.RecordedAnswers, campaign: str) -> replay.Recording:
    """A campaign for its replay by the workflows and prompts of today."""
    recording = replay.load(records, campaign)
    started = recording.started
    check_searched(campaign, started)
    now = version_of(started.workflow, asks_models=True)
    return dataclasses.replace(recording, same_words=started.workflow_version == now)


def replay_request(request: CampaignRequest, recording: replay.Recording) -> CampaignRequest:
    """The request for a replay: everything but the limits is as it was recorded.

    Raises:
        UsageError: the recorded campaign was about another problem.
    """
    started = recording.started
    if request.problem != started.problem:
        raise UsageError(
            f"campaign {recording.campaign} was about {started.problem}, not {request.problem}",
            hint=f"kernelwright run {started.problem} --model {replay.PREFIX}{recording.campaign}",
        )
    recorded = CampaignRequest.model_validate(
        {name: getattr(started, name) for name in _KEPT}
        | {"model": replay.PREFIX + recording.campaign}
    )
    source = recording.records.get_blob(started.source).decode() if started.source else ""
    limits = dict(request.limits)
    if not limits.keys() & set(CAPS_OF_WORK):
        limits = _limits_of(recording) | limits
    return request.model_copy(
        update={name: getattr(recorded, name) for name in (*_KEPT, "model")}
        | {"limits": limits, "source": source}
    )


def _limits_of(recording: replay.Recording) -> dict[str, float]:
    """As many candidates as the recording may have had; its words end by themselves."""
    if "evaluations" in recording.started.limits:
        return {"evaluations": recording.started.limits["evaluations"]}
    return {} if recording.answers else {"evaluations": float(max(1, recording.candidates))}


_KEPT = (
    "problem",
    "workload",
    "target",
    "language",
    "workflow",
    "judge_model",
    *Options.model_fields,
)


def _replay_players(
    names: CampaignRequest | CampaignStarted, problem: Problem, recording: replay.Recording
) -> Players:
    recipes = _recipes_for(names, recording.records)
    models: dict[str, Model] = {}

    def find(name: str) -> Model:
        return models.setdefault(name, replay.ReplayModel(recording, name))

    return Players(
        problem=problem,
        coder=roster.coder(recording.coder, recipes, find),
        judge=roster.judge(recording.started.judge_model, recipes, find),
        aids=roster.aids((recording.started.judge_model, recording.coder), find),
        recorded=recording.verdicts,
        recalled=recording.recalled,
        recipes=recipes,
    )
