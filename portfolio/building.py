# SPDX-License-Identifier: Apache-2.0
"""From a record to one kernel: learned, each of its parts confirmed, written as one source.

What is handed on is a plain document beside that source, so that it can be read, and learned again,
without measuring.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

from ..kernelbench.problem import Problem, Workload
from ..traces.records import Depth, Verdict, candidate_id
from ..traces.schemas import Document, Dumped
from ..verifier.request import Order
from .declared import declare_features
from .dispatcher import write_dispatcher
from .learning import MOST_LEAVES, Learner
from .measuring import Contender, OpenReferee, join_plain
from .standing import Line, Standing, hold_beside
from .times import LeftOut, Seen, Table, make_table
from .tree import Leaf, Node, choose, list_leaves, tell_tree

SCHEMA_VERSION = 1


class LeafShape(Document):
    """Where the tree has decided."""

    candidate: str


class NodeShape(Document):
    """A question of the tree; `low` is for what is `at_most` that."""

    feature: str
    at_most: float
    low: LeafShape | NodeShape
    high: LeafShape | NodeShape


class PortfolioDocument(Document):
    """What was learned, as JSON has it."""

    schema_version: int
    problem: str
    workloads: int
    patterns: int
    tree: LeafShape | NodeShape
    leaves: list[str]
    """In words."""
    kernels: dict[str, str]
    """By name the id of the candidate."""
    confirmed_on: dict[str, str]
    """By name a workload that the tree gives to it."""
    ways: list[Annotated[dict[str, Any], Dumped(Line)]]
    """Fixed best, rule (where one was stated), learned, oracle."""
    singles: list[Annotated[dict[str, Any], Dumped(Line)]]
    learned_over_fixed: list[float]
    """The mean and the ends of its 95 % interval."""
    left_out: Annotated[dict[str, Any], Dumped(LeftOut)]


@dataclass(frozen=True)
class Portfolio:
    """What was learned for a problem, and what it rests on."""

    problem: Problem
    table: Table
    left_out: LeftOut
    learner: Learner
    tree: Node
    standing: Standing
    """Of the four ways; what stands there as learned is of trees that were grown without the
    workload's pattern, and not of `tree`, which saw all."""

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates that the tree names, each once."""
        return tuple(dict.fromkeys(leaf.candidate for leaf in list_leaves(self.tree)))

    def source(self, sources: Mapping[str, str]) -> str:
        """The dispatcher. Raises UsageError where a kernel cannot be part of one."""
        return write_dispatcher(self.problem, self.tree, self.learner.features, sources)

    def representatives(self) -> dict[str, str]:
        """By candidate a workload that the tree gives to it: of these the one in the middle by
        time. A candidate that no workload is given to has none; a grown tree has no such."""
        held: dict[str, list[tuple[float, str]]] = {}
        for row, (name, facts) in enumerate(
            zip(self.table.workloads, self.table.facts, strict=True)
        ):
            chosen = choose(self.tree, self.learner.values_of(facts))
            time = float(self.table.us[row, self.table.candidates.index(chosen)])
            held.setdefault(chosen, []).append((time, name))
        return {name: sorted(held[name])[len(held[name]) // 2][1] for name in self.names}

    def document(self, sources: Mapping[str, str]) -> PortfolioDocument:
        """All of it as JSON has it."""
        return {
            "schema_version": SCHEMA_VERSION,
            "problem": self.problem.name,
            "workloads": len(self.table.workloads),
            "patterns": len(set(self.table.groups)),
            "tree": _tree_document(self.tree),
            "leaves": list(tell_tree(self.tree)),
            "kernels": {name: candidate_id(sources[name]) for name in self.names},
            "confirmed_on": self.representatives(),
            "ways": [vars(line) for line in self.standing.ways],
            "singles": [vars(line) for line in self.standing.singles],
            "learned_over_fixed": list(self.standing.lead),
            "left_out": vars(self.left_out),
        }


def _tree_document(tree: Node) -> LeafShape | NodeShape:
    if isinstance(tree, Leaf):
        return {"candidate": tree.candidate}
    return {
        "feature": tree.feature,
        "at_most": tree.threshold,
        "low": _tree_document(tree.low),
        "high": _tree_document(tree.high),
    }


def learn_portfolio(
    problem: Problem, seen: Iterable[Seen], *, leaves: int = MOST_LEAVES, rule: str = ""
) -> Portfolio:
    """Learns from a record.

    Args:
        leaves: Of the tree, at most.
        rule: To hold it beside, such as `N <= 8`; empty: none is stated.

    Raises:
        UsageError: too little was seen, or the rule says nothing.
    """
    table, left_out = make_table(seen)
    learner = Learner(declare_features(problem), leaves)
    standing = hold_beside(table, learner, rule)
    return Portfolio(problem, table, left_out, learner, learner.learn(table), standing)


class Confirmed(NamedTuple):
    """One kernel of a portfolio, confirmed on a workload that is given to it."""

    name: str
    workload: str
    verdict: Verdict


def confirm(
    portfolio: Portfolio,
    workloads: Mapping[str, Workload],
    contenders: Mapping[str, Contender],
    open_referee: OpenReferee,
) -> Iterator[Confirmed]:
    """Judges each kernel of the tree in full, on the workload that stands for what it gets.

    Args:
        workloads: By name; those of `representatives` at least.
    """
    for name, on in portfolio.representatives().items():
        kernel = contenders[name]
        order = Order(source=kernel.source, language=kernel.language, protocol=Depth.CONFIRM)
        with open_referee(workloads[on]) as referee:
            referee.prepare()
            yield Confirmed(name, on, referee.evaluate(order))


def join_representatives(portfolio: Portfolio, workloads: Mapping[str, Workload]) -> Workload:
    """What the dispatcher is judged on: a workload for each of its kernels, all together."""
    chosen = portfolio.representatives().values()
    return join_plain([workloads[name] for name in dict.fromkeys(chosen)], "portfolio")
