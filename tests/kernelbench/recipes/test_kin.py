"""Which recipe stands as an example beside a problem."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelwright.kernelbench import registry
from kernelwright.kernelbench.problem import Problem
from kernelwright.kernelbench.recipes import recipes_for
from kernelwright.kernelbench.recipes.kin import find_example


def like(name: str) -> Problem:
    return replace(registry.get(name), name="mine")


@pytest.mark.parametrize("language", ["cpp", "cuda", "triton"])
@pytest.mark.parametrize("name", registry.names())
def test_a_problem_with_recipes_has_its_own(name: str, language: str) -> None:
    found = find_example(registry.get(name), language)
    assert found is not None
    assert found.problem == name or not recipes_for(name, language)
    assert found.source


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("gemm", "gemm"), ("rmsnorm", "softmax"), ("spmm_csr", "spmm_csr"), ("spmv_csr", "spmv_csr")],
)
def test_another_has_that_of_the_problem_it_is_most_like(name: str, nearest: str) -> None:
    found = find_example(like(name), "cpp")
    assert found is not None
    assert found.problem == nearest


@pytest.mark.parametrize(
    ("name", "language", "nearest"),
    [
        ("softmax_bf16", "cpp", "softmax_bf16"),
        ("edge_softmax_f16", "cpp", "spmm_csr_f16"),
        ("gemm_bf16", "cuda", "gemm_bf16"),
        ("gemm_int8", "cuda", "gemm"),
        ("rmsnorm_bf16", "cuda", "softmax"),
    ],
)
def test_a_problem_in_a_policy_has_one_of_that_policy_where_there_is_one(
    name: str, language: str, nearest: str
) -> None:
    found = find_example(registry.get(name), language)
    assert found is not None
    assert found.problem == nearest


def test_there_is_none_in_a_language_without_recipes() -> None:
    assert find_example(registry.get("softmax"), "python") is None
