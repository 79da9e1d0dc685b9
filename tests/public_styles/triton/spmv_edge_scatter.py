"""Sparse times vector by entries: each finds its row by bisection and adds into it atomically."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatter_kernel(
    indptr_ptr,
    indices_ptr,
    values_ptr,
    x_ptr,
    y_ptr,
    nnz,
    n_rows,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    e = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = e < nnz
    low = tl.zeros((BLOCK,), dtype=tl.int32)
    high = tl.zeros((BLOCK,), dtype=tl.int32) + n_rows
    for _ in range(STEPS):
        middle = (low + high) // 2
        is_right = tl.load(indptr_ptr + middle + 1, mask=mask & (middle < n_rows), other=0) <= e
        low = tl.where(is_right & (low < high), middle + 1, low)
        high = tl.where(is_right, high, middle)
    col = tl.load(indices_ptr + e, mask=mask, other=0)
    product = tl.load(values_ptr + e, mask=mask, other=0.0) * tl.load(x_ptr + col, mask=mask)
    tl.atomic_add(y_ptr + low, product, mask=mask, sem="relaxed")


def run(indptr, indices, values, x):
    n_rows = indptr.shape[0] - 1
    nnz = indices.shape[0]
    y = torch.zeros(n_rows, device=values.device, dtype=values.dtype)
    if nnz == 0:
        return y
    BLOCK = 1024
    scatter_kernel[(triton.cdiv(nnz, BLOCK),)](
        indptr, indices, values, x, y, nnz, n_rows, STEPS=n_rows.bit_length() + 1, BLOCK=BLOCK
    )
    return y
