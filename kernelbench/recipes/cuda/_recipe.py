# SPDX-License-Identifier: Apache-2.0
"""Makes recipes in CUDA C++: a template, knobs that become constants, and a launch plan.

A knob that is an integer is the constant of its name in capitals, in the source and in the plan's
expressions; other knobs choose between pieces of the template.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ...languages import CUDA
from ...recipe import Constraint, Knob, Knobs, Recipe
from .._front_matter import LaunchPlan, Table, Value, front_matter
from .._render import body, check

Planner = Callable[[Knobs], LaunchPlan]


def cuda_recipe(
    problem: str,
    family: str,
    summary: str,
    *,
    template: str,
    knobs: tuple[Knob, ...],
    constraints: tuple[Constraint, ...],
    default: Knobs,
    plan: Planner,
    **values: str | bool,
) -> Recipe:
    """A recipe in CUDA C++.

    Args:
        template: `<template>.cu.j2` beside this module.
        default: May hold more than its knobs.
        plan: The launches for some knobs.
        values: What the template takes beside the knobs, the problem and the family.
    """

    def render(chosen: Knobs) -> str:
        check(family, chosen, knobs)
        ordered = {knob.name: chosen[knob.name] for knob in knobs}
        code = body(f"cuda/{template}.cu.j2", problem=problem, family=family, **values, **ordered)
        numbers = {n.upper(): v for n, v in ordered.items() if isinstance(v, int)}
        head = front_matter(CUDA, family, ordered, plan=plan(ordered), plan_knobs=numbers)
        return head + _constants(knobs, chosen, code) + code

    return Recipe(
        problem=problem,
        family=family,
        language=CUDA.name,
        summary=summary,
        knobs=knobs,
        render=render,
        constraints=constraints,
        default={knob.name: default[knob.name] for knob in knobs},
    )


def _constants(knobs: Sequence[Knob], chosen: Knobs, code: str) -> str:
    """The definitions of what the code uses and is not given as a template argument."""
    return "".join(
        f"constexpr int {name} = {chosen[knob.name]};  // {knob.meaning}\n"
        for knob in knobs
        if isinstance(chosen[knob.name], int)
        and re.search(rf"\b{(name := knob.name.upper())}\b", code)
        and not re.search(rf"\bint {name}\b", code)
    )


def launch(
    kernel: str,
    *,
    grid: Sequence[Value],
    block: Sequence[Value],
    args: Sequence[Value],
    when: Sequence[str] = (),
) -> Table:
    """One `[[launch]]`, made where all of `when` hold."""
    condition = {"when": " and ".join(when)} if when else {}
    return {"kernel": kernel, **condition, "grid": grid, "block": block, "args": args}


def by_width(
    vector: int, axis: str, make: Callable[[int, list[str]], Table], when: Sequence[str] = ()
) -> list[Table]:
    """A launch with vectors for rows that they divide, and one without for the others.

    Args:
        vector: Floats to a vector.
        axis: The length of a row.
        make: The launch for a width and the conditions under which it is made.
        when: Further conditions.
    """
    if vector == 1:
        return [make(1, [*when])]
    divides = f"{axis} % {vector} == 0"
    return [make(vector, [*when, divides]), make(1, [*when, f"{axis} % {vector} != 0"])]


def times(count: str, width: int) -> str:
    """The product, as one would write it."""
    return f"{count} * {width}" if width > 1 else count
