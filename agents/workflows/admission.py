# SPDX-License-Identifier: Apache-2.0
"""Whether a campaign may begin, or go on, under its workflow as it is now."""

from __future__ import annotations

from pydantic import ValidationError

from ...errors import UsageError
from ...traces.events import CampaignStarted
from ..books.request import CampaignRequest
from ..prompting.version import version as prompts_version
from .workflow import find_workflow


def check_request(request: CampaignRequest) -> None:
    """Refuses settings that the workflow has not, or that cannot be.

    Raises:
        UnknownNameError: there is no such workflow.
        UsageError: a setting is unknown or out of range, or something is missing.
    """
    rules = find_workflow(request.workflow).rules
    try:
        rules.settings.model_validate(request.options)
    except ValidationError as error:
        first = error.errors()[0]
        names = ", ".join(rules.settings.model_fields)
        raise UsageError(
            f"the setting {'.'.join(map(str, first['loc']))} of {request.workflow}: {first['msg']}",
            hint=f"its settings: {names}" if names else f"{request.workflow} has none",
        ) from error
    rules.check(request)


def check_coder(name: str, *, has_model: bool) -> None:
    """Refuses a workflow for the other kind of Coder.

    Raises:
        UsageError: its candidates are written by a model, or by none.
    """
    needed = find_workflow(name).has_model
    if needed and not has_model:
        raise UsageError(
            f"{name} has a model write its candidates; recipes are searched by --workflow tune",
            hint="choose a model: --model openai/NAME",
        )
    if needed is False and has_model:
        raise UsageError(
            f"{name} searches recipes and asks no model for candidates",
            hint="--workflow evolve does; without --model its Coder is the one of recipes",
        )


def version_of(name: str, *, asks_models: bool) -> str:
    """What must be the same for a campaign to go on: the graph, and the prompts where used."""
    version = f"{name}/{find_workflow(name).version}"
    return f"{version}+{prompts_version()}" if asks_models else version


def check_searched(campaign: str, started: CampaignStarted) -> None:
    """Refuses to go on with the evaluation of a file, or to replay it.

    Raises:
        UsageError: nothing was searched in it.
    """
    if started.is_evaluation:
        raise UsageError(
            f"campaign {campaign} is the evaluation of one file on {started.problem}: nothing was "
            "searched in it that could go on or be replayed",
            hint=f"`kernelwright eval {started.problem} FILE` evaluates the file again, "
            f"`kernelwright run {started.problem}` begins a search",
        )


def check_version(
    campaign: str, started: CampaignStarted, *, has_model: bool, asks_models: bool
) -> None:
    """Refuses to go on with other rules than the campaign began with.

    Args:
        has_model: Whether its Coder asks one.
        asks_models: Whether anybody does.

    Raises:
        UsageError: the version differs; the remedy stands in the hint.
    """
    # Campaigns from before workflows had versions were all of the first `evolve`.
    recorded = started.workflow_version or "evolve/1"
    if started.workflow == "evolve" and not has_model:
        raise UsageError(
            f"campaign {campaign} was run by the search over recipes of {recorded}, which is the "
            "workflow tune now",
            hint="finish it with the kernelwright that began it, or start a new campaign",
        )
    now = version_of(started.workflow, asks_models=asks_models)
    if recorded != now:
        raise UsageError(
            f"campaign {campaign} was run by {recorded}, and this is {now}: another workflow or "
            "other prompts",
            hint="finish it with the kernelwright that began it, or start a new campaign",
        )
