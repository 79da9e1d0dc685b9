"""The drawn patterns are valid CSR, deterministic, and have the statistics asked for."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.kernelbench import graphs, registry
from kernelwright.kernelbench.features import features
from kernelwright.kernelbench.graphs import Pattern
from kernelwright.kernelbench.standins import STAND_INS

SMALL = [name for name, known in STAND_INS.items() if known.nnz < 1_000_000]


def _assert_csr(pattern: Pattern) -> None:
    assert pattern.indptr.dtype == np.int32
    assert pattern.indices.dtype == np.int32
    assert pattern.indptr[0] == 0
    assert pattern.indptr[-1] == pattern.nnz
    assert len(pattern.indptr) == pattern.rows + 1
    assert (np.diff(pattern.indptr) >= 0).all()
    assert (pattern.indices >= 0).all()
    assert (pattern.indices < pattern.cols).all()
    rising = np.diff(pattern.indices.astype(np.int64)) > 0
    starts = pattern.indptr[1:-1]
    rising[starts[(starts > 0) & (starts < pattern.nnz)] - 1] = True
    assert rising.all()


@pytest.mark.parametrize("name", SMALL)
def test_stand_ins_have_the_published_statistics(name: str) -> None:
    known = STAND_INS[name]
    problem = registry.get("spmm_csr")
    structure = problem.structure(registry.workload_for(problem, name))
    facts = features(structure)
    assert (facts["M"], facts["nnz"]) == (known.rows, known.nnz)
    assert facts["cv_row"] == pytest.approx(known.cv, rel=0.06)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_seed_gives_one_pattern(seed: int) -> None:
    first, second, other = (
        graphs.by_degree(500, 4000, 2.0, seed=s) for s in (seed, seed, seed + 1)
    )
    assert np.array_equal(first.indices, second.indices)
    assert np.array_equal(first.indptr, second.indptr)
    assert not np.array_equal(first.indices, other.indices)


@pytest.mark.parametrize(
    ("n", "nnz", "cv", "cols"),
    [(1, 5, 0.1, 7), (7, 49, 0.5, 7), (300, 9000, 4.0, 300), (50, 400, 0.1, 9), (64, 0, 1.0, 64)],
)
def test_crowded_patterns_are_still_distinct(n: int, nnz: int, cv: float, cols: int) -> None:
    pattern = graphs.by_degree(n, nnz, cv, cols=cols, p_local=0.9, window=1, seed=3)
    _assert_csr(pattern)
    assert pattern.nnz == min(nnz, n * cols)


def test_locality_is_what_was_asked_for() -> None:
    local = graphs.by_degree(20_000, 100_000, 0.3, p_local=0.9, window=50, seed=1)
    row = np.repeat(np.arange(local.rows), np.diff(local.indptr))
    distance = np.abs(row - local.indices)
    near = np.minimum(distance, local.cols - distance) <= 50
    assert near.mean() == pytest.approx(0.9, abs=0.02)


def test_rmat_has_the_published_shape() -> None:
    pattern = graphs.rmat(14, 16, seed=0)
    _assert_csr(pattern)
    lengths = np.diff(pattern.indptr)
    assert pattern.nnz == pytest.approx(228_066, rel=0.01)
    assert lengths.std() / lengths.mean() == pytest.approx(4.0, rel=0.1)
    assert np.mean(lengths == 0) == pytest.approx(0.33, abs=0.05)
    top = np.sort(lengths)[-len(lengths) // 100 :].sum() / lengths.sum()
    assert top == pytest.approx(0.30, abs=0.05)


def test_a_hub_has_one_full_row_and_empty_ones() -> None:
    pattern = graphs.hub(400, 2000, seed=0)
    _assert_csr(pattern)
    lengths = np.diff(pattern.indptr)
    assert lengths.max() == 400
    assert np.sort(lengths)[-2] < 40
    assert 0.3 < np.mean(lengths == 0) < 0.6


def test_features_of_an_uneven_pattern() -> None:
    problem = registry.get("spmm_csr")
    facts = features(problem.structure(problem.workload("hub-33")))
    assert facts["N"] == 33
    assert facts["max_row"] == facts["K"] == 2000
    assert facts["avg_row"] == pytest.approx(facts["nnz"] / 2000)
    assert facts["cv_row"] > 5
    assert facts["density"] == pytest.approx(facts["nnz"] / 4e6)
    assert facts["empty_share"] > 0.3


def test_features_of_a_dense_problem_are_its_axes() -> None:
    problem = registry.get("gemm")
    assert features(problem.structure(problem.workload("tiny"))) == {"M": 64, "N": 64, "K": 64}


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in STAND_INS if 1_000_000 <= STAND_INS[n].nnz < 4e6])
def test_large_stand_ins_have_the_published_statistics(name: str) -> None:
    known = STAND_INS[name]
    pattern = graphs.by_degree(
        known.rows,
        known.nnz,
        known.cv,
        p_local=known.p_local,
        window=known.window,
        gamma=known.gamma,
    )
    _assert_csr(pattern)
    lengths = np.diff(pattern.indptr)
    assert pattern.nnz == known.nnz
    assert lengths.std() / lengths.mean() == pytest.approx(known.cv, rel=0.06)
