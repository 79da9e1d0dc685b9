"""Islands: grids of their own, copies that displace nobody, and chances of parents."""

from __future__ import annotations

import random
from collections import Counter

from kernelwright.agents.search.archive import Elite
from kernelwright.agents.search.islands import Birth, Islands, weigh

CELL, OTHER = "m0 a0 c0 memory", "m2 a1 c0 memory"


def birth(candidate: str, island: int, score: float | None, niche: str = CELL) -> Birth:
    return Birth(candidate, 0, island, niche, score)


def islands(every: int, *births: Birth) -> Islands:
    found = Islands(2, kept_per_niche=2, every=every)
    found.generation(0, births)
    return found


def test_the_same_niche_holds_another_elite_on_every_island() -> None:
    found = islands(0, birth("a", 0, 2.0), birth("b", 1, 1.0))
    assert [island.cells[CELL].candidate for island in found.islands] == ["a", "b"]


def test_a_migrant_is_a_copy_that_displaces_nobody_and_travels_one_island() -> None:
    found = Islands(3, kept_per_niche=1, every=1)
    found.generation(0, [birth("a", 0, 2.0), birth("b", 1, 1.0), birth("c", 2, 1.5)])
    members = [{e.candidate for e in island.members} for island in found.islands]
    assert members == [{"a", "c"}, {"a", "b"}, {"b", "c"}]
    assert [e.candidate for e in found.islands[1].own.elites()] == ["b"]


def test_failures_are_nobodys_parents() -> None:
    found = islands(0, birth("a", 0, None))
    assert found.parent(0, random.Random(0)) == ""


def test_exemplars_come_from_other_cells_slow_to_fast() -> None:
    found = Islands(1, kept_per_niche=2, every=0)
    cells = [f"m{n} a0 c0 memory" for n in range(4)]
    found.generation(0, [birth(f"c{n}", 0, 1.0 + n, cells[n]) for n in range(4)])
    assert found.list_others(0, "c3", 2) == ("c1", "c2")
    assert found.list_others(0, "c0", 5) == ("c1", "c2", "c3")


def test_the_better_and_the_childless_have_better_chances() -> None:
    members = [Elite(c, CELL, score) for c, score in (("a", 3.0), ("b", 2.0), ("c", 1.0))]
    even = weigh(members, {})
    assert even[0] > even[1] > even[2] > 0
    assert weigh(members, {"a": 3})[0] == even[0] / 4


def test_a_parent_beside_an_empty_cell_is_drawn_more_often() -> None:
    # "a" and "b" are as good; every neighbour of "a" is held by somebody worse.
    found = Islands(1, kept_per_niche=1, every=0)
    near = ["m1 a0 c0 memory", "m0 a1 c0 memory", "m0 a0 c1 memory"]
    crowd = [birth(f"n{n}", 0, 0.001, cell) for n, cell in enumerate(near)]
    found.generation(0, [birth("a", 0, 2.0), birth("b", 0, 2.0, "m3 a3 c3 memory"), *crowd])
    drawn = Counter(found.parent(0, random.Random(seed)) for seed in range(2000))
    assert 1.25 < drawn["b"] / drawn["a"] < 1.8
