# SPDX-License-Identifier: Apache-2.0
"""Which brains there are, by name. Each is imported only when it is asked for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...kernelbench.recipe import Recipe
from ..books.asking import Asker, Asking
from ..models.choosing import is_model, unknown_name_error
from ..roles import Coder, Judge

if TYPE_CHECKING:
    from ..aids import Aids
    from ..model import Model

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
        raise unknown_name_error(name, offline="recipe")
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
        raise unknown_name_error(name, offline="rules")
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
