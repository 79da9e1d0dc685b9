"""
---
language = "triton"

[knobs]
ROWS = 16
ENTRIES = 8

[[launch]]
kernel = "spmm_rows"
grid = ["cdiv(M, ROWS)", "cdiv(N, min(64, next_pow2(N)))"]
args = ["indptr", "indices", "values", "B", "C", "M", "N"]
constexpr = {ROWS = "ROWS", ENTRIES = "ENTRIES", COLUMNS = "min(64, next_pow2(N))"}
num_warps = 8
num_stages = 1
---

The sparse matrix times a dense one: a program owns 16 rows and up to 64 columns.
"""

import triton
import triton.language as tl


@triton.jit
def spmm_rows(
    indptr_ptr,
    indices_ptr,
    values_ptr,
    B_ptr,
    C_ptr,
    M,
    N,
    ROWS: tl.constexpr,
    ENTRIES: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    begin = tl.load(indptr_ptr + row, mask=row < M, other=0)
    end = tl.load(indptr_ptr + row + 1, mask=row < M, other=0)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, tl.max(end - begin, 0), ENTRIES):
        entry = begin[:, None] + first + tl.arange(0, ENTRIES)[None, :]
        exists = entry < end[:, None]
        k = tl.load(indices_ptr + entry, mask=exists, other=0).to(tl.int64)
        value = tl.load(values_ptr + entry, mask=exists, other=0.0)
        b = tl.load(
            B_ptr + k[:, :, None] * N + column[None, None, :],
            mask=exists[:, :, None] & (column < N)[None, None, :],
            other=0.0,
        )
        total += tl.sum(value[:, :, None] * b, 1)
    at = row.to(tl.int64)[:, None] * N + column[None, :]
    tl.store(C_ptr + at, total, mask=(row < M)[:, None] & (column < N)[None, :])
