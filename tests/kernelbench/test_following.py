"""Structures whose second pattern and product follow from the drawn one, and who may have such."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kernelwright.errors import UsageError
from kernelwright.kernelbench import registry
from kernelwright.kernelbench.declaration import read_declaration
from kernelwright.kernelbench.definition import read_text
from kernelwright.kernelbench.following import Drawn
from kernelwright.kernelbench.problem import Structure
from kernelwright.kernelbench.spgemm import MOST_OF_A_ROW, MOST_PRODUCTS, count_products

SIZES = ("M", "K", "nnz", "nnz_b", "nnz_c", "P")
OWN = """
PROBLEM = {
    "title": "Row sums",
    "definition": "y[i] = sum over the entries of row i",
    "source": "here",
    "axes": {"M": "rows", "K": "columns", "nnz": "entries", "P": "something else"},
    "follows": ["P"],
    "inputs": {"indptr": "csr", "indices": "csr", "values": "float32[nnz]: entries"},
    "outputs": {"y": "float32[M]"},
    "flops": "nnz",
    "workloads": {"tiny": {"tiny": {"pattern": "uneven 20"}}},
}


def oracle(values):
    return values
"""


def drawn() -> list[Structure]:
    problem = registry.get("spgemm_csr")
    tiny = problem.structure(problem.workload("tiny"))
    rng = np.random.default_rng(5)
    return [tiny, *itertools.islice(problem.variations(tiny, rng), 24)]


def product_of(structure: Structure) -> list[set[int]]:
    """The columns of each row, entry by entry."""
    a = structure.arrays
    rows = itertools.pairwise(a["indptr"].tolist())
    ends, columns = a["b_indptr"].tolist(), a["b_indices"].tolist()
    return [
        {j for k in a["indices"][first:last].tolist() for j in columns[ends[k] : ends[k + 1]]}
        for first, last in rows
    ]


def test_what_follows_is_that_of_the_patterns() -> None:
    for structure in drawn():
        arrays, axes = structure.arrays, structure.axes
        assert tuple(axes) == SIZES
        assert len(arrays["b_indptr"]) == axes["K"] + 1
        assert len(arrays["b_indices"]) == axes["nnz_b"] == arrays["b_indptr"][-1]
        assert not axes["nnz_b"] or arrays["b_indices"].max() < axes["K"]
        lengths = [len(each) for each in product_of(structure)]
        assert np.array_equal(np.diff(arrays["c_indptr"]), lengths)
        assert axes["nnz_c"] == sum(lengths)
        assert axes["P"] == count_products(structure).sum()


def test_a_square_pattern_is_squared_and_no_hidden_one_is_too_dear() -> None:
    tiny, *hidden = drawn()
    assert np.array_equal(tiny.arrays["b_indices"], tiny.arrays["indices"])
    for structure in hidden:
        assert structure.axes["P"] <= MOST_PRODUCTS[Drawn.HIDDEN]
        assert count_products(structure).max() <= MOST_OF_A_ROW[Drawn.HIDDEN]
    assert len({s.axes["K"] > s.axes["M"] for s in hidden}) == 2


def test_other_patterns_have_the_same_sizes_and_another_product() -> None:
    problem = registry.get("spgemm_csr")
    tiny = problem.structure(problem.workload("tiny"))
    others = list(itertools.islice(problem.twins(tiny, np.random.default_rng(2)), 3))
    assert len(others) == 3
    for other in others:
        assert other.axes == tiny.axes
        assert product_of(other) != product_of(tiny)
        ends = other.arrays["c_indptr"]
        assert np.array_equal(np.diff(ends), [len(each) for each in product_of(other)])


def test_a_users_file_has_no_such_sizes() -> None:
    with pytest.raises(UsageError, match="only problems of the package") as error:
        read_text("own", OWN, "own.py")
    assert error.value.hint


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('["P"]', '["Q"]', "follows names 'Q', which is no axis"),
        ('"values": "float32[nnz]', '"values": "index int32[nnz]', ""),
        ('"follows": ["P"],', "", ""),
    ],
)
def test_what_follows_needs_a_pattern_and_an_axis(old: str, new: str, told: str) -> None:
    text = OWN.replace(old, new)
    if told:
        with pytest.raises(UsageError, match=told):
            read_declaration(text, "own.py")
    else:
        read_declaration(text, "own.py")
    dense = text.replace('"indptr": "csr", "indices": "csr", ', "").replace("nnz]", "M]")
    if "follows" in dense or "index " in dense:
        with pytest.raises(UsageError, match="follow"):
            read_declaration(dense, "own.py")
