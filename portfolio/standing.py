# SPDX-License-Identifier: Apache-2.0
"""How far from the best of each workload: one candidate for all, a stated rule, what was learned.

A share of the oracle is the geometric mean of the best one's time over the chosen one's.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import UsageError
from .declared import Feature
from .learning import Learner, mean_by_group
from .times import SURE, Table
from .tree import Leaf, Split, list_leaves

ORACLE, LEARNED, RULE, FIXED = "oracle", "learned", "rule", "fixed best"
_RULE = re.compile(r"(.+?)\s*<=\s*([0-9.eE+-]+)")


@dataclass(frozen=True)
class Line:
    """One way of choosing."""

    name: str
    chooses: str
    """What it takes, in words."""
    share: float
    """Of the oracle's speed, from 0 to 1."""
    low: float
    high: float
    """Ends of the 95 % interval of `share`, over patterns."""
    worst: float
    """The share on the workload where it is furthest away."""


@dataclass(frozen=True)
class Standing:
    """The four ways beside each other, and each candidate alone."""

    ways: tuple[Line, ...]
    """Fixed best, rule (where one was stated), learned, oracle."""
    singles: tuple[Line, ...]
    """Each candidate for all workloads, the best first."""
    lead: tuple[float, float, float]
    """How many times as fast learned is as the fixed best: the mean and the ends of its 95 %
    interval over patterns."""

    def way(self, name: str) -> Line:
        """The way of that name. Raises StopIteration where there is none."""
        return next(line for line in self.ways if line.name == name)


def hold_beside(table: Table, learner: Learner, rule: str = "") -> Standing:
    """What each way of choosing is worth on the workloads of a table.

    The fixed best and the rule's candidates are the best ones on these very workloads; what is
    learned was learned without the workload's pattern.

    Args:
        rule: Such as `N <= 8`; empty: none is stated.

    Raises:
        UsageError: the rule cannot be read, names no feature, or one side of it is empty.
    """
    regret = table.regret
    singles = sorted(
        (_line(name, "", regret[:, number], table) for number, name in enumerate(table.candidates)),
        key=lambda line: -line.share,
    )
    fixed = regret[:, table.candidates.index(singles[0].name)]
    learned = learner.predict(table)
    ways = [_line(FIXED, singles[0].name, fixed, table)]
    if rule:
        tree = fill_rule(rule, table, learner.features)
        low, high = list_leaves(tree)
        told = f"{rule}: {low.candidate}, else {high.candidate}"
        ways.append(_line(RULE, told, learner.regret_of(tree, table), table))
    ways.append(_line(LEARNED, "a tree, on patterns that it did not see", learned, table))
    ways.append(_line(ORACLE, "the best one of each", np.zeros(len(regret)), table))
    mean, error = _estimate(fixed - learned, table)
    lead = tuple(math.exp(mean + side * SURE * error) for side in (0, -1, 1))
    return Standing(tuple(ways), tuple(singles), (lead[0], lead[1], lead[2]))


def fill_rule(rule: str, table: Table, features: Sequence[Feature]) -> Split:
    """A rule with the candidate that is best on each side of it. Raises UsageError."""
    known = {each.name: each for each in features}
    found = _RULE.fullmatch(rule.strip())
    if not found or found[1] not in known:
        raise UsageError(
            f"the rule '{rule}' cannot be read", hint=f"FEATURE <= NUMBER, of {', '.join(known)}"
        )
    try:
        threshold = float(found[2])
    except ValueError as error:
        raise UsageError(f"the rule '{rule}': {found[2]} is no number") from error
    is_low = np.array([known[found[1]].value(facts) <= threshold for facts in table.facts])
    if is_low.all() or not is_low.any():
        raise UsageError(
            f"the rule '{rule}' divides nothing: all workloads are on one side of it",
            hint="state another number",
        )
    sides = [int(table.cost[side].sum(axis=0).argmin()) for side in (is_low, ~is_low)]
    low, high = (Leaf(table.candidates[side]) for side in sides)
    return Split(found[1], threshold, low, high)


def _line(name: str, chooses: str, regret: np.ndarray, table: Table) -> Line:
    mean, error = _estimate(regret, table)
    low, high = (math.exp(-(mean + side * SURE * error)) for side in (1, -1))
    worst = math.exp(-float(regret.max()))
    return Line(name, chooses, math.exp(-mean), low, min(high, 1.0), worst)


def _estimate(regret: np.ndarray, table: Table) -> tuple[float, float]:
    """The weighted mean over workloads, and its standard error from one pattern to the next."""
    cost = regret * table.weights
    means = mean_by_group(cost, table.groups)
    error = float(means.std(ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else 0.0
    return float(cost.mean()), error
