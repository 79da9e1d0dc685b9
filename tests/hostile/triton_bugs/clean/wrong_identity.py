"""
---
[[launch]]
kernel = "softmax"
grid = ["M"]
args = ["x", "y", "N"]
constexpr = {BLOCK = "next_pow2(N)"}
---
"""

import triton
import triton.language as tl


@triton.jit
def softmax(x, y, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * N + at, mask=at < N, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(y + row * N + at, e / tl.sum(e, 0), mask=at < N)
