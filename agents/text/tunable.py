# SPDX-License-Identifier: Apache-2.0
"""The space of other numbers that a source may have, and how it is written with them.

A source declares it: knobs with ranges in its front matter, or configurations of
`@triton.autotune`. What it does not declare is guessed elsewhere (constants.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ...kernelbench.languages import TRITON, language_of
from ...kernelbench.recipe import Knob, Knobs, KnobValue
from ...kernelbench.space import Space, space_of_points
from ...sandbox.plan.faults import PlanFault, PlanRefusedError
from ...sandbox.plan.source_knobs import SourceKnobs, read_source_knobs
from .autotune import ConfigList, choose_configs, find_config_lists

MOST_COMBINED = 4096
"""Of the configurations of several kernels."""
CONFIG = "config"
"""The knob of a kernel whose configurations do not name the same things."""


@dataclass(frozen=True)
class Tunable:
    """A source that may have other numbers."""

    space: Space
    now: int | None
    """The point that the source is; None: it is none of them, and chooses by itself."""
    write: Callable[[Mapping[str, KnobValue]], str]
    """The source at the knobs of a point."""

    def explain(self, knobs: Mapping[str, KnobValue]) -> str:
        """What is changed, in words."""
        before = self.space.at(self.now) if self.now is not None else {}
        moved = [
            f"{name} = {value}" + (f" instead of {before[name]}" if name in before else "")
            for name, value in knobs.items()
            if before.get(name) != value
        ]
        return ", ".join(moved)


def find_tunable(source: str, language: str) -> Tunable | None:
    """What a source declares; None where that is nothing, or nothing that could be read."""
    known = language_of(language)
    declared = read_source_knobs(source, known)
    if isinstance(declared, PlanFault):
        return None
    if declared is not None:
        return _of_knobs(declared)
    lists = find_config_lists(source) if known is TRITON else []
    return _of_configs(source, lists) if lists else None


def _of_knobs(declared: SourceKnobs) -> Tunable | None:
    tried = [knob for knob in declared.knobs if knob.tried]
    points = []
    for values in itertools.product(*(knob.tried for knob in tried)):
        point = dict(zip((knob.name for knob in tried), values, strict=True))
        try:
            declared.write(point)
        except PlanRefusedError:
            continue  # what follows from these numbers is none
        points.append(point)
    if len(points) < 2:
        return None
    knobs = [Knob(knob.name, knob.tried, "as declared") for knob in tried]
    space = space_of_points(knobs, points)
    return Tunable(space, space.find(declared.now), lambda at: declared.write(_integers(at)))


def _integers(knobs: Mapping[str, KnobValue]) -> dict[str, int]:
    return {name: int(value) for name, value in knobs.items()}


def _of_configs(source: str, lists: Sequence[ConfigList]) -> Tunable | None:
    counts = [len(each.configs) for each in lists]
    if math.prod(counts) > MOST_COMBINED:
        return None
    named = [_names(each, is_alone=len(lists) == 1) for each in lists]
    by_point: dict[tuple[tuple[str, KnobValue], ...], tuple[int, ...]] = {}
    for chosen in itertools.product(*map(range, counts)):
        point: Knobs = {}
        for names, number in zip(named, chosen, strict=True):
            point.update(names[number])
        by_point.setdefault(tuple(point.items()), chosen)
    points = [dict(point) for point in by_point]
    if len(points) < 2:
        return None
    values: dict[str, dict[KnobValue, None]] = {}
    for name, value in itertools.chain.from_iterable(by_point):
        values.setdefault(name, {})[value] = None
    knobs = [Knob(name, tuple(found), "of a configuration") for name, found in values.items()]

    def write(at: Mapping[str, KnobValue]) -> str:
        return choose_configs(source, lists, by_point[tuple(at.items())])

    return Tunable(space_of_points(knobs, points), None, write)


def _names(listed: ConfigList, *, is_alone: bool) -> list[Knobs]:
    """Each configuration as knobs: its own names where all have the same, else its number."""
    prefix = "" if is_alone else f"{listed.kernel}."
    first = listed.configs[0].values
    is_plain = bool(first) and all(c.values.keys() == first.keys() for c in listed.configs)
    if not is_plain:
        return [{f"{prefix}{CONFIG}": number} for number in range(len(listed.configs))]
    return [{f"{prefix}{n}": each.values[n] for n in first} for each in listed.configs]
