"""
---
[[launch]]
kernel = "softmax"
grid = ["M", "cdiv(N, 64)"]
args = ["x", "peaks", "sums", "y", "N"]
constexpr = {PARTS = "cdiv(N, 64)", SPAN = "next_pow2(cdiv(N, 64))", BLOCK = 64}
[scratch.peaks]
shape = ["M", "cdiv(N, 64)"]
dtype = "float32"
[scratch.sums]
shape = ["M", "cdiv(N, 64)"]
dtype = "float32"
---
"""

import triton
import triton.language as tl


@triton.jit
def softmax(x, peaks, sums, y, N, PARTS: tl.constexpr, SPAN: tl.constexpr, BLOCK: tl.constexpr):
    row, part = tl.program_id(0), tl.program_id(1)
    at = part * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + row * N + at, mask=at < N, other=-float("inf"))
    own = tl.max(v, 0)
    tl.store(peaks + row * PARTS + part, own)
    tl.store(sums + row * PARTS + part, tl.sum(tl.exp(v - own), 0))
    tl.debug_barrier()
    all = tl.arange(0, SPAN)
    peak = tl.load(peaks + row * PARTS + all, mask=all < PARTS, other=-float("inf"))
    total = tl.load(sums + row * PARTS + all, mask=all < PARTS, other=0.0)
    top = tl.max(peak, 0)
    total = tl.sum(total * tl.exp(peak - top), 0)
    tl.store(y + row * N + at, tl.exp(v - top) / total, mask=at < N)
