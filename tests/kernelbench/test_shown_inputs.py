"""Values that stand for every remainder show it where a part of any input is left out."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Arrays, Expected, Family, Problem, Structure
from kernelwright.tests.sampling import at_most
from kernelwright.verifier.truth.trials import SHOWING

Gates = Callable[[Problem, Arrays, dict[str, Expected], Family], list[str]]
SHAPES = 8
LEAST = 0.6
"""Of what is seen on normal values: products with a zero hide what stands beside it, and the mean
of exact values is 0 where it would be rounded."""


def telling(problem: Problem) -> Iterator[Structure]:
    rng = np.random.default_rng(9)
    target = problem.structure(problem.workload("tiny"))
    return itertools.islice(
        (each for each in problem.variations(target, rng, None) if each.is_telling), SHAPES
    )


def lacks(inputs: Arrays, name: str, axis: int) -> Arrays:
    """The inputs without the last of one of them along an axis."""
    array = inputs[name].copy()
    np.moveaxis(array, axis, 0)[-1] = 0
    return {**inputs, name: array}


@pytest.mark.parametrize("name", at_most(14, registry.names()))
def test_a_family_that_shows_remainders_shows_each_input(name: str, gates: Gates) -> None:
    problem, rng = registry.get(name), np.random.default_rng(10)
    families = [family for family in problem.families if family in SHOWING]
    seen: dict[tuple[str, int], dict[Family, int]] = {}
    for structure in telling(problem):
        for family in [*families, Family.NORMAL]:
            inputs = problem.values(structure, family, rng)
            truth = problem.oracle(structure, inputs)
            for tensor in [key for key, array in inputs.items() if array.dtype.kind == "f"]:
                for axis in range(inputs[tensor].ndim):
                    without = problem.oracle(structure, lacks(inputs, tensor, axis))
                    given = {key: found.value.astype(np.float32) for key, found in without.items()}
                    counts = seen.setdefault((tensor, axis), dict.fromkeys(families, 0))
                    counts.setdefault(Family.NORMAL, 0)
                    counts[family] += bool(gates(problem, given, truth, family))
    for (tensor, axis), counts in seen.items():
        best = max(counts[family] for family in families)
        assert best >= LEAST * counts[Family.NORMAL], (tensor, axis, counts)
