"""Sparse times vector by a segmented scan over tiles of entries, with atomics at the borders."""

import torch
import triton
import triton.language as tl


@triton.jit
def segmented_sum(row_a, sum_a, row_b, sum_b):
    return row_b, tl.where(row_a == row_b, sum_a + sum_b, sum_b)


@triton.jit
def spmv(rows, indices, values, x, y, nnz, BLOCK: tl.constexpr):
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = e < nnz
    row = tl.load(rows + e, mask=mask, other=-1)
    col = tl.load(indices + e, mask=mask, other=0)
    v = tl.load(values + e, mask=mask, other=0.0) * tl.load(x + col, mask=mask, other=0.0)
    _, total = tl.associative_scan((row, v), 0, segmented_sum)
    following = tl.load(rows + e + 1, mask=mask & (e + 1 < nnz), other=-2)
    is_last = mask & ((row != following) | (tl.arange(0, BLOCK) == BLOCK - 1))
    tl.atomic_add(y + row, total, mask=is_last)


@triton.jit
def fill_rows(indptr, rows):
    row = tl.program_id(0)
    start = tl.load(indptr + row)
    end = tl.load(indptr + row + 1)
    for p in range(start, end, 64):
        at = p + tl.arange(0, 64)
        tl.store(rows + at, row + tl.zeros((64,), tl.int32), mask=at < end)


def run(indptr, indices, values, x):
    M, nnz = indptr.numel() - 1, indices.numel()
    rows = torch.empty(nnz, dtype=torch.int32, device=x.device)
    y = torch.zeros(M, device=x.device)
    fill_rows[(M,)](indptr, rows)
    spmv[(max(1, triton.cdiv(nnz, 256)),)](rows, indices, values, x, y, nnz, BLOCK=256)
    return y
