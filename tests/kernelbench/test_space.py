"""Spaces of knobs, and files of recorded ones."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path

import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench.recipe import Constraint, Knob, Recipe
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.kernelbench.recorded import RecordedSpace, read_space, write_space
from kernelwright.kernelbench.space import FAMILY, Space, space_of_points, space_of_recipes

TILE = Knob("tile", (1, 2, 4, 8), "elements")
ORDER = Knob("order", ("rows", "columns"), "what comes first")


def recipe(family: str, *knobs: Knob) -> Recipe:
    few = Constraint("no large tile by columns", lambda k, _: k != {"tile": 8, "order": "columns"})
    return Recipe("gemm", family, "cpp", "", knobs, lambda knobs: str(knobs), (few,))


def joined() -> Space:
    return space_of_recipes([recipe("tiled", TILE, ORDER), recipe("naive", ORDER)], {})


def test_recipes_are_one_space_in_which_a_family_has_its_own_knobs() -> None:
    space = joined()
    assert len(space) == 7 + 2
    points = [space.at(number) for number in range(len(space))]
    assert {FAMILY: "naive", "order": "rows"} in points
    assert {FAMILY: "tiled", "tile": 8, "order": "columns"} not in points
    assert [space.find(point) for point in points] == list(range(len(space)))


@pytest.mark.parametrize(
    "knobs",
    [
        {FAMILY: "tiled", "tile": 8, "order": "columns"},
        {FAMILY: "naive", "tile": 1, "order": "rows"},
        {FAMILY: "tiled", "tile": 3, "order": "rows"},
        {FAMILY: "tiled", "tile": 1, "order": "rows", "warps": 4},
    ],
    ids=["against a constraint", "a knob too many", "no such value", "no such knob"],
)
def test_what_is_no_point_is_not_found(knobs: dict[str, int | float | str]) -> None:
    assert joined().find(knobs) is None


def test_neighbours_differ_in_one_knob() -> None:
    space = joined()
    start = space.find({FAMILY: "tiled", "tile": 1, "order": "rows"})
    assert start is not None
    beside = [space.at(number) for number in space.list_neighbours(start).tolist()]
    assert {FAMILY: "tiled", "tile": 8, "order": "rows"} in beside
    assert {FAMILY: "tiled", "tile": 1, "order": "columns"} in beside
    assert len(beside) == 4


def test_a_space_without_a_point_says_so() -> None:
    with pytest.raises(UsageError, match="without a point"):
        space_of_points([TILE], [])
    with pytest.raises(UsageError, match="twice"):
        space_of_points([TILE], [{"tile": 1}, {"tile": 1}])
    with pytest.raises(UsageError, match="tile = 3"):
        space_of_points([TILE], [{"tile": 3}])


@pytest.mark.parametrize("problem", ["spmm_csr", "softmax", "gemm"])
def test_the_recipes_of_a_problem_are_a_space(problem: str) -> None:
    recipes = [each for each in recipes_for(problem) if each.language == "cpp"]
    facts = {"cpus": 4.0, "vector_bytes": 64.0}
    space = space_of_recipes(recipes, facts)
    assert len(space) == sum(each.size(facts) for each in recipes)


def recorded() -> RecordedSpace:
    return RecordedSpace(
        "conv", "A100", joined(), (*(100.0 + n for n in range(8)), None), ("",) * 8 + ("compile",)
    )


@pytest.mark.parametrize("form", ["cache", "t4"])
@pytest.mark.parametrize("name", ["space.json", "space.json.gz"])
def test_what_is_written_reads_the_same(tmp_path: Path, form: str, name: str) -> None:
    written = recorded()
    # A point without a knob has no place in a cache file, whose keys are values of all knobs.
    whole = space_of_points(
        [TILE, ORDER], [{"tile": t, "order": o} for t in TILE.values for o in ORDER.values]
    )
    written = RecordedSpace("conv", "A100", whole, written.times_us[1:], written.failures[1:])
    write_space(written, tmp_path / name, form)
    assert [file.name for file in tmp_path.iterdir()] == [name]
    read = read_space(tmp_path / name)
    assert (read.name, read.device, read.failures) == ("conv", "A100", written.failures)
    assert [read.space.at(n) for n in range(8)] == [whole.at(n) for n in range(8)]
    assert read.best_us == pytest.approx(101.0)
    assert read.times_us[-1] is None


def test_a_cache_file_of_kernel_tuner_is_read(tmp_path: Path) -> None:
    content = {
        "device_name": "A100",
        "kernel_name": "conv",
        "tune_params_keys": ["x", "pad"],
        "tune_params": {"x": [16, 32], "pad": [0]},
        "objective": "time",
        "cache": {
            "16,0": {"x": 16, "pad": 0, "time": 0.5},
            "32,0": {"x": 32, "pad": 0, "time": "RuntimeFailedConfig"},
        },
    }
    path = tmp_path / "cache.json.gz"
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    read = read_space(path)
    assert read.times_us == (500.0, None)
    assert read.failures == ("", "runtime")


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"cache": {}}', b"\x1f\x8bnot gzip", b'{"results": [{}]}', b"\xff\xfe"],
)
def test_a_file_that_is_none_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "space.json"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"space\.json"):
        read_space(path)


def test_times_that_are_none_are_failures(tmp_path: Path) -> None:
    content = {
        "device_name": "",
        "kernel_name": "",
        "tune_params_keys": ["x"],
        "tune_params": {"x": [1, 2, 3, 4]},
        "cache": {
            str(n): {"x": n, "time": time} for n, time in enumerate((1.0, math.inf, -1.0, True), 1)
        },
    }
    path = tmp_path / "space.json"
    path.write_text(json.dumps(content))
    assert read_space(path).times_us == (1000.0, None, None, None)
