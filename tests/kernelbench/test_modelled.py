"""What a model of the machine says of recipes' points: it orders them, and knows when it cannot."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.features import features
from kernelwright.kernelbench.recipe import Recipe
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.kernelbench.recipes.catalogue import RECIPES
from kernelwright.kernelbench.recorded import CACHE, RecordedSpace, read_space, write_space
from kernelwright.kernelbench.space import FAMILY, space_of_recipes

MACHINE = {
    "cpus": 8.0,
    "vector_bytes": 64.0,
    "memory_gbs": 20.0,
    "llc_gbs": 60.0,
    "l2_gbs": 200.0,
    "fma_gflops": 400.0,
}
CPP = [recipe for recipe in RECIPES if recipe.language == "cpp"]


def facts_of(problem: str) -> dict[str, float]:
    known = registry.get(problem)
    return {**features(known.structure(known.workload("tiny"))), **MACHINE}


@pytest.mark.parametrize("recipe", CPP, ids=lambda recipe: f"{recipe.problem}-{recipe.family}")
def test_every_point_of_a_recipe_for_this_machine_is_modelled(recipe: Recipe) -> None:
    facts = facts_of(recipe.problem)
    assert recipe.model
    took = [recipe.model(knobs, facts) for knobs in recipe.space(facts)]
    assert all(math.isfinite(us) and us > 0 for us in took)
    assert max(took) > min(took)


@pytest.mark.parametrize("recipe", CPP, ids=lambda recipe: f"{recipe.problem}-{recipe.family}")
def test_fewer_threads_and_half_a_vector_are_never_said_to_be_faster_on_much_work(
    recipe: Recipe,
) -> None:
    # The smallest workload may be faster in one thread: a piece that is dealt takes its time.
    facts = {axis: 50 * value for axis, value in facts_of(recipe.problem).items()} | MACHINE
    assert recipe.model
    for knobs in recipe.space(facts):
        if knobs["threads"] == 0:
            assert recipe.model(knobs, facts) <= recipe.model({**knobs, "threads": 1}, facts) * 1.1
        if knobs.get("vector") == "native":
            half = {**knobs, "vector": "half"}
            assert recipe.model(knobs, facts) <= recipe.model(half, facts) * 1.5


def test_narrow_elements_take_less_time_where_memory_decides() -> None:
    facts = {**facts_of("softmax"), "M": 4096.0, "N": 8192.0}
    wide, narrow = (
        next(r for r in CPP if (r.problem, r.family) == (name, "buffered"))
        for name in ("softmax", "softmax_f16")
    )
    assert wide.model
    assert narrow.model
    knobs = wide.first_knobs()
    assert narrow.model(knobs, facts) < 0.7 * wide.model(knobs, facts)


def test_nothing_is_modelled_where_the_machine_is_not_known() -> None:
    facts = {name: value for name, value in facts_of("softmax").items() if name != "memory_gbs"}
    assert space_of_recipes(recipes_for("softmax"), facts).modelled is None
    space = space_of_recipes(recipes_for("softmax"), facts_of("softmax"))
    assert space.modelled is not None
    assert len(space.modelled) == len(space)


def test_a_recorded_space_keeps_what_was_modelled(tmp_path: Path) -> None:
    space = space_of_recipes(recipes_for("softmax"), facts_of("softmax"))
    assert space.modelled is not None
    times = tuple(float(us) for us in np.exp(space.modelled))
    recorded = RecordedSpace("softmax", "cpu", space, times, ("",) * len(space))
    write_space(recorded, tmp_path / "space.json", CACHE)
    read = read_space(tmp_path / "space.json").space
    assert read.modelled is not None
    for number in range(0, len(space), 101):
        there = read.find(space.at(number))
        assert there is not None
        assert read.at(there)[FAMILY] == space.at(number)[FAMILY]
        assert read.modelled[there] == pytest.approx(space.modelled[number], abs=1e-3)
