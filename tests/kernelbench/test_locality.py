"""What a pattern asks of a memory, on patterns whose answers are plain."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.kernelbench.locality import (
    LOCALITY_FEATURES,
    WINDOW_USES,
    gathered_bytes,
    list_gathered,
    locality,
)
from kernelwright.kernelbench.problem import Structure
from kernelwright.kernelbench.registry import get


def pattern(rows: list[list[int]], columns: int) -> Structure:
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int32)
    indices = np.array([column for row in rows for column in row], np.int32)
    axes = {"M": len(rows), "K": columns, "nnz": len(indices)}
    return Structure(axes, {"indptr": indptr, "indices": indices})


def test_a_diagonal_has_no_reach_and_no_reuse() -> None:
    found = locality(pattern([[i] for i in range(500)], 500))
    assert set(found) == {*LOCALITY_FEATURES, WINDOW_USES}
    assert found["column_reach"] == 0
    assert found["near_reuse"] == 0
    assert found[WINDOW_USES] == 1
    assert found["column_uses"] == 1
    assert found["row_p50"] == found["row_p99"] == 1


def test_rows_that_share_their_columns_reuse_them_nearby() -> None:
    """Within 64 rows all but the first row's entries have been named."""
    found = locality(pattern([[3, 900]] * 640, 1000))
    assert found["near_reuse"] == pytest.approx(63 / 64)
    assert found["column_uses"] == 640
    assert found[WINDOW_USES] == 16


def test_a_window_has_16_rows_and_its_last_one_what_is_left() -> None:
    """Four rows share a column, and four windows and a half have four columns each."""
    found = locality(pattern([[i // 4] for i in range(72)], 100))
    assert found[WINDOW_USES] == 4


def test_reuse_further_away_than_64_rows_is_none_nearby() -> None:
    found = locality(pattern([[i % 64] for i in range(640)], 64))
    assert found["near_reuse"] == 0
    assert found["column_uses"] == 10


def test_quantiles_tell_a_few_long_rows_from_many() -> None:
    few = locality(pattern([list(range(1000))] + [[0]] * 999, 1000))
    assert (few["row_p50"], few["row_p90"], few["row_p99"]) == (1, 1, 1)


def test_columns_at_random_lie_a_third_of_them_away() -> None:
    rng = np.random.default_rng(5)
    rows = [sorted(rng.choice(4000, 8, replace=False).tolist()) for _ in range(4000)]
    assert locality(pattern(rows, 4000))["column_reach"] == pytest.approx(0.29, abs=0.03)


def test_without_entries_there_is_nothing_to_tell() -> None:
    assert locality(pattern([[], []], 5)) == {}
    assert locality(Structure({"M": 4}, {})) == {}


@pytest.mark.parametrize(
    ("problem", "names"),
    [("spmm_csr", ["B"]), ("sddmm_csr", ["V"]), ("spmv_csr", ["x"]), ("softmax", []), ("gemm", [])],
)
def test_what_is_gathered_is_what_columns_lead_to(problem: str, names: list[str]) -> None:
    assert [tensor.name for tensor in list_gathered(get(problem))] == names


def test_a_gathered_row_takes_whole_granules() -> None:
    axes = {"M": 10, "K": 10, "N": 9, "nnz": 100}
    assert gathered_bytes(get("spmm_csr"), axes, granule=32) == 100 * 64
    assert gathered_bytes(get("spmm_csr"), axes, granule=64) == 100 * 64
    assert gathered_bytes(get("gemm"), {"M": 8, "N": 8, "K": 8}, granule=32) == 0
