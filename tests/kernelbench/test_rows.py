"""Some rows of an answer follow from what the inputs hold for them, in every problem."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernelwright.kernelbench import registry, rows
from kernelwright.kernelbench.problem import Family, Structure
from kernelwright.kernelbench.rows import RowTurns, changed_rows, shrink, take_rows


@pytest.mark.parametrize("name", [p.name for p in registry.problems() if p.is_row_wise])
@pytest.mark.parametrize("family", [Family.NORMAL, Family.NONFINITE])
def test_the_truth_of_some_rows_is_that_of_the_whole(name: str, family: Family) -> None:
    problem, rng = registry.get(name), np.random.default_rng(3)
    base = problem.structure(problem.workload("tiny"))
    for structure in (base, *itertools.islice(problem.variations(base, rng), 4)):
        inputs = problem.values(structure, family, rng)
        whole = problem.oracle(structure, inputs)
        count = structure.axes["M"]
        chosen = np.flatnonzero(rng.random(count) < 0.3)
        chosen = chosen if len(chosen) else np.arange(1)
        part = take_rows(structure, chosen)
        taken = part.take(problem, inputs)
        for tensor in problem.inputs:
            array = {**part.structure.arrays, **taken}[tensor.name]
            assert array.shape == tensor.extent(part.structure.axes), tensor.name
        for output, expected in problem.oracle(part.structure, taken).items():
            want = part.take(problem, {output: whole[output].value})[output]
            np.testing.assert_allclose(expected.value, want, rtol=1e-6, atol=1e-30)
            scale = np.broadcast_to(whole[output].scale, whole[output].value.shape)
            scale = part.take(problem, {output: scale})[output]
            own = np.broadcast_to(expected.scale, expected.value.shape)
            np.testing.assert_allclose(own, scale, rtol=1e-5)


def test_each_row_comes_before_one_comes_again() -> None:
    turns = RowTurns(np.random.default_rng(0))
    for count, share in ((1000, 4), (64, 2), (1, 4), (100_001, 65)):
        taken = [turns.take(count, share) for _ in range(share)]
        assert set(np.concatenate(taken)) == set(range(count))
        assert all((np.diff(each) > 0).all() for each in taken)


def test_rows_of_a_twin_that_differ_are_found() -> None:
    problem, rng = registry.get("spmm_csr"), np.random.default_rng(1)
    base = problem.structure(problem.workload("tiny"))
    for twin in itertools.islice(problem.twins(base, rng), 4):
        changed = set(changed_rows(base, twin))
        parts = [np.split(s.arrays["indices"], s.arrays["indptr"][1:-1]) for s in (base, twin)]
        differ = {
            row for row, (a, b) in enumerate(zip(*parts, strict=True)) if not np.array_equal(a, b)
        }
        assert differ
        assert differ <= changed
    assert not len(changed_rows(base, base))
    assert not len(changed_rows(Structure({"M": 3}), Structure({"M": 3})))


def test_what_is_large_is_shrunk_to_some_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, rng = registry.get("spmm_csr"), np.random.default_rng(1)
    base = problem.structure(problem.workload("pubmed-128"))
    assert shrink(problem, base, rng) is base
    monkeypatch.setattr(rows, "LARGE_BYTES", 4 << 20)
    small = shrink(problem, base, rng)
    assert problem.bytes_moved(small.axes) < 3 << 20
    assert small.axes["N"] == 128
