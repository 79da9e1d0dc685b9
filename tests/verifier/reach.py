"""What hidden sizes can reach along each axis of a problem, from its tensors and ranges alone."""

from __future__ import annotations

import math

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Axes, Problem
from kernelwright.kernelbench.sizes import BEYOND_16_BITS, HIDDEN_ELEMENTS

ENTRIES = "nnz"
LIGHT = HIDDEN_ELEMENTS // 5
"""Elements that are surely within every room that a hidden shape has."""
TYPICAL = 40
"""A length in the middle of the short ones."""
ALL, MOST, MANY, SOME = 64, 56, 40, 16
"""Remainders of 64 that a plan has along an axis, the less the more short axes are elements."""


def list_lengths(name: str) -> list[str]:
    """The axes that are lengths and that somebody draws."""
    ranges = registry.get(name).ranges
    return [axis for axis, kind in ranges.items() if not kind.choices and axis != ENTRIES]


def list_free(name: str) -> list[str]:
    """Those of them that are no powers of two."""
    ranges = registry.get(name).ranges
    return [axis for axis in list_lengths(name) if not ranges[axis].is_power]


def is_roomy(name: str) -> bool:
    """Whether each axis may be thousands long, beside a short one of each other."""
    problem = registry.get(name)
    short = count_elements(problem, sizes_of(problem, TYPICAL))
    return short < HIDDEN_ELEMENTS / 200 and all(
        problem.ranges[axis].most >= 1 << 15 for axis in list_lengths(name)
    )


def sizes_of(problem: Problem, length: int, **others: int) -> Axes:
    """That along every free axis, the largest of each choice, and one entry for each row."""
    ranges = problem.ranges
    axes = {a: max(kind.choices) if kind.choices else length for a, kind in ranges.items()}
    axes |= others
    # What follows from a pattern has about as many, too.
    return {name: axes.get(name, axes.get("M", length)) for name in problem.axes}


def count_elements(problem: Problem, axes: Axes) -> int:
    return sum(math.prod(tensor.extent(axes)) for tensor in problem.tensors)


def longest(name: str, axis: str) -> int:
    """How long some hidden shape is along it at least: as long as memory surely has room for beside
    others of 1, which is mostly beyond 16 bits."""
    problem = registry.get(name)
    each = count_elements(problem, sizes_of(problem, 1, **{axis: 2})) - count_elements(
        problem, sizes_of(problem, 1)
    )
    most = min(BEYOND_16_BITS, problem.ranges[axis].most, LIGHT // max(1, each))
    if "sparse" in problem.tags and axis not in ("M", "K"):
        # What stands beside a pattern beyond 16 bits is short, or it would not be small.
        most = min(most, 1 << 15)
    return most // 2


def share_tensors(name: str) -> int:
    """How many free axes the tensor has that has most."""
    free = list_free(name)
    return max(sum(axis in free for axis in t.shape) for t in registry.get(name).tensors)


def least_remainders(name: str, axis: str, least: int = 1) -> int:
    """How many remainders modulo 64 a plan has along an axis at lengths from the least on."""
    problem = registry.get(name)
    shared = share_tensors(name)
    crowded = count_elements(problem, sizes_of(problem, TYPICAL)) / HIDDEN_ELEMENTS
    # Where sizes follow from a pattern, shapes that would be too dear are thrown away.
    if any(axis not in problem.ranges for axis in problem.axes):
        return min(MANY, problem.ranges[axis].most + 1 - least)
    can = ALL if is_roomy(name) else MOST if shared < 4 else MANY
    can = can if crowded < 3 else SOME
    return min(can, problem.ranges[axis].most + 1 - least)


def shortest_pair(name: str) -> int:
    """The most elements that the two free axes with the least room have together."""
    ranges = registry.get(name).ranges
    one, other = sorted(ranges[axis].most for axis in list_free(name))[:2]
    return one * other
