"""Whether a campaign may begin, or go on, under its workflow as it is now."""

from __future__ import annotations

from pydantic import ValidationError

from ...errors import UsageError
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


def version_of(name: str, *, asks_models: bool) -> str:
    """What must be the same for a campaign to go on: the graph, and the prompts where used."""
    version = f"{name}/{find_workflow(name).version}"
    return f"{version}+{prompts_version()}" if asks_models else version


def check_version(recorded: str, campaign: str, now: str) -> None:
    """Refuses to go on with other rules than the campaign began with.

    Raises:
        UsageError: the version differs; the remedy stands in the hint.
    """
    # Campaigns from before workflows had versions were all of the first `evolve`.
    if (recorded or "evolve/1") != now:
        raise UsageError(
            f"campaign {campaign} was run by {recorded}, and this is {now}: another workflow or "
            "other prompts",
            hint="finish it with the kernelwright that began it, or start a new campaign",
        )
