"""
---
[knobs]
CHUNK = 0x40000000
[[launch]]
kernel = "gelu"
grid = [4]
args = ["x", "bias", "y", "M", "N"]
constexpr = {CHUNK = "CHUNK", BLOCK = 1024}
---
"""

import triton
import triton.language as tl


@triton.jit
def gelu(x, bias, y, M, N, CHUNK: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0).to(tl.int64) * CHUNK
    for start in range(0, tl.minimum(CHUNK, M * N), BLOCK):
        at = first + start + tl.arange(0, BLOCK)
        inside = at < M * N
        v = tl.load(x + at, mask=inside, other=0.0) + tl.load(bias + at % N, mask=inside, other=0.0)
        u = 0.7978845608028654 * (v + 0.044715 * v * v * v)
        tl.store(y + at, v / (1.0 + tl.exp(-2.0 * u)), mask=inside)
