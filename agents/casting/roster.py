"""Which brains and workflows there are, by name. Each is imported only when it is asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, ValidationError

from ...errors import UnknownNameError, UsageError
from ...kernelbench.recipe import Recipe
from ..books.asking import Asker, Asking
from ..models.choosing import is_model, unknown
from ..prompting.version import version as prompts_version
from ..roles import Coder, Judge

if TYPE_CHECKING:
    from ..aids import Aids
    from ..books.request import CampaignRequest
    from ..model import Model
    from ..workflows.loop import Loop

WORKFLOWS = {
    "evolve": 3,
    "forge": 3,
    "refine": 2,
    "best_of_n": 3,
    "contrast": 3,
    "features": 3,
    "transpile": 3,
}
"""With the version of each graph: it rises when the same answers would lead elsewhere."""


Find = Callable[[str], "Model"]
"""Gives the model of a name."""


def coder(name: str, recipes: Sequence[Recipe], find: Find) -> Coder | Asking[Coder]:
    """The Coder `name`; UnknownNameError with the known ones."""
    if is_model(name):
        from ..brains.llm_coder import LlmCoder
        from ..prompting.parts import briefing

        def make(asker: Asker) -> Coder:
            return LlmCoder(asker, briefing(asker.started))

        return Asking(find(name), make)
    if name != "recipe":
        raise unknown(name, offline="recipe")
    from ..brains.recipe import RecipeCoder

    return RecipeCoder(recipes)


def judge(name: str, recipes: Sequence[Recipe], find: Find) -> Judge | Asking[Judge]:
    """The Judge `name`; UnknownNameError with the known ones."""
    from ..brains.rules import RuleJudge

    if is_model(name):
        from ..brains.llm_judge import LlmJudge
        from ..prompting.parts import briefing

        rules = RuleJudge(recipes)

        def make(asker: Asker) -> Judge:
            return LlmJudge(asker, briefing(asker.started), rules)

        return Asking(find(name), make)
    if name != "rules":
        raise unknown(name, offline="rules")
    return RuleJudge(recipes)


def aids(names: Sequence[str], find: Find) -> Asking[Aids] | None:
    """Help by the first of these brains that asks a model; None where none does."""
    from ..aids import Aids
    from ..brains.lessons import reflect
    from ..brains.second_opinion import LlmSecondLook
    from ..brains.soft_verifier import LlmSoftVerifier
    from ..prompting.parts import briefing

    def make(asker: Asker) -> Aids:
        told = briefing(asker.started)
        reflector = functools.partial(reflect, asker, told)
        return Aids(LlmSoftVerifier(asker, told), reflector, LlmSecondLook(asker, told))

    return next((Asking(find(name), make) for name in names if is_model(name)), None)


def workflow(name: str) -> Callable[[Loop], str]:
    """The function that runs the workflow `name`; UnknownNameError with the known ones."""
    check_workflow(name)
    run: Callable[[Loop], str] = import_module(f"..workflows.{name}", __package__).run
    return run


def check_settings(request: CampaignRequest) -> None:
    """Refuses settings that the workflow has not, or that cannot be.

    Raises:
        UnknownNameError: there is no such workflow.
        UsageError: a setting is unknown or out of range, or something is missing.
    """
    check_workflow(request.workflow)
    module = import_module(f"..workflows.{request.workflow}", __package__)
    known: type[BaseModel] | None = getattr(module, "Settings", None)
    try:
        (known or NoSettings).model_validate(request.options)
    except ValidationError as error:
        first = error.errors()[0]
        names = ", ".join(known.model_fields) if known else ""
        raise UsageError(
            f"the setting {'.'.join(map(str, first['loc']))} of {request.workflow}: {first['msg']}",
            hint=f"its settings: {names}" if names else f"{request.workflow} has none",
        ) from error
    check = getattr(module, "check", None)
    if check is not None:
        check(request)
    elif request.source:
        raise UsageError(
            f"{request.workflow} takes no source to begin from", hint="--workflow transpile does"
        )


class NoSettings(BaseModel):
    """Of a workflow without any."""

    model_config = ConfigDict(extra="forbid")


def workflow_version(name: str, *, asks_models: bool) -> str:
    """What must be the same for a campaign to go on: the graph, and the prompts where used."""
    check_workflow(name)
    version = f"{name}/{WORKFLOWS[name]}"
    return f"{version}+{prompts_version()}" if asks_models else version


def check_workflow_version(recorded: str, campaign: str, now: str) -> None:
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


def check_workflow(name: str) -> None:
    """UnknownNameError where there is no such workflow."""
    if name not in WORKFLOWS:
        raise UnknownNameError.among("workflow", name, WORKFLOWS)
