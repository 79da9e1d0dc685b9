"""What holds of every strategy, and that the guided one finds what chance does not."""

from __future__ import annotations

import itertools
import math
import os
import random
import statistics
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kernelwright import extras
from kernelwright.agents.search.expected_gain import ModelGuided
from kernelwright.agents.search.replay import play
from kernelwright.agents.search.strategy import (
    STRATEGIES,
    Strategy,
    make_strategy,
)
from kernelwright.agents.search.told import Told
from kernelwright.errors import UsageError
from kernelwright.kernelbench.recipe import Knob
from kernelwright.kernelbench.recorded import RecordedSpace, read_space
from kernelwright.kernelbench.space import Space, space_of_points

KERNEL_TUNER = "kernel_tuner:genetic_algorithm"
NAMES = [*STRATEGIES, KERNEL_TUNER]
ALL = frozenset({"exhaustive", "random", "genetic", "model"})
"""Those that ask for every point in the end; others may end before."""


def small() -> Space:
    """Two families of which one has a knob more."""
    knobs = [
        Knob("family", ("flat", "tiled"), ""),
        Knob("tile", (1, 2, 4, 8, 16), ""),
        Knob("order", ("rows", "columns"), ""),
    ]
    points: list[dict[str, int | float | str]] = [
        {"family": "tiled", "tile": tile, "order": order}
        for tile in (1, 2, 4, 8, 16)
        for order in ("rows", "columns")
    ]
    points += [{"family": "flat", "order": order} for order in ("rows", "columns")]
    return space_of_points(knobs, points)


def value_of(space: Space, point: int) -> float | None:
    knobs = space.at(point)
    if knobs.get("tile") == 16:
        return None
    tile = knobs.get("tile", 1)
    assert isinstance(tile, int)
    return abs(math.log2(tile) - 2) + 0.1 * (knobs["order"] == "rows")


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    if request.param == KERNEL_TUNER and extras.list_missing("tuner"):
        pytest.skip("kernel_tuner is not installed: pip install 'kernelwright[tuner]'")
    return str(request.param)


def played(name: str, seed: int, count: int = 1, first: tuple[int, ...] = ()) -> list[int]:
    """All that a strategy asks for on the small space."""
    space = small()
    strategy = make_strategy(name, space, seed, first)
    asked: list[int] = []
    try:
        for points in _asking(strategy, count):
            assert len(points) <= count
            asked += points
            strategy.tell([Told(point, value_of(space, point)) for point in points])
    finally:
        strategy.close()
    return asked


def _asking(strategy: Strategy, count: int) -> Iterator[list[int]]:
    while points := strategy.ask(count):
        yield points


@pytest.mark.parametrize("count", [1, 3])
def test_no_point_is_asked_for_twice_and_all_lie_in_the_space(name: str, count: int) -> None:
    asked = played(name, 1, count)
    assert len(set(asked)) == len(asked)
    assert set(asked) <= set(range(len(small())))
    assert name not in ALL or len(asked) == len(small())


@pytest.mark.parametrize("seed", [3, -1, 1 << 70])
def test_one_seed_gives_one_order(name: str, seed: int) -> None:
    assert played(name, seed) == played(name, seed)


@pytest.mark.parametrize("name", sorted(ALL))
def test_what_it_is_to_begin_with_comes_first(name: str) -> None:
    assert played(name, 0, first=(7, 2))[:2] == [7, 2]


@pytest.mark.parametrize("name", sorted(ALL))
def test_what_is_told_of_is_not_asked_for(name: str) -> None:
    space = small()
    strategy = make_strategy(name, space, 0)
    strategy.tell([Told(point, value_of(space, point)) for point in range(6)])
    asked = [points[0] for points in _asking(strategy, 1)]
    assert sorted(asked) == list(range(6, len(space)))


def test_a_space_in_which_all_fail_is_asked_through(name: str) -> None:
    space = small()
    strategy = make_strategy(name, space, 0)
    asked: set[int] = set()
    try:
        for points in _asking(strategy, 1):
            asked.update(points)
            strategy.tell([Told(point, None) for point in points])
    finally:
        strategy.close()
    assert asked
    assert name not in ALL or len(asked) == len(space)


def test_a_name_that_there_is_none_of_is_refused() -> None:
    with pytest.raises(UsageError, match="'annealing'"):
        make_strategy("annealing", small(), 0)


def test_it_stops_where_less_is_expected_than_can_be_measured() -> None:
    tiles = tuple(range(1, 201))
    space = space_of_points([Knob("tile", tiles, "")], [{"tile": tile} for tile in tiles])
    strategy = ModelGuided(space, 0, least_gain=0.02)
    asked: list[int] = []
    for points in _asking(strategy, 1):
        asked += points
        strategy.tell([Told(point, math.log(1 + point / 100)) for point in points])
    assert min(asked) <= 10
    assert len(asked) < 60
    assert strategy.gain < 0.02


def test_a_noisy_value_is_not_taken_for_the_truth() -> None:
    """A point flattered by noise does not hide the others of which more is expected."""
    space = small()
    strategy = ModelGuided(space, 0)
    for _ in range(8):
        points = strategy.ask(1)
        strategy.tell([Told(p, value_of(space, p), 0.2) for p in points])
    assert strategy.ask(1)
    assert strategy.gain > 0


def bowl(space: Space, point: int, turned: bool = False) -> float:
    """Slower by 30 % a step away from one corner of the middle; `turned`: from the opposite one."""
    knobs = space.at(point)
    a, b = (math.log2(float(knobs[name])) for name in ("a", "b"))
    at = (2, 6) if not turned else (6, 1)
    return 0.3 * (abs(a - at[0]) + abs(b - at[1])) + 0.05 * int(knobs["c"])


def square() -> Space:
    knobs = [
        Knob("a", tuple(2**n for n in range(9)), ""),
        Knob("b", tuple(2**n for n in range(9)), ""),
        Knob("c", (0, 1, 2, 3), ""),
    ]
    drawn = itertools.product(*(knob.values for knob in knobs))
    return space_of_points(knobs, [dict(zip("abc", each, strict=True)) for each in drawn])


def count_until_best(seed: int, before: list[Told] | None = None) -> int:
    """Evaluations until the search has the fastest point."""
    space = square()
    search = ModelGuided(
        space,
        seed,
        at_random=0 if before else 15,
        first=[told.point for told in before[:2]] if before else (),
        before=[before] if before else (),
    )
    best = min(range(len(space)), key=lambda point: bowl(space, point))
    for count, (point, *_) in enumerate(_asking(search, 1), 1):
        if point == best:
            return count
        search.tell([Told(point, bowl(space, point), 0.01)])
    raise AssertionError("the fastest point was never asked for")


def told_before(*, turned: bool) -> list[Told]:
    """What a search of another workload was told, in another unit; the fastest first."""
    space, rng = square(), random.Random(3)
    points = rng.sample(range(len(space)), 40)
    told = [Told(point, 2.0 + 1.2 * bowl(space, point, turned), 0.01) for point in points]
    return sorted(told, key=lambda each: each.value or 0.0)


def test_what_was_told_of_a_like_task_leads_to_the_fastest_point_sooner() -> None:
    before = told_before(turned=False)
    alone, within = (
        statistics.median(count_until_best(seed, told) for seed in range(5))
        for told in (None, before)
    )
    assert within <= alone / 2, (within, alone)


def test_who_was_told_of_an_unlike_task_finds_out() -> None:
    before = told_before(turned=True)
    assert max(count_until_best(seed, before) for seed in range(3)) < len(square()) / 4


SHARED = Path(os.environ.get("KERNELWRIGHT_SHARED", Path(__file__).parents[3] / "shared"))
RECORDED = sorted((SHARED / "data" / "tuning").glob("*.json.gz"))


@pytest.mark.slow
@pytest.mark.parametrize("path", RECORDED or [None])
def test_the_guided_search_needs_half_of_what_a_genetic_one_needs(path: Path | None) -> None:
    if path is None:
        pytest.skip("the recorded spaces are not here")
    recorded = read_space(path)
    guided, genetic = (_median_until(recorded, name) for name in ("model", "genetic"))
    assert guided <= 0.75 * genetic, (guided, genetic)


def _median_until(recorded: RecordedSpace, name: str, seeds: int = 9) -> int:
    limit = recorded.best_us * 1.01
    plays = [
        play(recorded, make_strategy(name, recorded.space, seed), until_us=limit)
        for seed in range(seeds)
    ]
    return sorted(each.count_until(limit) or 400 for each in plays)[seeds // 2]


def test_it_begins_with_points_that_are_modelled_as_fast() -> None:
    knobs = [Knob("tile", tuple(range(40)), ""), Knob("unroll", tuple(range(10)), "")]
    points = itertools.product(range(40), range(10))
    space = space_of_points(knobs, ({"tile": tile, "unroll": unroll} for tile, unroll in points))
    modelled = replace(space, modelled=np.arange(len(space)) / len(space))
    begun = ModelGuided(modelled, 1).ask(10)
    by_chance = ModelGuided(space, 1).ask(10)
    assert statistics.mean(begun) < 0.6 * statistics.mean(by_chance)
    assert len(set(begun)) == len(begun)


SPACES = sorted((Path(__file__).parents[2] / "benchmarks" / "spaces").glob("*.json.gz"))


@pytest.mark.parametrize("path", SPACES, ids=lambda path: path.name.partition(".")[0])
def test_a_tenth_of_a_space_of_recipes_holds_a_point_within_two_per_cent(path: Path) -> None:
    recorded = read_space(path)
    assert recorded.space.modelled is not None
    limit, most = 1.02 * recorded.best_us, len(recorded.space) // 10
    plays = [
        play(recorded, make_strategy("model", recorded.space, seed), most, limit)
        for seed in range(10)
    ]
    assert sum(each.count_until(limit) is not None for each in plays) >= 9
