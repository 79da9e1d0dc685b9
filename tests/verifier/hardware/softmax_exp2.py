"""
---
language = "triton"

[[launch]]
kernel = "softmax"
grid = ["M"]
args = ["x", "y", "N"]
constexpr = {COLUMNS = "next_pow2(N)"}
---
"""

import triton
import triton.language as tl


@triton.jit
def softmax(x_ptr, y_ptr, N, COLUMNS: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * N
    column = tl.arange(0, COLUMNS)
    inside = column < N
    x = tl.load(x_ptr + at + column, mask=inside, other=-float("inf")) * 1.4426950408889634
    risen = tl.exp2(x - tl.max(x, 0))
    tl.store(y_ptr + at + column, risen / tl.sum(risen, 0), mask=inside)
