# SPDX-License-Identifier: Apache-2.0
"""Writes front matter: what a candidate says of itself, as TOML. It knows no template.

The file alone says which recipe and knobs it came from and, where the language has launch plans,
how it is launched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ..languages import Language
from ..recipe import KnobValue

Value: TypeAlias = "int | float | str | Sequence[Value] | Mapping[str, Value]"
"""What stands behind `=`; a mapping becomes an inline table."""
Table = Mapping[str, Value]


@dataclass(frozen=True)
class LaunchPlan:
    """The launches of a candidate as its author writes them, expressions and all."""

    launches: Sequence[Table] = ()
    """Each with the keys of a `[[launch]]`."""
    scratch: Mapping[str, Table] = field(default_factory=dict)
    """Name → `shape` and `dtype`."""

    def mentions(self, name: str) -> bool:
        """Whether an expression of the plan has the name."""
        tables = [*self.launches, *self.scratch.values()]
        return any(re.search(rf"\b{name}\b", _toml(value)) for t in tables for value in t.values())


NO_LAUNCHES = LaunchPlan()


def front_matter(
    language: Language,
    family: str,
    recipe_knobs: Mapping[str, KnobValue],
    *,
    prepares: str = "",
    plan: LaunchPlan = NO_LAUNCHES,
    plan_knobs: Mapping[str, int] | None = None,
) -> str:
    """The head of a file with what it says of itself.

    Args:
        family: Of the recipe.
        recipe_knobs: With which the recipe is rendered.
        prepares: Bytes of what it makes of a pattern ahead of calls; empty: nothing.
        plan: The launches.
        plan_knobs: Numbers for the plan's expressions; those that it does not use are left out.
    """
    used = {name: value for name, value in (plan_knobs or {}).items() if plan.mentions(name)}
    parts = [[f"language = {_toml(language.name)}"]]
    parts += [_table("[knobs]", used)] if used else []
    parts += [_table("[prepare]", {"bytes": prepares})] if prepares else []
    parts += [_table("[[launch]]", launch) for launch in plan.launches]
    parts += [_table(f"[scratch.{name}]", each) for name, each in plan.scratch.items()]
    parts += [_table("[recipe]", {"family": family}), _table("[recipe.knobs]", recipe_knobs)]
    return language.syntax.head("\n\n".join("\n".join(part) for part in parts) + "\n")


def _table(title: str, values: Table) -> list[str]:
    return [title, *_lines(values)]


def _lines(values: Table) -> Iterable[str]:
    return (f"{name} = {_toml(value)}" for name, value in values.items())


def _toml(value: Value) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(_lines(value)) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value)
