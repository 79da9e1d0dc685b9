"""Trees and selections on tables whose answer is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.portfolio import learning
from kernelwright.portfolio.learning import split_folds
from kernelwright.portfolio.select import choose_together
from kernelwright.portfolio.standing import FIXED, LEARNED, ORACLE, RULE, fill_rule, hold_beside
from kernelwright.portfolio.times import FACTS, Table
from kernelwright.portfolio.tree import (
    Ground,
    Leaf,
    Split,
    choose,
    list_leaves,
    list_splits,
    round_between,
    tell_tree,
)
from kernelwright.tests.portfolio.planted import CANDIDATES, FEATURES, learner, planted


def two_splits(facts: FACTS) -> str:
    if facts["N"] <= 8:
        return "b"
    return "c" if facts["nnz"] / facts["M"] > 10 else "a"


def test_a_planted_rule_is_found() -> None:
    table = planted(two_splits)
    tree = learner().learn(table)
    assert {split.feature for split in list_splits(tree)} == {"N", "nnz / M"}
    assert len(list_leaves(tree)) == 3
    assert isinstance(tree, Split)
    assert tree.feature == "N"
    assert 8 <= tree.threshold < 32
    assert tree.low == Leaf("b")
    chosen = [choose(tree, learner().values_of(facts)) for facts in table.facts]
    right = [two_splits(facts) == name for facts, name in zip(table.facts, chosen, strict=True)]
    assert sum(right) >= 0.97 * len(right)


def test_on_matrices_that_it_never_saw_it_is_as_good() -> None:
    table, fresh = planted(two_splits), planted(two_splits, seed=1)
    tree = learner().learn(table)
    on_fresh = learner().regret_of(tree, fresh).mean()
    assert on_fresh < 0.05 < fresh.regret.mean(axis=0).min()
    assert learner().predict(table).mean() == pytest.approx(on_fresh, abs=0.03)


def test_without_a_rule_there_is_one_leaf() -> None:
    for seed in range(5):
        table = planted(lambda _: "c", noise=0.1, seed=seed)
        assert learner().learn(table) == Leaf("c")


def test_of_noise_alone_few_trees_grow_and_none_far() -> None:
    """Grown to the end each would have six leaves."""
    tables = [planted(lambda _: "nobody", noise=0.2, seed=seed) for seed in range(9)]
    sizes = []
    for table in tables:
        values = np.array([[each.value(facts) for each in FEATURES] for facts in table.facts])
        names = tuple(each.name for each in FEATURES)
        ground = Ground(names, values, table.regret, CANDIDATES, table.groups)
        assert len(list_leaves(list(ground.grow(6))[-1])) == 6
        sizes.append(len(list_leaves(learner().learn(table))))
    assert sizes.count(1) > len(sizes) / 2
    assert max(sizes) <= 3


def test_a_useless_feature_is_not_used() -> None:
    table = planted(lambda facts: "a" if facts["N"] <= 8 else "b")
    tree = learner().learn(table)
    assert {split.feature for split in list_splits(tree)} == {"N"}


def test_a_fold_holds_whole_matrices() -> None:
    table = planted(two_splits, matrices=23)
    folds = split_folds(table.groups, 10)
    assert sorted(row for fold in folds for row in fold) == list(range(len(table.workloads)))
    held = [{table.groups[row] for row in fold} for fold in folds]
    assert len(held) == 10
    assert sum(map(len, held)) == len(set(table.groups))


def test_what_is_predicted_for_a_matrix_does_not_rest_on_its_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every table that is learned from lacks the patterns that are predicted with it."""
    table = planted(two_splits, matrices=12)
    seen: list[tuple[set[str], set[str]]] = []
    learn, price = learning.Learner.learn, learning.Learner.regret_of
    depth = 0

    def watch(self: learning.Learner, known: Table) -> object:
        nonlocal depth
        depth += 1
        seen.append((set(known.groups), set()))
        tree = learn(self, known)
        depth -= 1
        return tree

    def note(self: learning.Learner, tree: object, held: Table) -> np.ndarray:
        if not depth:
            seen[-1][1].update(held.groups)
        return price(self, tree, held)  # type: ignore[arg-type]

    monkeypatch.setattr(learning.Learner, "learn", watch)
    monkeypatch.setattr(learning.Learner, "regret_of", note)
    learner().predict(table)
    assert seen
    assert all(known and held and not known & held for known, held in seen)
    assert set().union(*(held for _, held in seen)) == set(table.groups)


def test_a_name_for_each_matrix_does_not_help_on_others() -> None:
    """Who is best is drawn for each pattern: learnt by heart, that is worth nothing elsewhere."""
    rng = np.random.default_rng(3)
    drawn: dict[float, str] = {}
    table = planted(lambda f: drawn.setdefault(f["M"], str(rng.choice(["a", "b"]))), noise=0.01)
    standing = hold_beside(table, learner())
    assert standing.way(LEARNED).share < standing.way(FIXED).share + 0.02


def test_those_that_help_together_are_chosen() -> None:
    # `a` is never best and good everywhere; `b` and `c` share the workloads.
    regret = np.array([[0.1, 0.0, 1.0], [0.1, 0.0, 1.0], [0.1, 1.0, 0.0], [0.1, 1.0, 0.0]])
    assert choose_together(regret, 1) == [0]
    assert set(choose_together(regret, 3)) == {0, 1, 2}
    assert choose_together(np.zeros((3, 4)), 4) == [0]


def test_a_leaf_is_no_single_matrix() -> None:
    table = planted(two_splits, matrices=6)
    most = max(facts["M"] for facts in table.facts)
    only = planted(lambda facts: "a" if facts["M"] < most else "b", matrices=6)
    values = np.array([[facts["M"]] for facts in only.facts])
    ground = Ground(("M",), values, only.regret, CANDIDATES, only.groups)
    by_size = list(ground.grow(2))[-1]
    assert isinstance(by_size, Split)
    above = {facts["M"] for facts in only.facts if facts["M"] > by_size.threshold}
    assert len(above) >= 2


def test_the_four_ways_stand_in_order() -> None:
    standing = hold_beside(planted(two_splits), learner(), "N <= 8")
    fixed, rule, learned, oracle = (standing.way(name) for name in (FIXED, RULE, LEARNED, ORACLE))
    assert fixed.share < rule.share < learned.share <= oracle.share == 1.0
    assert fixed.share == standing.singles[0].share
    assert rule.chooses.startswith("N <= 8: b, else ")
    assert standing.lead[1] > 1.0
    assert learned.low <= learned.share <= learned.high
    # A third of the workloads or more are 1.5 times as slow with any single one.
    assert fixed.share < math.exp(-math.log(1.5) / 3)


@pytest.mark.parametrize("rule", ["N", "N < 8", "rows <= 8", "N <= 8 8", "N <= 1e9", "N <= 1e"])
def test_a_rule_that_says_nothing_is_refused(rule: str) -> None:
    with pytest.raises(UsageError):
        fill_rule(rule, planted(two_splits), FEATURES)


@pytest.mark.parametrize(
    ("low", "high"), [(8, 32), (7.0, 7.0000001), (0.0, 1.0), (123456, 123457), (0.1, 0.3)]
)
def test_a_threshold_lies_between(low: float, high: float) -> None:
    assert low <= round_between(low, high) < high


def test_a_tree_is_told_leaf_by_leaf() -> None:
    tree = Split("N", 8.0, Leaf("b"), Split("M", 1.5, Leaf("a"), Leaf("c")))
    assert list(tell_tree(tree)) == [
        "N <= 8: b",
        "N > 8 and M <= 1.5: a",
        "N > 8 and M > 1.5: c",
    ]
    assert list(tell_tree(Leaf("a"))) == ["always: a"]


def test_what_counts_more_decides() -> None:
    """Half of the workloads want `a`; where the others count ten times, the winner is theirs."""
    table = planted(lambda facts: "a" if facts["N"] <= 8 else "b", noise=0.01)
    wide = np.array([facts["N"] > 8 for facts in table.facts])
    for heavy, wanted in ((wide, "b"), (~wide, "a")):
        weights = np.where(heavy, 10.0, 1.0)
        counted = replace(table, weights=weights / weights.mean())
        standing = hold_beside(counted, learner())
        assert standing.way(FIXED).chooses == wanted
        # The mean of log 1.5 over one eleventh of the weight.
        assert standing.way(FIXED).share == pytest.approx(1.5 ** (-1 / 11), abs=0.01)
