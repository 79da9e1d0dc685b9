"""
---
language = "triton"

[[launch]]
kernel = "gemm"
grid = ["cdiv(M, 32)", "cdiv(N, 32)"]
args = ["A", "B", "C", "M", "N", "K"]
---
"""

import triton
import triton.language as tl


@triton.jit
def gemm(A_ptr, B_ptr, C_ptr, M, N, K):
    row = tl.program_id(0) * 32 + tl.arange(0, 32)[:, None]
    column = tl.program_id(1) * 32 + tl.arange(0, 32)[None, :]
    left, down = tl.arange(0, 32)[None, :], tl.arange(0, 32)[:, None]
    total = tl.zeros((32, 32), tl.float32)
    for k in range(0, K, 32):
        a = tl.load(
            A_ptr + row.to(tl.int64) * K + k + left, mask=(row < M) & (k + left < K), other=0.0
        )
        b_at = (k + down).to(tl.int64) * N + column
        b = tl.load(B_ptr + b_at, mask=(k + down < K) & (column < N), other=0.0)
        total = tl.dot(a, b, total, input_precision="bf16x6")
    tl.store(C_ptr + row.to(tl.int64) * N + column, total, mask=(row < M) & (column < N))
