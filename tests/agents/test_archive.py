"""What must hold of the archive whatever is added to it."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.agents.search.archive import AddStatus, Archive
from kernelwright.tests.agents.played import verdict_with

NICHES = st.sampled_from(["row", "nnz", "tiled"])
SCORES = st.floats(0.01, 100.0)
ADDITIONS = st.lists(st.tuples(st.integers(0, 12), NICHES, SCORES), max_size=40)


def fill(additions: list[tuple[int, str, float]], kept: int = 3) -> Archive:
    archive = Archive(kept)
    niche_of: dict[int, str] = {}
    for number, niche, score in additions:
        niche = niche_of.setdefault(number, niche)
        archive.add(f"c{number}", niche, score)
    return archive


@given(ADDITIONS)
def test_no_niche_holds_too_many_and_each_is_sorted(
    additions: list[tuple[int, str, float]],
) -> None:
    archive = fill(additions)
    for niche in archive.niches:
        scores = [elite.score for elite in archive.elites(niche)]
        assert 1 <= len(scores) <= 3
        assert scores == sorted(scores, reverse=True)
    ids = [elite.candidate for elite in archive.elites()]
    assert len(ids) == len(set(ids))


@given(st.lists(st.tuples(st.integers(0, 60), NICHES, SCORES), unique_by=lambda a: a[0]))
def test_the_best_of_a_niche_is_never_lost(additions: list[tuple[int, str, float]]) -> None:
    archive = fill(additions)
    for niche in {niche for _, niche, _ in additions}:
        assert archive.elites(niche)[0].score == max(s for _, n, s in additions if n == niche)


@given(
    st.lists(st.tuples(st.integers(0, 60), NICHES, SCORES), unique_by=lambda a: a[0]),
    st.randoms(use_true_random=False),
)
def test_the_order_of_arrival_does_not_matter(
    additions: list[tuple[int, str, float]], rng: random.Random
) -> None:
    shuffled = rng.sample(additions, len(additions))
    assert fill(additions).elites() == fill(shuffled).elites()


@given(ADDITIONS, st.integers(0, 1000), st.integers(1, 5))
def test_parents_are_distinct_members_and_follow_the_seed(
    additions: list[tuple[int, str, float]], seed: int, count: int
) -> None:
    archive = fill(additions)
    members = {elite.candidate: elite.niche for elite in archive.elites()}
    parents = archive.parents(random.Random(seed), count)
    assert parents == archive.parents(random.Random(seed), count)
    assert set(parents) <= members.keys()
    assert len(parents) == len(set(parents)) == min(count, len(members))
    niche_size = sum(1 for niche in members.values() if parents and niche == members[parents[0]])
    if count > 1 and niche_size > 1:
        assert members[parents[1]] == members[parents[0]]


def test_a_better_member_is_drawn_more_often() -> None:
    archive = fill([(n, "row", float(n + 1)) for n in range(3)])
    firsts = [archive.parents(random.Random(seed))[0] for seed in range(300)]
    assert firsts.count("c2") > firsts.count("c1") > firsts.count("c0") > 0


def test_the_statuses_are_ordered_and_say_what_happened() -> None:
    archive = Archive(2)
    assert archive.add("a", "row", 1.0) is AddStatus.NEW
    assert archive.add("b", "row", 2.0) is AddStatus.NEW
    assert archive.add("c", "row", 0.5) is AddStatus.NOT_ADDED
    assert archive.add("d", "row", 3.0) is AddStatus.IMPROVED
    assert archive.add("d", "row", 4.0) is AddStatus.IMPROVED
    assert archive.add("d", "row", 3.5) is AddStatus.NOT_ADDED
    assert [e.candidate for e in archive.elites()] == ["d", "b"]
    assert AddStatus.NOT_ADDED < AddStatus.IMPROVED < AddStatus.NEW


@pytest.mark.parametrize("credited", [math.nan, math.inf, -math.inf])
def test_a_figure_that_is_no_number_cannot_even_be_recorded(credited: float) -> None:
    with pytest.raises(ValueError, match="finite number"):
        verdict_with(credited)


def test_a_member_that_fails_its_confirmation_leaves() -> None:
    archive = Archive()
    archive.add("a", "row", 2.0)
    assert archive.add("a", "row", None) is AddStatus.NOT_ADDED
    assert archive.elites() == ()
    assert archive.niches == ()
    assert archive.parents(random.Random(0)) == ()


def test_an_archive_keeps_somebody() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Archive(0)
