# SPDX-License-Identifier: Apache-2.0
"""Which recipe of ours is nearest to a problem: an example for whoever writes its first candidate.

A problem with recipes has its own. Another one has that of the problem that its tensors are most
like, in its precision where there is one: a sparse pattern, an axis that is summed over two inputs,
or rows.
"""

from __future__ import annotations

from typing import NamedTuple

from ..policies import name_in, split_name
from ..problem import Problem
from .catalogue import recipes_for


class Example(NamedTuple):
    """A hand-written kernel, and the problem that it is for."""

    problem: str
    family: str
    source: str


def find_example(problem: Problem, language: str) -> Example | None:
    """The first recipe of the nearest problem with its usual knobs; None: not in this language."""
    nearest, (_, policy) = _nearest(problem), split_name(problem.name)
    in_policy = [name_in(nearest, policy.name)] if policy else []
    for name in (problem.name, *in_policy, nearest):
        for recipe in recipes_for(name, language)[:1]:
            return Example(name, recipe.family, recipe.render(recipe.first_knobs()))
    return None


def _nearest(problem: Problem) -> str:
    if any(tensor.is_index for tensor in problem.inputs):
        is_vector = all(len(tensor.shape) == 1 for tensor in problem.inputs)
        return "spmv_csr" if is_vector else "spmm_csr"
    return "gemm" if _contracts(problem) else "softmax"


def _contracts(problem: Problem) -> bool:
    """Whether two inputs share an axis that no output has: a product sums over it."""
    kept = {axis for tensor in problem.outputs for axis in tensor.shape}
    matrices = [set(tensor.shape) - kept for tensor in problem.inputs if len(tensor.shape) > 1]
    return any(one & other for at, one in enumerate(matrices) for other in matrices[:at])
