"""
---
[[launch]]
kernel = "gelu"
grid = ["cdiv(M * N, 1024)"]
args = ["x", "bias", "y", "M", "N"]
constexpr = {BLOCK = 1024}
---
"""

import triton
import triton.language as tl


@triton.jit
def gelu(x, bias, y, M, N, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < M * N
    v = tl.load(x + at) + tl.load(bias + at % N, mask=inside, other=0.0)
    u = 0.7978845608028654 * (v + 0.044715 * v * v * v)
    tl.store(y + at, v / (1.0 + tl.exp(-2.0 * u)), mask=inside)
