# SPDX-License-Identifier: Apache-2.0
"""What a dispatcher may look at before it calls a kernel: declared features, each with its cost.

A caller has the axes for nothing, and what is computed from a few of them. The statistics of the
rows take a pass over the row pointers: they can be learned from, to see what that would bring, and
no dispatcher is written with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..kernelbench.problem import Problem
from ..kernelbench.sparse import INDPTR, OWN_AXES

OF_ROWS = ("max_row", "cv_row", "empty_share")
"""Statistics of kernelbench/features.py that take a pass over the row pointers."""


@dataclass(frozen=True)
class Feature:
    """One number that says something of a workload."""

    name: str
    meaning: str
    value: Callable[[Mapping[str, float]], float]
    """From the facts of a workload, in float64."""
    cpp: str = ""
    """The same from the axes as C++, a double; empty: it takes a pass over the rows."""

    @property
    def is_free(self) -> bool:
        """Whether a caller has it without a pass over the data."""
        return bool(self.cpp)


def declare_features(problem: Problem, *, with_rows: bool = False) -> tuple[Feature, ...]:
    """The features of a problem: its axes, the mean row of a pattern, the work; those of rows."""
    found = [_of_axis(axis, meaning) for axis, meaning in problem.axes.items()]
    is_sparse = any(tensor.name == INDPTR.name for tensor in problem.tensors)
    open_axes = [a for a in problem.default_workload.axes if a not in OWN_AXES]
    factors = ["nnz", *open_axes] if is_sparse else list(problem.axes)
    if is_sparse:
        found.append(_MEAN_ROW)
    if len(factors) > 1:
        found.append(_multiply(factors))
    return (*found, *map(_of_rows, OF_ROWS)) if is_sparse and with_rows else tuple(found)


def _of_axis(axis: str, meaning: str) -> Feature:
    return Feature(axis, meaning, lambda facts: float(facts[axis]), f"double({axis})")


_MEAN_ROW = Feature(
    "nnz / M",
    "entries of a row in the mean",
    lambda facts: facts["nnz"] / facts["M"] if facts["M"] else 0.0,
    "(M ? double(nnz) / M : 0.0)",
)


def _multiply(axes: list[str]) -> Feature:
    def value(facts: Mapping[str, float]) -> float:
        product = 1.0
        for axis in axes:
            product *= facts[axis]
        return product

    told = " * ".join(axes)
    return Feature(told, "how much there is to do", value, " * ".join(["1.0", *axes]))


def _of_rows(name: str) -> Feature:
    return Feature(name, "of the lengths of the rows", lambda facts: float(facts[name]))
