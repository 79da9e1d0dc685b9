# SPDX-License-Identifier: Apache-2.0
"""A whole campaign from Python."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..agents.casting.cast import seat_players
from ..agents.models.choosing import ModelSettings
from ..agents.offered import usual_workflow
from ..agents.stop import Stop
from ..campaign import CampaignRequest, run_campaign
from ..config import Config, resolve
from ..traces.events import Event
from ..traces.options import Options
from ..traces.store import Store
from ..verifier.process.client import open_referee
from . import tasks
from .home import Campaign, Home
from .limits import with_an_end


def optimize(
    problem: str,
    *,
    language: str | None = None,
    workload: str | None = None,
    matrix: Path | None = None,
    max_usd: float | None = None,
    max_tokens: int | None = None,
    on_event: Callable[[Event], None] | None = None,
    stop: Stop | None = None,
    **settings: Any,
) -> Campaign:
    """Searches for the fastest verified kernel and gives the campaign, whether or not it has one.

        campaign = kernelwright.optimize("softmax", max_time=60)
        if campaign.champion:
            kernelwright.export(campaign, "winner")

    Args:
        language: None: the usual one of the target.
        max_usd: US dollars that models may cost.
        max_tokens: Tokens that models may take.
        on_event: Told every event after it was recorded.
        stop: Asked by somebody else, it ends the campaign in order.
        settings: The campaign's own (`traces.options.Options`: rounds, seed, and `options` of the
            workflow by name), and those of every run: `target`, `home`, `workflow`, `model`,
            `judge_model`, `max_evals`, `max_time` in seconds, and all others that
            `kernelwright config show` lists.

    Raises:
        KernelwrightError: the harness failed, or was asked for what cannot be; what was found
            before is kept and can be resumed.
    """
    asked = Options.choose(
        **{name: settings.pop(name) for name in Options.model_fields & settings.keys()}
    )
    config = resolve(settings).config
    target = tasks.choose_target(config.target, language or "", devices=config.devices)
    spoken = language or tasks.languages_of(target)[0]
    task = tasks.make_task(config, problem, workload, matrix, target, spoken)
    caps = _limits(config, max_usd=max_usd, max_tokens=max_tokens)
    request = CampaignRequest(
        **dict(asked),
        problem=problem,
        workload=task.workload.matrix or task.workload.name,
        target=target,
        language=spoken,
        workflow=config.workflow or usual_workflow(config.model),
        model=config.model,
        judge_model=config.judge_model,
        limits=with_an_end(caps, config.model, config.judge_model),
    )
    models = ModelSettings.from_config(config, asked.seed)
    with ExitStack() as stack:
        store = stack.enter_context(Store.open(config.home))
        players = stack.enter_context(seat_players(None, request, store, models))
        referee = stack.enter_context(open_referee(task))
        result = run_campaign(
            request, store, referee, stop=stop, on_event=on_event, players=players
        )
    return Home(config.home)[result.campaign]


def _limits(config: Config, *, max_usd: float | None, max_tokens: int | None) -> dict[str, float]:
    limits = {
        "evaluations": config.max_evals,
        "seconds": config.max_time,
        "usd": max_usd,
        "tokens": max_tokens,
    }
    return {name: float(value) for name, value in limits.items() if value is not None}
