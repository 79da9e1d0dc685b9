"""Sparse times dense, a program for each row and block of columns, entries in a plain loop."""

import torch
import triton
import triton.language as tl


@triton.jit
def csr_spmm_kernel(
    indptr_ptr,
    indices_ptr,
    data_ptr,
    b_ptr,
    c_ptr,
    n_cols,
    stride_b,
    stride_c,
    BLOCK_N: tl.constexpr,
):
    row = tl.program_id(0)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    start = tl.load(indptr_ptr + row)
    end = tl.load(indptr_ptr + row + 1)
    acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
    for p in range(start, end):
        col = tl.load(indices_ptr + p)
        val = tl.load(data_ptr + p)
        acc += val * tl.load(b_ptr + col * stride_b + cols, mask=mask, other=0.0)
    tl.store(c_ptr + row * stride_c + cols, acc, mask=mask)


def run(indptr, indices, values, B):
    n_rows = indptr.numel() - 1
    n_cols = B.shape[1]
    C = torch.empty((n_rows, n_cols), dtype=torch.float32, device=B.device)
    BLOCK_N = max(16, min(128, triton.next_power_of_2(n_cols)))
    grid = (n_rows, triton.cdiv(n_cols, BLOCK_N))
    csr_spmm_kernel[grid](
        indptr, indices, values, B, C, n_cols, B.stride(0), C.stride(0), BLOCK_N=BLOCK_N
    )
    return C
