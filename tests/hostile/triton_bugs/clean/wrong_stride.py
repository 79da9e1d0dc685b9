"""
---
[[launch]]
kernel = "gemm"
grid = ["cdiv(M, 32)", "cdiv(N, 32)"]
args = ["A", "B", "C", "M", "N", "K"]
constexpr = {TILE = 32}
---
"""

import triton
import triton.language as tl


@triton.jit
def gemm(A, B, C, M, N, K, TILE: tl.constexpr):
    row = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    column = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), tl.float32)
    for k in range(0, K, TILE):
        left = k + tl.arange(0, TILE)[None, :]
        a = tl.load(A + row * K + left, mask=(row < M) & (left < K), other=0.0)
        down = k + tl.arange(0, TILE)[:, None]
        b = tl.load(B + down * N + column, mask=(down < K) & (column < N), other=0.0)
        total = tl.dot(a, b, total, input_precision="ieee")
    tl.store(C + row * N + column, total, mask=(row < M) & (column < N))
