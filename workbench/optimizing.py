# SPDX-License-Identifier: Apache-2.0
"""A whole campaign from Python, and one that goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..agents.stop import Stop
from ..config import Config, resolve
from ..errors import UsageError
from ..kernelbench.packs import Axes
from ..traces.events import Event
from ..traces.options import Options
from ..verifier.process.client import open_referee
from .home import Campaign, Home
from .jobs import Fresh, Job, Resume, make_ready
from .limits import limits_of
from .own_kernel import OwnKernel, read_start

_DECIDED = ("judge_model", "model", "target", "workflow")
"""Settings that a campaign keeps from its beginning."""


def optimize(
    problem: str,
    *,
    language: str | None = None,
    workload: str | None = None,
    matrix: Path | None = None,
    axes: Axes | Sequence[Axes] = (),
    workloads: str | None = None,
    source: str | Path | None = None,
    max_usd: float | None = None,
    max_tokens: int | None = None,
    max_device_time: float | None = None,
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
        axes: Sizes in place of the workload's own, by axis or in words (`M=4096,N=64:3`); several
            make as many workloads, and the score is their weighted geometric mean.
        workloads: Names with weights, a trace of calls or a pack (`pack:llm`).
        source: Your own kernel to begin from, or what the workflow `transpile` translates: a text
            (in `language`), or the path of a file.
        max_usd: US dollars that models may cost.
        max_tokens: Tokens that models may take.
        max_device_time: Seconds on the target, without builds.
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
    job = Fresh(
        config,
        problem,
        language=language or "",
        workload=workload,
        matrix=matrix,
        axes=axes,
        several=workloads,
        limits=limits_of(config, usd=max_usd, tokens=max_tokens, device_seconds=max_device_time),
        asked=asked,
        start=_start_of(source, language, config),
    )
    return _done(job, on_event, stop)


def _start_of(source: str | Path | None, language: str | None, config: Config) -> OwnKernel | None:
    if isinstance(source, Path):
        return read_start(source, config.home, config.target)
    return OwnKernel(source, language or "") if source else None


def resume(
    campaign: Campaign | str = "@last",
    *,
    max_usd: float | None = None,
    max_tokens: int | None = None,
    max_device_time: float | None = None,
    on_event: Callable[[Event], None] | None = None,
    stop: Stop | None = None,
    **settings: Any,
) -> Campaign:
    """Goes on with a campaign where it ended or was interrupted; gives it as it then stands.

        campaign = kernelwright.resume(campaign, max_time=120)

    Args:
        campaign: As it was given, or its name in the home; `@last` is the newest that searched,
            whatever was evaluated since.
        settings: `home` and those of every run, as for `optimize`. A limit replaces the one that
            the campaign had, and what was spent counts; the campaign keeps everything else.

    Raises:
        UsageError: another process runs it, it was asked for what it keeps, or it cannot be
            compared with what is installed.
        KernelwrightError: as for `optimize`.
    """
    kept = [name for name in _DECIDED if name in settings]
    if kept:
        raise UsageError(
            f"a resumed campaign cannot be given {', '.join(kept)}",
            hint="it takes limits only; start a new campaign for other settings",
        )
    if isinstance(campaign, Campaign):
        settings = {"home": campaign.home, **settings}
    config = resolve(settings).config
    limits = limits_of(config, usd=max_usd, tokens=max_tokens, device_seconds=max_device_time)
    name = campaign.id if isinstance(campaign, Campaign) else campaign
    return _done(Resume(config, name, limits), on_event, stop)


def _done(job: Job, on_event: Callable[[Event], None] | None, stop: Stop | None) -> Campaign:
    with make_ready(job) as ready, open_referee(ready.settled.task) as referee:
        result = ready.run(referee, stop=stop, on_event=on_event)
    return Home(job.config.home)[result.campaign]
