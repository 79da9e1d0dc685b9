"""Which brains and workflows there are, by name. Each is imported only when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..errors import UnknownNameError
from ..kernelbench.recipe import Recipe
from .protocols import Coder, Judge

if TYPE_CHECKING:
    from .loop import Loop

CODERS = ("recipe",)
JUDGES = ("rules",)
WORKFLOWS = ("evolve",)


def coder(name: str, recipes: Sequence[Recipe]) -> Coder:
    """The Coder `name`; UnknownNameError with the known ones."""
    if name != "recipe":
        raise UnknownNameError.among("model for the Coder", name, CODERS)
    from .brains.recipe import RecipeCoder

    return RecipeCoder(recipes)


def judge(name: str, recipes: Sequence[Recipe]) -> Judge:
    """The Judge `name`; UnknownNameError with the known ones."""
    if name != "rules":
        raise UnknownNameError.among("model for the Judge", name, JUDGES)
    from .brains.rules import RuleJudge

    return RuleJudge(recipes)


def workflow(name: str) -> Callable[[Loop], str]:
    """The function that runs the workflow `name`; UnknownNameError with the known ones."""
    if name != "evolve":
        raise UnknownNameError.among("workflow", name, WORKFLOWS)
    from .workflows.evolve import run

    return run
