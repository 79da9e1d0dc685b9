"""
---
[[launch]]
zero = "C"
[[launch]]
kernel = "gemm"
grid = ["cdiv(M, 32)", "cdiv(N, 32)", "cdiv(K, 32)"]
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
    k = tl.program_id(2) * TILE
    left = k + tl.arange(0, TILE)[None, :]
    a = tl.load(A + row * K + left, mask=(row < M) & (left < K), other=0.0)
    down = k + tl.arange(0, TILE)[:, None]
    b = tl.load(B + down * N + column, mask=(down < K) & (column < N), other=0.0)
    part = tl.dot(a, b, input_precision="ieee")
    inside = (row < M) & (column < N)
    tl.atomic_add(C + row * N + column, part, mask=inside)
