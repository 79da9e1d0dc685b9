# SPDX-License-Identifier: Apache-2.0
"""Learns a dispatcher from a table, and what it is worth on matrices that it never saw.

A fold leaves out whole groups: all workloads of a pattern together. What is reported was learned
without the workload's group, choice of candidates and of the tree's size included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .declared import Feature
from .select import choose_together
from .times import FACTS, Table
from .tree import Ground, Node, choose

MOST_LEAVES = 6
FOLDS = 10
SEED = 20_261


@dataclass(frozen=True)
class Learner:
    """How a dispatcher is learned: from what, and how large it may become."""

    features: tuple[Feature, ...]
    leaves: int = MOST_LEAVES
    folds: int = FOLDS

    def learn(self, table: Table) -> Node:
        """The smallest tree that is within one standard error of the best one on held-out groups.

        The error is that of the difference between the two, group by group.
        """
        folds = split_folds(table.groups, self.folds)
        grown = self._grow(table)
        if len(folds) < 2 or len(grown) == 1:
            return grown[0]
        found = np.empty((len(table.workloads), len(grown)))
        for held in folds:
            trees = self._grow(table.of(_others(table, held)))
            for size in range(len(grown)):
                tree = trees[min(size, len(trees) - 1)]
                found[held, size] = self.cost_of(tree, table, held)
        means = mean_by_group(found, table.groups)
        best = int(means.mean(axis=0).argmin())
        worse = means - means[:, [best]]
        error = worse.std(axis=0, ddof=1) / np.sqrt(len(means))
        return grown[int(np.argmax(worse.mean(axis=0) <= error))]

    def predict(self, table: Table) -> np.ndarray:
        """[workload] regret of what was learned without the workload's group.

        A single group cannot be held out; its regret is that of one candidate, drawn from itself.
        """
        found = np.empty(len(table.workloads))
        folds = split_folds(table.groups, self.folds)
        for held in folds:
            known = _others(table, held) if len(folds) > 1 else held
            found[held] = self.regret_of(self.learn(table.of(known)), table.of(held))
        return found

    def regret_of(self, tree: Node, table: Table) -> np.ndarray:
        """[workload] regret where the tree chooses."""
        index = {name: number for number, name in enumerate(table.candidates)}
        chosen = [index[choose(tree, self.values_of(facts))] for facts in table.facts]
        return np.asarray(table.regret[np.arange(len(chosen)), chosen])

    def cost_of(self, tree: Node, table: Table, rows: np.ndarray) -> np.ndarray:
        """[row] regret of these workloads as they count in the whole table."""
        return np.asarray(self.regret_of(tree, table.of(rows)) * table.weights[rows])

    def values_of(self, facts: FACTS) -> dict[str, float]:
        """The features of a workload by name."""
        return {each.name: each.value(facts) for each in self.features}

    def _grow(self, table: Table) -> list[Node]:
        chosen = choose_together(table.cost, self.leaves)
        values = [[each.value(facts) for each in self.features] for facts in table.facts]
        ground = Ground(
            tuple(each.name for each in self.features),
            np.array(values, dtype=np.float64),
            table.cost[:, chosen],
            tuple(table.candidates[number] for number in chosen),
            table.groups,
        )
        return list(ground.grow(self.leaves))


def split_folds(groups: Sequence[str], folds: int) -> list[np.ndarray]:
    """The rows of each fold; a group's rows are in one fold. Fewer folds where groups are few."""
    names = sorted(set(groups))
    order = np.random.default_rng(SEED).permutation(len(names))
    fold_of = {names[at]: number % folds for number, at in enumerate(order)}
    own = np.array([fold_of[group] for group in groups])
    return [np.flatnonzero(own == number) for number in range(min(folds, len(names)))]


def _others(table: Table, held: np.ndarray) -> np.ndarray:
    return np.setdiff1d(np.arange(len(table.workloads)), held)


def mean_by_group(values: np.ndarray, groups: Sequence[str]) -> np.ndarray:
    """[group, …] means over the workloads of each group."""
    of = np.array(groups)
    return np.array([values[of == name].mean(axis=0) for name in dict.fromkeys(groups)])
