"""Buckets of variants, the draw from them, and a group's scores."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from kernelwright.agents.search.contrast_pairs import CLIP, buckets, chances, draw, group_score

TEN = {f"c{n}": 1.1**n for n in range(10)}


def test_buckets_are_quantiles_slow_to_fast() -> None:
    filled = buckets(TEN)
    assert [len(bucket) for bucket in filled] == [2] * 5
    assert filled[0] == ["c0", "c1"]
    assert filled[-1] == ["c8", "c9"]


def test_equal_scores_share_a_bucket() -> None:
    assert len(buckets({f"c{n}": 2.0 for n in range(6)})) == 1
    assert len(buckets({"a": 1.0, "b": 1.0, "c": 1.0, "d": 5.0})) == 2


@pytest.mark.parametrize("count", [0, 1, 2])
def test_with_too_few_variants_nothing_is_drawn(count: int) -> None:
    scores = dict(list(TEN.items())[:count])
    assert draw(scores, 2, random.Random(0)) == ()


def test_two_are_drawn_from_distinct_buckets_slow_to_fast_the_fast_ones_more_often() -> None:
    seen: Counter[str] = Counter()
    for seed in range(400):
        pair = draw(TEN, 2, random.Random(seed))
        assert len(pair) == 2
        assert TEN[pair[0]] < TEN[pair[1]]
        holding = [n for n, bucket in enumerate(buckets(TEN)) for c in pair if c in bucket]
        assert len(set(holding)) == 2
        seen.update(pair)
    assert seen["c8"] + seen["c9"] > 2 * (seen["c0"] + seen["c1"])
    assert min(seen.values()) > 0


def test_chances_rise_with_the_score_and_sum_to_one() -> None:
    found = chances(buckets(TEN), TEN)
    assert found == sorted(found)
    assert sum(found) == pytest.approx(1.0)
    # One deviation of the scores is a factor of e.
    assert found[-1] / found[0] == pytest.approx(16.2, rel=0.05)


def test_group_scores_are_clipped_and_failures_are_lowest() -> None:
    assert group_score("c9", TEN) == pytest.approx(CLIP, abs=0.07)
    assert group_score("c0", TEN) == pytest.approx(-CLIP, abs=0.07)
    assert group_score("failed", TEN) == -CLIP
    assert group_score("c0", {"c0": 2.0}) == 0.0
