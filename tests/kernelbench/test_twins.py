"""Twins of a sparse pattern: valid, of exactly its sizes, and different where it matters."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernelwright.kernelbench import graphs, registry
from kernelwright.kernelbench.graphs import Pattern
from kernelwright.kernelbench.problem import Family, Structure
from kernelwright.kernelbench.sparse import structure_from
from kernelwright.kernelbench.twins import twins

SPARSE = [problem.name for problem in registry.problems() if "sparse" in problem.tags]
PATTERNS = {
    "uneven": graphs.by_degree(300, 2000, 2.0, seed=1),
    "hub": graphs.hub(200, 900, seed=2),
    "crowded": graphs.by_degree(40, 400, 0.1, cols=12, seed=3),
    "one row": graphs.from_lengths(np.array([5]), 9, np.random.default_rng(4)),
    "one column": graphs.from_lengths(np.array([1, 0, 1]), 1, np.random.default_rng(5)),
}
FULL_ROW = graphs.from_lengths(np.array([9]), 9, np.random.default_rng(6))


def structure(pattern: Pattern) -> Structure:
    return structure_from(pattern, {}, names=("M", "K", "nnz"))


def drawn(of: Structure, count: int, seed: int = 0) -> list[Structure]:
    return list(itertools.islice(twins(of, np.random.default_rng(seed)), count))


@pytest.mark.parametrize("name", PATTERNS)
def test_a_twin_is_another_valid_pattern_of_the_same_sizes(name: str) -> None:
    first = structure(PATTERNS[name])
    found = drawn(first, 60)
    assert len(found) == 60
    for twin in found:
        assert twin.axes == first.axes
        indptr, indices = twin.arrays["indptr"], twin.arrays["indices"]
        assert (indptr[0], indptr[-1]) == (0, first.axes["nnz"])
        assert (np.diff(indptr) >= 0).all()
        for start, end in itertools.pairwise(indptr):
            row = indices[start:end].astype(np.int64)
            assert (np.diff(row) > 0).all()
            assert ((row >= 0) & (row < first.axes["K"])).all()
        for key, array in twin.arrays.items():
            assert array.dtype == np.int32
            assert array.flags.c_contiguous
            assert array.shape == first.arrays[key].shape
        assert any(not np.array_equal(a, first.arrays[key]) for key, a in twin.arrays.items())


def test_a_near_twin_keeps_the_sums_and_nearly_every_entry() -> None:
    first = structure(PATTERNS["uneven"])
    by_rows, by_columns, turned = drawn(first, 3)
    for twin, key in ((by_rows, "indptr"), (by_columns, "indices")):
        for name, array in twin.arrays.items():
            assert int((array != first.arrays[name]).sum()) == (2 if name == key else 0)
            assert int(array.sum()) == int(first.arrays[name].sum())
    assert (turned.arrays["indices"] != first.arrays["indices"]).mean() > 0.9


def test_a_pattern_without_twins_has_none() -> None:
    assert drawn(structure(FULL_ROW), 1) == []
    empty = graphs.from_lengths(np.array([0, 0]), 3, np.random.default_rng(0))
    assert drawn(structure(empty), 1) == []


@pytest.mark.parametrize("name", registry.names())
def test_every_problem_with_index_arrays_has_twins(name: str) -> None:
    problem = registry.get(name)
    first = problem.structure(problem.workload("tiny"))
    rng = np.random.default_rng(0)
    found = list(itertools.islice(problem.twins(first, rng), 6))
    has_indices = any(tensor.is_index for tensor in problem.inputs)
    assert bool(found) is has_indices is (name in SPARSE)
    inputs = problem.values(first, Family.NORMAL, rng)
    truth = problem.oracle(first, inputs)
    for twin in found:
        for key, expected in problem.oracle(twin, inputs).items():
            assert not np.array_equal(expected.value, truth[key].value)
