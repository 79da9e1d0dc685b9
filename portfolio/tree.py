# SPDX-License-Identifier: Apache-2.0
"""A small decision tree that names a candidate for each workload, grown to leave little regret.

What is added up is the logarithm of the chosen candidate's time over the best one's. Every
threshold of every feature is tried; the leaf whose split helps most is split next. A growing tree
looks one split ahead, so that what only two splits together would show is not found.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

LEAST_ROWS = 4
"""Workloads of a leaf."""
LEAST_GROUPS = 2
"""Patterns of a leaf: what a single one shows is no rule."""
_SAME = 1e-9


@dataclass(frozen=True)
class Leaf:
    """Names the candidate."""

    candidate: str


@dataclass(frozen=True)
class Split:
    """Goes to `low` where the feature is at most the threshold, else to `high`."""

    feature: str
    threshold: float
    low: Node
    high: Node


Node = Leaf | Split


class Cut(NamedTuple):
    """The best split of some workloads."""

    gain: float
    """Regret that it takes away, summed over them."""
    feature: int
    threshold: float


@dataclass
class Growing:
    """A leaf of a tree that grows, with the workloads in it."""

    rows: np.ndarray
    candidate: int
    cut: Cut
    feature: int = -1
    threshold: float = 0.0
    children: tuple[Growing, Growing] | None = None


@dataclass(frozen=True)
class Ground:
    """What a tree grows on."""

    features: tuple[str, ...]
    values: np.ndarray
    """[workload, feature]"""
    regret: np.ndarray
    """[workload, candidate]"""
    candidates: tuple[str, ...]
    groups: tuple[str, ...]

    def grow(self, most: int) -> Iterator[Node]:
        """Trees of 1, 2, 3 … leaves, at most so many, each with one split more than the one before;
        ends where no split helps.
        """
        root = self._leaf(np.arange(len(self.values)))
        leaves = [root]
        yield self._freeze(root)
        while len(leaves) < most:
            best = max(leaves, key=lambda leaf: leaf.cut.gain)
            if best.cut.gain <= _SAME:
                return
            is_low = self.values[best.rows, best.cut.feature] <= best.cut.threshold
            best.feature, best.threshold = best.cut.feature, best.cut.threshold
            best.children = (self._leaf(best.rows[is_low]), self._leaf(best.rows[~is_low]))
            leaves = [leaf for leaf in leaves if leaf is not best] + list(best.children)
            yield self._freeze(root)

    def _leaf(self, rows: np.ndarray) -> Growing:
        candidate = int(self.regret[rows].sum(axis=0).argmin())
        return Growing(rows, candidate, self._cut(rows))

    def _cut(self, rows: np.ndarray) -> Cut:
        """The best split; its gain is 0 where none is allowed."""
        whole = self.regret[rows].sum(axis=0).min()
        best = Cut(0.0, -1, 0.0)
        for feature in range(len(self.features)):
            order = rows[np.argsort(self.values[rows, feature], kind="stable")]
            values = self.values[order, feature]
            low = np.cumsum(self.regret[order], axis=0)
            gains = whole - low[:-1].min(axis=1) - (low[-1] - low[:-1]).min(axis=1)
            for at in np.argsort(-gains):
                if gains[at] <= best.gain + _SAME:
                    break
                if values[at] < values[at + 1] and self._is_allowed(order, int(at) + 1):
                    threshold = round_between(float(values[at]), float(values[at + 1]))
                    best = Cut(float(gains[at]), feature, threshold)
                    break
        return best

    def _is_allowed(self, order: np.ndarray, low: int) -> bool:
        return all(
            len(side) >= LEAST_ROWS and len({self.groups[row] for row in side}) >= LEAST_GROUPS
            for side in (order[:low], order[low:])
        )

    def _freeze(self, node: Growing) -> Node:
        if node.children is None:
            return Leaf(self.candidates[node.candidate])
        low, high = map(self._freeze, node.children)
        return Split(self.features[node.feature], node.threshold, low, high)


def round_between(low: float, high: float) -> float:
    """A number from `low` up to, not including, `high` with as few digits as lie between them."""
    middle = math.sqrt(low * high) if low > 0 else (low + high) / 2
    for digits in range(1, 17):
        rounded = float(f"{middle:.{digits}g}")
        if low <= rounded < high:
            return rounded
    return low


def choose(tree: Node, features: Mapping[str, float]) -> str:
    """The candidate for a workload with these features."""
    while isinstance(tree, Split):
        tree = tree.low if features[tree.feature] <= tree.threshold else tree.high
    return tree.candidate


def list_leaves(tree: Node) -> list[Leaf]:
    """From the low side to the high one; a candidate may stand in several."""
    return [tree] if isinstance(tree, Leaf) else list_leaves(tree.low) + list_leaves(tree.high)


def list_splits(tree: Node) -> list[Split]:
    """Every split, the first one first."""
    if isinstance(tree, Leaf):
        return []
    return [tree, *list_splits(tree.low), *list_splits(tree.high)]


def tell_tree(tree: Node, conditions: Sequence[str] = ()) -> Iterator[str]:
    """A line for each leaf: `N <= 8 and M > 500: narrow`."""
    if isinstance(tree, Leaf):
        yield f"{' and '.join(conditions) or 'always'}: {tree.candidate}"
        return
    test = f"{tree.feature} {{}} {tree.threshold:.15g}"
    yield from tell_tree(tree.low, [*conditions, test.format("<=")])
    yield from tell_tree(tree.high, [*conditions, test.format(">")])
