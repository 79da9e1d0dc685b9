"""The catalogue of techniques: whole, closed, and applicable where it says."""

from __future__ import annotations

import pytest

from kernelwright.agents.prompting.techniques import (
    catalogue,
    list_applicable,
    parse_declared,
    word_techniques,
)
from kernelwright.kernelbench.precision import Precision
from kernelwright.kernelbench.registry import get, names


def known(problem: str, language: str, target: str, **figures: float) -> set[str]:
    return {t.name for t in list_applicable(get(problem), language, target, figures)}


@pytest.mark.parametrize(
    ("language", "target"), [("cpp", "cpu"), ("cuda", "sm_90"), ("triton", "sm_80")]
)
@pytest.mark.parametrize("problem", names())
def test_every_problem_has_techniques_in_every_language(
    problem: str, language: str, target: str
) -> None:
    assert len(known(problem, language, target)) >= 4


def test_the_problem_decides() -> None:
    assert "nnz-balancing" in known("spmm_csr", "cpp", "cpu")
    assert "nnz-balancing" not in known("gemm", "cpp", "cpu")
    assert "split-reduction" not in known("bias_gelu", "cuda", "sm_90")


def test_the_target_decides() -> None:
    assert "asynchronous-copy" in known("gemm", "cuda", "sm_80")
    assert "asynchronous-copy" not in known("gemm", "cuda", "sm_75")


def test_the_precision_policy_decides() -> None:
    assert "tensor-cores" not in known("gemm", "cuda", "sm_90")
    policy = Precision(policy="fp32-sums")
    problem = get("gemm")
    object.__setattr__(allowed := type(problem)(**vars(problem)), "precision", policy)
    found = {t.name for t in list_applicable(allowed, "cuda", "sm_90")}
    assert "tensor-cores" in found


def test_the_profile_decides_where_it_tells() -> None:
    assert "bank-conflict-padding" in known("gemm", "cuda", "sm_90")
    clean = {"shared_load_efficiency": 1.0}
    assert "bank-conflict-padding" not in known("gemm", "cuda", "sm_90", **clean)
    conflicted = {**clean, "shared_store_efficiency": 0.25}
    assert "bank-conflict-padding" in known("gemm", "cuda", "sm_90", **conflicted)


def test_the_workload_decides_where_it_is_known() -> None:
    """A graph is translated where rows near each other share columns, for tensor cores alone."""
    name = "sparse-graph-translation"
    problem = get("spmm_csr_tf32")
    assert name in known("spmm_csr_tf32", "cuda", "sm_90")
    assert name not in known("spmm_csr", "cuda", "sm_90")
    assert name not in known("spmm_csr_tf32", "cuda", "sm_75")
    assert name not in known("spmm_csr_tf32", "cpp", "cpu")
    for uses, is_offered in ((1.0, False), (2.5, True)):
        found = list_applicable(problem, "cuda", "sm_90", facts={"window_uses": uses})
        assert (name in {t.name for t in found}) == is_offered


def test_names_are_words_that_a_reply_can_hold() -> None:
    everything = list(catalogue())
    assert parse_declared("Techniques: " + ", ".join(everything) + "\n```cpp\n") == tuple(
        everything
    )
    assert parse_declared("**Techniques:** `Loop unrolling`; tensor-cores, tensor-cores.") == (
        "loop-unrolling",
        "tensor-cores",
    )
    assert parse_declared("```cpp\n// Techniques: loop-unrolling\n```") == ()
    assert parse_declared("Techniques: none") == ()
    assert word_techniques(()) == "- none"
