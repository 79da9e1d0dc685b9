# SPDX-License-Identifier: Apache-2.0
"""Turns a template and knobs into a whole candidate file. It knows no recipe and no compiler."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import UsageError
from ..dtypes import FLOAT32
from ..languages import CPP
from ..policies import POLICIES, name_in
from ..recipe import Constraint, Facts, Knob, Knobs, Recipe
from ._front_matter import front_matter
from ._modelled import Model

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent


@functools.cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    return Environment(
        loader=FileSystemLoader(FOLDER),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def body(template: str, **values: object) -> str:
    """A template of this folder with its values; a name without a value is an error."""
    return _environment().get_template(template).render(**values)


def check(family: str, knobs: Knobs, declared: tuple[Knob, ...]) -> None:
    """Raises UsageError for a knob that is missing, unknown or has a value that is not its own."""
    names = {knob.name for knob in declared}
    if missing := sorted(names - knobs.keys()):
        raise UsageError(
            f"recipe '{family}' cannot be rendered without the knobs: {', '.join(missing)}",
            hint=f"give all of: {', '.join(sorted(names))}",
        )
    if unknown := sorted(knobs.keys() - names):
        raise UsageError(
            f"recipe '{family}' has no knobs named: {', '.join(unknown)}",
            hint=f"its knobs are: {', '.join(sorted(names))}",
        )
    for knob in declared:
        value = knobs[knob.name]
        # True equals 1 and would be rendered as `True`.
        if not any(value == known and type(value) is type(known) for known in knob.values):
            raise UsageError(
                f"recipe '{family}' cannot take {knob.name} = {knobs[knob.name]!r}",
                hint=f"one of: {', '.join(map(str, knob.values))}",
            )


def _deal(knobs: Knobs) -> str:
    """The OpenMP clause for the knobs: rows by the chunk, pieces one at a time."""
    schedule = knobs.get("schedule", "static")
    if schedule == "static":
        return "schedule(static)"
    return f"schedule({schedule}, {knobs.get('chunk', 1)})"


def renderer(
    template: str,
    family: str,
    declared: tuple[Knob, ...],
    *,
    prepares: str = "",
    **elements: object,
) -> Callable[[Knobs], str]:
    """The render function of a recipe; UsageError for a knob that is missing, unknown or wrong.

    Args:
        prepares: bytes of a plan of the pattern, as an expression over the axes; empty: none.
        elements: what the template is told beside family and knobs.
    """

    def render(knobs: Knobs) -> str:
        check(family, knobs, declared)
        ordered = {knob.name: knobs[knob.name] for knob in declared}
        head = front_matter(CPP, family, ordered, prepares=prepares)
        return head + body(template, family=family, deal=_deal(knobs), **elements, **knobs)

    return render


def cpp_recipes(
    problem: str,
    family: str,
    summary: str,
    *,
    knobs: tuple[Knob, ...],
    constraints: tuple[Constraint, ...],
    default: Knobs,
    model: Model | None = None,
    policies: tuple[str, ...] = (),
    template: str = "",
    prepares: str = "",
) -> tuple[Recipe, ...]:
    """A C++ family: of the problem, and of it in policies.

    Args:
        default: may hold more than its knobs.
        policies: names out of policies.POLICIES that the template serves beside float32.
        template: its name without `.cpp.j2`; empty: the problem's.
        prepares: bytes of the plan that it makes of a pattern; empty: none.
    """
    file = f"{template or problem}.cpp.j2"
    return tuple(
        Recipe(
            problem=name_in(problem, policy) if policy else problem,
            family=family,
            language=CPP.name,
            summary=summary,
            knobs=knobs,
            render=renderer(file, family, knobs, prepares=prepares, **_elements(problem, policy)),
            constraints=constraints,
            default={knob.name: default[knob.name] for knob in knobs},
            model=model and _model_in(model, policy),
        )
        for policy in ("", *policies)
    )


def _elements(problem: str, policy: str) -> dict[str, object]:
    """What a template has to know of a policy: the entry point, and the elements in C++.

    `is_narrow`: 16 bits that are computed in float32 and rounded once.
    """
    inputs, outputs = (
        (POLICIES[policy].inputs, POLICIES[policy].outputs) if policy else (FLOAT32, FLOAT32)
    )
    return {
        "name": name_in(problem, policy) if policy else problem,
        "element": inputs.c,
        "result": outputs.c,
        "bytes": inputs.bytes,
        "is_narrow": inputs.is_float and inputs.bytes < FLOAT32.bytes,
    }


def _model_in(model: Model, policy: str) -> Model:
    """The model where elements have as many bytes as in a policy."""
    if not policy or POLICIES[policy].inputs == FLOAT32:
        return model
    size = {"element_bytes": float(POLICIES[policy].inputs.bytes)}

    def model_narrow(knobs: Knobs, facts: Facts) -> float:
        return model(knobs, {**facts, **size})

    return model_narrow
