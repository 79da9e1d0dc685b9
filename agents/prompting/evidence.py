# SPDX-License-Identifier: Apache-2.0
"""What the offline Judge's rules read and say: the metrics of one candidate, and a finding."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from ...kernelbench.recipe import Knob, KnobValue, Recipe
from ..roles import Member, Situation

Hints = dict[str, JsonValue]


@dataclass(frozen=True)
class RuleFinding:
    """What a rule says when it applies."""

    bottleneck: str
    change: str
    rests_on: dict[str, float]
    hints: Hints


class Evidence:
    """The metrics of one passed member, under the names that Advice cites."""

    def __init__(self, member: Member, situation: Situation, recipes: dict[str, Recipe]) -> None:
        self.member = member
        self.recipe = recipes.get(member.family)
        self.recipes = recipes
        self.facts = situation.facts
        self.figures = figures_of(member)

    def cite(self, *names: str) -> dict[str, float]:
        """Those of the named figures that are known."""
        return {name: self.figures[name] for name in names if name in self.figures}

    def is_below(self, name: str, limit: float) -> bool:
        """Whether the figure is known and below the limit."""
        return name in self.figures and self.figures[name] < limit

    def is_above(self, name: str, limit: float) -> bool:
        """Whether the figure is known and above the limit."""
        return name in self.figures and self.figures[name] > limit

    def list_others(self, *knobs: str) -> Hints:
        """The values not in use of those of the knobs that the member's recipe has."""
        return {knob.name: list(self._list_unused(knob)) for knob in self._knobs(knobs)}

    def changed_to(self, knob: str, *values: KnobValue) -> Hints:
        """Those of the values that the knob of the member's recipe has and that are not in use."""
        usable = [v for k in self._knobs([knob]) for v in self._list_unused(k) if v in values]
        return {knob: list(usable)} if usable else {}

    def fewer_threads(self) -> Hints:
        """The positive numbers of threads below the one in use, 0 being all of them."""
        now = int(self.member.knobs.get("threads", 0)) or math.inf
        values = [v for k in self._knobs(["threads"]) for v in k.values if 0 < int(v) < now]
        return {"threads": list(values)} if values else {}

    def list_larger(self, *knobs: str) -> Hints:
        """The values after the one in use; in a recipe's natural order they are the larger ones."""
        hints: Hints = {}
        for knob in self._knobs(knobs):
            value = self.member.knobs.get(knob.name)
            after = knob.values[knob.values.index(value) + 1 :] if value in knob.values else ()
            if after:
                hints[knob.name] = list(after)
        return hints

    def list_smaller(self, *knobs: str) -> Hints:
        """The values before the one in use; in a recipe's natural order the smaller ones."""
        hints: Hints = {}
        for knob in self._knobs(knobs):
            value = self.member.knobs.get(knob.name)
            before = knob.values[: knob.values.index(value)] if value in knob.values else ()
            if before:
                hints[knob.name] = list(before)
        return hints

    def list_neighbours(self) -> Hints:
        """The values beside the one in use, of every knob."""
        knobs = self.recipe.knobs if self.recipe else ()
        hints: Hints = {}
        for knob in knobs:
            value = self.member.knobs.get(knob.name)
            if value in knob.values:
                at = knob.values.index(value)
                hints[knob.name] = [
                    *knob.values[max(0, at - 1) : at],
                    *knob.values[at + 1 : at + 2],
                ]
        return {name: values for name, values in hints.items() if values}

    def family_with(self, part: str) -> str | None:
        """Another family whose name has the part, if there is one."""
        others = (f for f in self.recipes if part in f and f != self.member.family)
        return next(others, None)

    def _knobs(self, names: Sequence[str]) -> list[Knob]:
        knobs = self.recipe.knobs if self.recipe else ()
        return [knob for knob in knobs if knob.name in names and len(self._list_unused(knob))]

    def _list_unused(self, knob: Knob) -> tuple[KnobValue, ...]:
        return tuple(v for v in knob.values if v != self.member.knobs.get(knob.name))


Rule = Callable[[Evidence], RuleFinding | None]


def figures_of(member: Member) -> dict[str, float]:
    """Every figure that is known of a member, by the names that a Judge may cite."""
    profile, measurement = member.verdict.profile, member.verdict.measurement
    figures = {metric.name: metric.value for metric in profile.metrics} if profile else {}
    if measurement is None:
        return figures
    if measurement.roofline is not None:
        figures["roofline"] = measurement.roofline
        figures["roofline_floor_us"] = measurement.floor_us
    latency_us = measurement.candidate.median_us
    figures["latency_us"] = latency_us
    if measurement.cpu_us is not None:
        figures["cpu_time_us"] = measurement.cpu_us
    if measurement.cpu_us is not None and latency_us > 0 and "cpu_utilisation" not in figures:
        figures["cpu_utilisation"] = measurement.cpu_us / (latency_us * measurement.threads)
    return figures
