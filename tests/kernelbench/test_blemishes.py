"""Where values that are not finite stand: in rows of their own, at places that tell."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.definition import run_text
from kernelwright.kernelbench.families import MOST_BLEMISHES, blemish, draw_places
from kernelwright.kernelbench.problem import Family
from kernelwright.kernelbench.sparse import row_numbers
from kernelwright.verifier.truth import null_kernels


@pytest.mark.parametrize("rows", [1, 2, 3, 20, 4000])
def test_each_stands_in_a_row_of_its_own_and_a_row_is_left(rows: int) -> None:
    for seed in range(20):
        array = np.zeros((rows, 5000), np.float32)
        blemish(Family.NONFINITE, array, np.random.default_rng(seed), (np.nan,))
        in_row = np.isnan(array).sum(1)
        assert in_row.max() == 1
        assert in_row.sum() == min(MOST_BLEMISHES, max(1, rows - 1))


def test_every_piece_of_a_row_has_its_turn() -> None:
    length, rng = 12_289, np.random.default_rng(0)
    drawn = np.concatenate([draw_places(np.full(8, length), rng) for _ in range(400)])
    assert drawn.min() >= 0
    assert drawn.max() < length
    pieces = {
        "the first element": drawn == 0,
        "the last element": drawn == length - 1,
        "the last three": drawn >= length - 3,
        "the first warp": drawn < 32,
        "the last tile": drawn >= length // 1024 * 1024,
    }
    for name, is_in in pieces.items():
        assert is_in.mean() > 0.01, name
    counts = np.histogram(drawn, 16, (0, length))[0]
    assert counts.min() > len(drawn) / 64


def test_eight_places_are_near_both_ends_and_between() -> None:
    for seed in range(20):
        places = np.sort(draw_places(np.full(8, 1 << 20), np.random.default_rng(seed)))
        assert len(set(places // (1 << 16))) >= 3


def test_rows_of_one_element_have_one_place() -> None:
    for seed in range(4):
        assert not draw_places(np.ones(8, np.int64), np.random.default_rng(seed)).any()


@pytest.mark.parametrize(("name", "tensor"), [("edge_softmax", "e"), ("spmv_csr", "values")])
def test_rows_of_a_pattern_have_one_each(name: str, tensor: str) -> None:
    problem = registry.get(name)
    base = problem.structure(problem.workload("tiny"))
    shapes = problem.variations(base, np.random.default_rng(1))
    for structure in (base, *itertools.islice(shapes, 12)):
        drawn = problem.values(structure, Family.NONFINITE, np.random.default_rng(2))[tensor]
        entries = drawn.reshape(structure.axes["nnz"], -1)
        lost = np.isnan(entries) if name == "edge_softmax" else ~np.isfinite(entries)
        entry, lane = np.nonzero(lost)
        assert len(entry) <= MOST_BLEMISHES
        pairs = set(zip(row_numbers(structure)[entry], lane, strict=True))
        assert len(pairs) == len(entry)
        assert len(entry) or not structure.axes["nnz"] or name == "spmv_csr"


def test_a_users_file_that_asks_for_such_values_has_them() -> None:
    plain = registry.template_of("swi")
    text = plain.replace('"-lognormal', '"nonfinite -lognormal')
    problem = run_text("swi", text, "swi.py")
    structure, rng = problem.structure(problem.workload("tiny")), np.random.default_rng(0)
    drawn = null_kernels.scene(problem, structure, Family.NONFINITE, rng)
    assert all(0 < np.isnan(array).sum() <= MOST_BLEMISHES for array in drawn.inputs.values())
    assert np.isfinite(drawn.answer("y")).mean() > 0.9
    assert not null_kernels.rejects(drawn, lambda scene, name: scene.answer(name))
    assert null_kernels.rejects(drawn, lambda scene, name: np.nan_to_num(scene.answer(name)))
    assert Family.NONFINITE not in run_text("swi", plain, "swi.py").families
