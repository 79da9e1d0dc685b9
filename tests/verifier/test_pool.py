"""Inputs of timed calls: as good as drawn anew, at the price of a copy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kernelwright.kernelbench import registry, rows
from kernelwright.kernelbench.problem import Family, Structure
from kernelwright.verifier.truth import gates
from kernelwright.verifier.truth.input_pool import DRAWS, NOISE_BITS, Pool


def drawn(name: str) -> tuple[Pool, Structure, np.random.Generator]:
    problem = registry.get(name)
    structure = problem.structure(problem.workload("tiny"))
    rng = np.random.default_rng(3)
    return Pool.draw(problem, structure, rng), structure, rng


def most_by_chance(one: np.ndarray, other: np.ndarray) -> float:
    """The share of equal elements that is no surprise: of codes there are few, and of elements."""
    if one.size == 1:
        return 2.0 if one.dtype.kind in "iu" else 0.02
    _, counts = np.unique(np.concatenate([one.ravel(), other.ravel()]), return_counts=True)
    mean = float(np.sum((counts / (2 * one.size)) ** 2))
    return 0.02 + 1.5 * mean + 4 * float(np.sqrt(mean * (1 - mean) / one.size))


@pytest.mark.parametrize("name", registry.names())
def test_every_call_gets_inputs_of_its_own(name: str) -> None:
    pool, structure, rng = drawn(name)
    items = [pool.item(structure, rng) for _ in range(4)]
    for tensor in pool.problem.inputs:
        if tensor.is_index:
            continue
        arrays = [item.inputs[tensor.name] for item in items]
        for number, array in enumerate(arrays):
            assert array.shape == tensor.extent(structure.axes)
            assert array.dtype == np.dtype(tensor.dtype)
            assert np.isfinite(array).all()
            for other in arrays[:number]:
                same = np.mean(array == other)
                assert same < most_by_chance(array, other), "elements repeat where they were"


def test_of_a_large_call_some_rows_are_drawn_and_hardly_one_comes_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "LARGE_BYTES", 1 << 20)
    problem, rng = registry.get("softmax"), np.random.default_rng(3)
    structure = Structure({"M": 4000, "N": 65})
    pool = Pool.draw(problem, structure, rng)
    assert len(pool.held["x"]) < structure.axes["M"]
    seen = [row.tobytes() for _ in range(5) for row in pool.item(structure, rng).inputs["x"]]
    assert len(seen) == 5 * structure.axes["M"]
    assert len(set(seen)) > 0.9 * len(seen)


@pytest.mark.parametrize("name", ["spmm_csr", "softmax", "gemm"])
def test_all_float_inputs_come_from_the_pool(name: str) -> None:
    pool, _, _ = drawn(name)
    assert set(pool.held) == {t.name for t in pool.problem.inputs if not t.is_index}


def test_no_row_is_ever_the_same_again() -> None:
    pool, structure, rng = drawn("softmax")
    seen = [row.tobytes() for _ in range(20) for row in pool.item(structure, rng).inputs["x"]]
    assert len(set(seen)) == len(seen)


def test_noise_is_small_beside_a_value_and_large_beside_a_gate() -> None:
    pool, structure, rng = drawn("softmax")
    rows = len(pool.held["x"]) // DRAWS
    got = pool.item(structure, rng).inputs["x"]
    changes = [
        np.abs(got - pool.held["x"][first : first + rows]) / np.abs(got)
        for first in range(len(pool.held["x"]) - rows + 1)
    ]
    nearest = min(changes, key=np.median)
    assert nearest.max() < 2.0 ** (NOISE_BITS["float32"] - 23)
    assert np.median(nearest) > 2.0 ** (NOISE_BITS["float32"] - 23 - 3)


def test_an_answer_to_the_call_before_is_wrong() -> None:
    pool, structure, rng = drawn("spmm_csr")
    first, second = pool.item(structure, rng), pool.item(structure, rng)
    stale = {name: e.value.astype(np.float32) for name, e in first.expected.items()}
    for name, expected in second.expected.items():
        found = gates.check_output(
            name, stale[name], expected, pool.problem.precision, Family.NORMAL, poison=None
        )
        assert gates.first_failure(found)


def test_values_that_mean_something_exactly_are_drawn_anew() -> None:
    problem = registry.get("softmax")
    structure = problem.structure(problem.workload("tiny"))

    def mask(structure: Structure, _: Family, rng: np.random.Generator) -> dict[str, np.ndarray]:
        return {"x": rng.integers(0, 2, (structure.axes["M"], structure.axes["N"])).astype("f4")}

    rng = np.random.default_rng(5)
    pool = Pool.draw(replace(problem, values=mask), structure, rng)
    assert not pool.held
    first, second = pool.item(structure, rng), pool.item(structure, rng)
    assert set(np.unique(first.inputs["x"])) == {0.0, 1.0}
    assert not np.array_equal(first.inputs["x"], second.inputs["x"])
