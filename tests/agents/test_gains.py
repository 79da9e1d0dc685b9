"""Credit for techniques: the table, the draw, and what counts as used."""

from __future__ import annotations

import math
import random
from collections import Counter

import pytest

from kernelwright.agents.search.technique_gains import Credit, Tally, draw, table, use

SOME = [
    Credit("tiling", "memory", math.log(1.5)),
    Credit("tiling", "memory", math.log(1.005)),
    Credit("tiling", "memory", -math.inf),
    Credit("tiling", "compute", math.log(0.8)),
]


def test_the_table_counts_by_technique_and_bound() -> None:
    found = table(SOME)
    memory = found["tiling", "memory"]
    assert (memory.tried, memory.gained, memory.right) == (3, 1, 2)
    assert memory.best == math.log(1.5)
    assert memory.mean == pytest.approx((math.log(1.5) + math.log(1.005)) / 2)
    assert found["tiling", "compute"].gained == 0


def test_what_gained_is_drawn_more_often_and_nothing_is_ruled_out() -> None:
    known = {("good", "memory"): Tally(20, 15), ("bad", "memory"): Tally(20, 1)}
    drawn: Counter[str] = Counter()
    for seed in range(500):
        drawn.update(draw(known, ["bad", "good", "new"], "memory", 1, random.Random(seed)))
    assert drawn["good"] > 5 * drawn["bad"]
    assert drawn["new"] > 50
    # Under another bound nothing is known of them.
    other: Counter[str] = Counter()
    for seed in range(500):
        other.update(draw(known, ["bad", "good"], "compute", 1, random.Random(seed)))
    assert abs(other["bad"] - other["good"]) < 120


def test_a_draw_gives_distinct_techniques() -> None:
    assert len(set(draw({}, ["a", "b", "c"], "memory", 2, random.Random(1)))) == 2
    assert draw({}, ["a"], "memory", 2, random.Random(1)) == ("a",)


@pytest.mark.parametrize(
    ("technique", "after", "declared", "expected"),
    [
        ("shared-memory-tiling", "__shared__ float t[4]; f()", True, (True, False)),
        ("shared-memory-tiling", "__shared__ float t[4]; f()", False, (True, True)),
        ("shared-memory-tiling", "g()", True, (False, True)),
        ("shared-memory-tiling", "f() // __shared__", True, (False, True)),
        ("operator-fusion", "g()", True, (True, False)),
        ("operator-fusion", "f() // fused", True, (False, False)),
        ("operator-fusion", "g()", False, (False, False)),
    ],
)
def test_used_is_what_the_source_shows_or_the_change_bears_out(
    technique: str, after: str, declared: bool, expected: tuple[bool, bool]
) -> None:
    assert use(technique, "f()", after, (technique,) if declared else ()) == expected
