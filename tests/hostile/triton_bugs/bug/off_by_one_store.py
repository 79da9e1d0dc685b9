"""
---
[[launch]]
kernel = "spmv"
grid = ["cdiv(M, 64)"]
args = ["indptr", "indices", "values", "x", "y", "M"]
constexpr = {ROWS = 64}
---
"""

import triton
import triton.language as tl


@triton.jit
def spmv(indptr, indices, values, x, y, M, ROWS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    inside = row < M
    first = tl.load(indptr + row, mask=inside, other=0)
    last = tl.load(indptr + row + 1, mask=inside, other=0)
    total = tl.zeros((ROWS,), tl.float32)
    for step in range(tl.max(last - first, 0)):
        at = first + step
        column = tl.load(indices + at, mask=at < last, other=0)
        value = tl.load(values + at, mask=at < last, other=0.0)
        total += value * tl.load(x + column, mask=at < last, other=0.0)
    tl.store(y + row + 1, total, mask=inside)
